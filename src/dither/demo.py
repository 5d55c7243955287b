"""The main job on made-up data: a hospital answers questions from one budget until the budget ends.

The patients are invented here from a fixed generator, which is why the exact answers may be shown beside the noisy ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dither.exact.numbers import show
from dither.mechanisms import Exponential, Geometric, Laplace, PerCoordinate
from dither.mechanisms.base import Mechanism
from dither.privacy import sensitivity
from dither.privacy.filters import PureFilter
from dither.privacy.losses import Curve, Pure, total
from dither.privacy.parts import Laplace as LaplacePart
from dither.privacy.verify import verify

WARDS = ("children", "hearts", "bones", "births")
PATIENTS = 2000


@dataclass(frozen=True)
class Question:
    """What is asked, the exact answer, the noise it will get, and the margin in words."""

    text: str
    exact: Any
    mechanism: Mechanism
    margin: str


def questions() -> list[Question]:
    """Four questions about invented patients, one unit being one patient with one row."""
    dice = np.random.default_rng(2026)  # for inventing people, never for noise
    weight = np.clip(dice.normal(78, 17, PATIENTS).round(1), 30, 180)
    diabetic = dice.random(PATIENTS) < 0.12
    ward = dice.choice(4, size=PATIENTS, p=[0.2, 0.35, 0.3, 0.15])
    per_ward = np.bincount(ward, minlength=4)
    heavy = Geometric(epsilon="1/5", sensitivity=sensitivity.count())
    wards = Geometric(epsilon="1/5", sensitivity=PerCoordinate(1, 1))
    moved = sensitivity.mean(30, 180, at_least=1000)
    if not isinstance(moved, Fraction):
        raise TypeError("the mean of at least a thousand bounded weights has a finite sensitivity")
    mean = Laplace(epsilon="3/10", sensitivity=moved, grid="1/1024")
    busiest = Exponential(epsilon="1/5", sensitivity=1, candidates=WARDS, monotone=True)
    return [
        Question("diabetics over 100 kg", int(np.sum(diabetic & (weight > 100))), heavy, f"± {heavy.margin('0.95')}"),
        Question("patients by ward", per_ward, wards, f"± {wards.margin('0.95')} each"),
        Question(
            "mean weight in kg", Fraction(int((weight * 10).sum()), 10 * PATIENTS), mean, f"± {float(mean.margin('0.95')):.2f}"
        ),
        Question("the busiest ward", per_ward.tolist(), busiest, f"top − {float(busiest.margin('0.95')):.0f}"),
        Question("all patients", PATIENTS, Geometric(epsilon="1/5", sensitivity=1), ""),
    ]


def run(console: Console) -> None:
    """Ask, pay first, answer; then what the prices mean together."""
    budget = PureFilter(1)
    console.print(f"\n[bold]A hospital with {PATIENTS} made-up patients and a budget of ε = 1 for everyone, for ever.[/bold]")
    console.print(
        "The charge comes first, then the noise. Exact answers are secret: these may be shown, the people are invented.\n"
    )
    table = Table(
        "question", "exact", "released", "95 % margin", "price ε", "left ε", box=None, header_style="bold", pad_edge=False
    )
    for question in questions():
        loss = question.mechanism.loss()
        if budget.try_spend(loss):
            released, margin = _words(question.mechanism.release(question.exact)), question.margin
        else:
            released, margin = "[red]refused[/red]", "budget too low"
        exact = WARDS[int(np.argmax(question.exact))] if question.mechanism.__class__ is Exponential else question.exact
        table.add_row(question.text, _words(exact), released, margin, show(loss.epsilon()), show(budget.left))
    console.print(table)
    _proof(console)
    _composition(console)


def _proof(console: Console) -> None:
    noise = Geometric(epsilon="1/5", sensitivity=1)
    proof = verify(noise, [(128, 129), (128, 127)])
    console.print(
        f"\n[bold]Proved, not sampled.[/bold] With one patient more or less, no output of the first question is more than "
        f"e^{show(noise.epsilon)} times as likely: {'holds at every output' if proof.holds else 'DOES NOT HOLD'}."
    )


def _composition(console: Console) -> None:
    many = [Pure("1/10")] * 100
    best = Curve.of(LaplacePart("1/10"), 100).epsilon("1e-6")
    console.print(
        f"\n[bold]A hundred counts at ε = 0.1[/bold] cost ε = {show(total(many).epsilon())} by the plain sum, and no more than "
        f"ε = {float(best):.4f} at δ = 1e-6 by the exact loss curve.\n"
    )


def _words(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return " ".join(str(part) for part in value.tolist())
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{float(value):.2f}"
    return str(value)
