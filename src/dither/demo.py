"""The main job on made-up data: a hospital answers questions from one budget until the budget ends.

The patients are invented here from a fixed generator, which is why the exact answers may be shown beside the noisy ones.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from rich.console import Console

import dither as dt

WARDS = ("births", "bones", "children", "hearts")
PATIENTS = 20_000

QUESTIONS = (
    ("SELECT ward, COUNT(*) AS patients, AVG(weight) AS kg FROM patients GROUP BY ward", "0.4"),
    ("SELECT COUNT(*) AS n FROM patients WHERE diabetic AND weight > 100", "0.2"),
    ("SELECT MEDIAN(nights) AS nights FROM visits v JOIN patients p ON v.patient = p.patient WHERE p.ward = 'hearts'", "0.3"),
    ("SELECT name, weight FROM patients", "0.1"),
    ("SELECT SUM(income) FROM patients", "0.1"),
    ("SELECT COUNT(*) AS n FROM patients", "0.2"),
)


def hospital() -> dt.Catalog:
    """Invented patients and their visits; a unit is one patient, wherever their rows are."""
    dice = np.random.default_rng(2026)  # for inventing people, never for noise
    patients = pa.table(
        {
            "patient": np.arange(PATIENTS),
            "ward": dice.choice(WARDS, size=PATIENTS, p=[0.15, 0.3, 0.2, 0.35]),
            "weight": np.clip(dice.normal(78, 17, PATIENTS).round(1), 2, 260),
            "diabetic": dice.random(PATIENTS) < 0.12,
            "income": dice.lognormal(10.4, 0.6, PATIENTS).round(2),
        }
    )
    owner = dice.integers(0, PATIENTS, 3 * PATIENTS)
    visits = pa.table({"patient": owner, "nights": dice.geometric(0.25, 3 * PATIENTS)})
    return dt.Catalog(
        tables={
            "patients": dt.Table(
                patients,
                unit="patient",
                max_rows=1,
                columns={
                    "ward": dt.values(*WARDS),
                    "weight": dt.between(0, 200),
                    "diabetic": dt.values(False, True),
                    "income": dt.column(),
                },
            ),
            "visits": dt.Table(
                visits,
                unit={"column": "patient", "references": "patients.patient"},
                max_rows=5,
                max_groups=1,
                columns={"nights": dt.between(0, 60)},
            ),
        },
        budget=dt.Budget(epsilon=1),
    )


def run(console: Console) -> None:
    """Quote, ask, be refused, run out; then what the prices mean together."""
    console.print(f"\n[bold]A made-up hospital: {PATIENTS:,} patients, ε = 1 for everyone together, for ever.[/bold]")
    curator = dt.open(hospital(), ledger=":memory:")
    question, price = QUESTIONS[0]
    console.print("\n[bold]What would the first question cost?[/bold] A quote is free and reads no rows.\n")
    console.print(_indented(str(curator.quote(question, epsilon=price))), markup=False, highlight=False)
    for question, price in QUESTIONS:
        _ask(console, curator, question, price)
    console.print(f"\nbudget: {curator.budget}")
    _proof(console)


def _ask(console: Console, curator: dt.Curator, question: str, price: str) -> None:
    console.print(f"\n[bold]ask at ε = {price}[/bold]  {question}\n", highlight=False)
    try:
        console.print(_indented(str(curator.ask(question, epsilon=price))), markup=False, highlight=False)
    except dt.DitherError as refusal:
        console.print(_indented(str(refusal)), style="red", markup=False, highlight=False)


def _proof(console: Console) -> None:
    noise = dt.Geometric(epsilon="1/5", sensitivity=1)
    held = "holds at every output" if dt.verify(noise, [(128, 129), (128, 127)]).holds else "DOES NOT HOLD"
    console.print(
        f"\n[bold]Proved, not sampled.[/bold] One patient more or less makes no count at ε = 0.2 more than "
        f"e^0.2 times as likely: {held}."
    )
    sums, best = dt.Pure("1/10").repeat(100).epsilon(), dt.Curve.of(dt.parts.Laplace("1/10"), 100).epsilon("1e-6")
    console.print(
        f"[bold]A hundred questions at ε = 0.1[/bold] cost ε = {float(sums):.0f} by the plain sum; fixed in advance, "
        f"no more than ε = {float(best):.4f} at δ = 1e-6.\n"
    )


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
