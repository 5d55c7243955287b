"""`explain` and `demo`: what an epsilon means, in words and numbers; a tour on made-up data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import dither as dt
from dither.cli.app import INTERRUPTED, TERMINATED, UNREAD, app
from dither.cli.output import Force, Outputs, check_drawable, draw_bytes
from dither.cli.screen import note, out
from dither.errors import ArgumentError, Fix, Shell
from dither.exact.numbers import show_about

_HOUSEHOLD = 4
_TELLING = 100  # above this epsilon every bound is "any factor" or "100 %"
_BELIEFS = ("1/100", "1/10", "1/2", "9/10")
_ALARMS = ("1/1000", "1/100", "1/20", "1/10", "1/2")


@app.command("demo")
def _demo(
    folder: Annotated[Path | None, typer.Option(help="Keep the hospital's data in this new folder.")] = None,
    survey: Annotated[
        Path | None, typer.Option(help="Only write the tutorial's made-up health survey into this folder, as CSV files.")
    ] = None,
) -> None:
    """Show every step on a made-up hospital.

    Checks its catalog, quotes and answers questions until the budget refuses one, and verifies the ledger.
    """
    if survey is not None:
        _write_survey(survey, folder)
        return
    from dither import demo

    if folder is not None:
        if folder.exists():
            raise ArgumentError(f"{folder} is there already.", fix="name a new folder.")
        try:
            folder.mkdir(parents=True)
        except OSError:
            raise ArgumentError(f"{folder} cannot be made.", fix="name a folder where you may write.") from None
    demo.run(out(), _command, folder)


def _write_survey(place: Path, folder: Path | None) -> None:
    """Writes the files of the tutorial, and nothing else."""
    from dither import datasets

    if folder is not None:
        raise ArgumentError("The survey and the hospital are two demos.", fix="give one of the two options.")
    datasets.health_survey(place)
    note(f"Made up, nobody in it exists: {', '.join(datasets.SURVEY_FILES)}.")


def _command(words: Sequence[str]) -> int:
    """Runs one command in this process and returns its exit code."""
    found = app(list(words), prog_name="dither", standalone_mode=False)
    code = found if isinstance(found, int) else 0
    if code in (INTERRUPTED, TERMINATED, UNREAD):
        raise typer.Exit(code)  # stopping a step stops the demo
    return code


@app.command("explain")
def _explain(
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Price to explain, such as 0.1.")],
    delta: Annotated[str, typer.Option(help="Delta of the price.")] = "0",
    answer: Annotated[int | None, typer.Option(help="A noisy count of people that came out, to see what it tells.")] = None,
    others: Annotated[int | None, typer.Option(help="With --answer: the exact count without you.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it to this file (.png, .svg or .pdf).")] = None,
    force: Force = False,
) -> None:
    """Explain what a price means for one person, a household of four and an attacker.

    --answer and --others add what one count tells an attacker who knows everyone else.
    """
    check_drawable(plot)
    files = Outputs(force)
    files.check({"--plot": plot})
    loss = dt.Approx(epsilon, delta)
    eps, slack = loss.pair()
    if slack == 1:
        raise ArgumentError("delta must be below 1: at 1 nothing is protected.", fix="give a delta such as 1e-6.")
    if eps > _TELLING:
        out().print(Text(f"ε = {_price(eps)} protects nobody: one person may make an answer e^{_price(eps)} times as likely."))
        return
    given = _given(eps, answer, others)
    sections = Group(*_sections(loss, eps, slack), *given)
    if plot is not None:
        from dither import plots

        files.write(plot, draw_bytes(partial(plots.guarantee_picture, eps), plot))
        note(f"The picture is in {plot}.")
    out().print(sections)


def _sections(loss: dt.Approx, eps: Fraction, slack: Fraction) -> list[RenderableType]:
    price = f"ε = {_price(eps)}" + (f", δ = {_most(slack)}" if slack else "")
    return [
        Text(f"\nWhat {price} means", style="bold"),
        Text("if it is all that is ever spent on these people's data, by everyone together.\n", style="dim"),
        _section("One person", _one(eps, slack)),
        _section("A household of four", _household(loss)),
        _section("An attacker", [*_attacker(loss, slack)]),
        _section("What it buys", _bought(eps)),
    ]


def _section(title: str, parts: list[RenderableType]) -> RenderableType:
    return Group(Text(title, style="bold cyan"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in parts), Text(""))


def _one(eps: Fraction, slack: Fraction) -> list[RenderableType]:
    factor = dt.guarantees.factor(eps)
    near = f" The rule of thumb 1 + ε says {_price(1 + eps)}." if eps < 1 else ""
    lines = [
        f"Whether you take part changes the chance of any answer, and of anything that follows from it, by a factor of "
        f"at most e^{_price(eps)} = {_most(factor)}.{near}",
        f"What would happen to you with a chance of 1\u00a0% without you in the data happens with at most "
        f"{_percent(dt.guarantees.power(dt.Approx(eps, slack), '0.01'))} with you.",
    ]
    if slack:
        lines.append(
            f"The delta is a chance of {_most(slack)} that this may not hold, in the worst case because you are shown in full. "
            "Keep it far below 1 / the number of people."
        )
    return [Text(line) for line in lines]


def _household(loss: dt.Approx) -> list[RenderableType]:
    eps, slack = loss.group(_HOUSEHOLD).pair()
    factor = dt.guarantees.factor(eps)
    also = f", δ = {_most(slack)}" if slack else ""
    return [
        Text(f"Four people together are protected like one at ε = {_price(eps)}{also}: a factor of at most {_most(factor)}."),
        Text(f"A chance of 1\u00a0% becomes at most {_percent(dt.guarantees.power(dt.Approx(eps, slack), '0.01'))}."),
    ]


def _attacker(loss: dt.Approx, slack: Fraction) -> list[RenderableType]:
    """Returns the attacker's section. Beliefs need a pure price: a delta bounds how often they move further, not how far."""
    parts: list[RenderableType] = []
    if slack:
        parts.append(Text("With a delta, it is bounded how often a belief moves further than by ε, not how far.\n"))
    else:
        parts += [
            Text("The belief of an attacker who knows everyone else's data, before and after all answers:"),
            _beliefs(loss),
        ]
    return [*parts, Text("The best test for who took part, by how often it is wrong about those who did not:"), _tests(loss)]


def _beliefs(loss: dt.Approx) -> RenderableType:
    table = _table("before", "that you took part", "a value of yours", "that your household did")
    pure = dt.Pure(loss.pair()[0])
    for before in _BELIEFS:
        ranges = [
            dt.guarantees.posterior(pure, before),
            dt.guarantees.posterior(pure, before, about="value"),
            dt.guarantees.posterior(pure, before, people=_HOUSEHOLD),
        ]
        shown = [f"{show_about(100 * low, up=False, digits=4)} … {_percent(high)}" for low, high in ranges]
        table.add_row(_percent(Fraction(before)), *shown)
    return table


def _tests(loss: dt.Approx) -> RenderableType:
    table = _table("wrong about", "recognises you", "recognises your household")
    together = loss.group(_HOUSEHOLD)
    for alarms in _ALARMS:
        hits = [dt.guarantees.power(one, alarms) for one in (loss, together)]
        table.add_row(_percent(Fraction(alarms)), *(f"at most {_percent(hit)}" for hit in hits))
    return table


def _given(eps: Fraction, answer: int | None, others: int | None) -> list[RenderableType]:
    """Returns what an attacker who knows everyone else learns from this answer, which had geometric noise."""
    if (answer is None) != (others is None):
        fix = Fix("give both, as in {both}.", both=Shell("--answer 131 --others 128"))
        raise ArgumentError("--answer and --others belong together.", fix=fix)
    if answer is None or others is None:
        return []
    if eps == 0:
        raise ArgumentError("A count has no answer at epsilon 0.", fix="give an epsilon above 0.")
    noise = dt.Geometric(epsilon=eps, sensitivity=1)
    table = _table("before", "given this answer", "given any answer")
    for before in map(Fraction, _BELIEFS):
        _, you = dt.leakage.posterior(noise, [(others, 1 - before), (others + 1, before)], answer)
        least, most = you.least or Fraction(0), you.most or Fraction(1)
        table.add_row(
            _percent(before), _percent(you.after), f"{show_about(100 * least, up=False, digits=4)} … {_percent(most)}"
        )
    told = f"The count came out as {answer}. It is {others} without you and {others + 1} with you, and the attacker knows that."
    return [_section("Given this answer", [Text(told), Text("The belief that you took part:"), table])]


def _bought(eps: Fraction) -> list[RenderableType]:
    noise = dt.Geometric(epsilon=eps, sensitivity=1)
    wide = [noise.margin(sure) for sure in ("0.5", "0.95", "0.99")]
    return [
        Text(
            f"One count of people: off by at most {wide[0]:,} half of the time, "
            f"{wide[1]:,} in 95\u00a0% of all cases, {wide[2]:,} in 99\u00a0%."
        ),
        Text(
            "Ten counts from the same budget are each off by about ten times as much. A histogram costs no more than one count."
        ),
    ]


def _table(*names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _percent(share: Fraction) -> str:
    return f"{_most(100 * share)}\u00a0%"


def _most(value: Fraction) -> str:
    return show_about(value, up=True, digits=4)


def _price(value: Fraction) -> str:
    """Shows a short number in full, and others with four digits, rounded up: a price is never understated."""
    return show_about(value, up=True, digits=12) if len(f"{float(value):.12g}") <= 8 else _most(value)
