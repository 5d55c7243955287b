"""What is refused before anything is written: odd prices, unknown analysts, changed catalogs, wrong clocks; on both stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.curator import STEPS, Curator, Steps
from dither.engines.base import Engine
from dither.errors import DitherWarning
from dither.query.work import Group, Work
from faults.mortal import question
from faults.told import charged, outcome, true
from journey.paid import COUNT, Broken, kinds, write

NAN, INFINITY = float("nan"), float("inf")
EPSILONS = (-1, "-0.1", 0, "0", -0.0, NAN, "nan", INFINITY, "inf", "1e400", "1e-400", 10**400, "2", True, "", "one", None, [1])
DELTAS = (1, "1", "1.5", 10**400, "1e400", -1, "-1e-9", NAN, "nan", INFINITY, "0.999", True, "", [0])


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, folder: Path) -> str:
    return str(folder / "survey.ledger") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def survey(folder: Path, where: str) -> Iterator[Curator]:
    write(folder, more='delta = 1e-6\nanalysts = ["ana"]')
    survey = dt.open(folder / "survey.toml", where, key=folder / "survey.key", analyst="ana", make=True)
    survey.ask(question(0), epsilon="0.1")
    yield survey
    survey.ledger.close()


def refused(survey: Curator, **options: Any) -> None:
    """By every way to ask: with a reason, before the engine is called, and without an entry."""
    engine, survey.engine = survey.engine, Broken(AssertionError())
    before = survey.ledger.head()
    keys = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
    ways: tuple[Any, ...] = (
        lambda: survey.ask(COUNT, **options),
        lambda: survey.ask(keys, **options),
        lambda: survey.ask(keys, fresh=True, **options),
        lambda: survey.ask(survey.table("people").group_by("town").agg(n=dt.count()), **options),
        lambda: survey.suggest("people.age", **options),
    )
    for ask in ways:
        with pytest.raises(dt.DitherError, match=r"Charged: nothing\.$") as caught:
            ask()
        assert caught.value.what
        assert caught.value.fix
    assert survey.ledger.head() == before
    survey.engine = engine


def test_no_odd_price_is_charged(survey: Curator, where: str) -> None:
    for epsilon in EPSILONS:
        refused(survey, epsilon=epsilon)
    for delta in DELTAS:
        refused(survey, epsilon="0.1", delta=delta)
    assert charged(where)[0].total() == 1
    assert survey.ask(COUNT, epsilon="0.1", delta="1e-9")  # the twin: so the way was open


def test_nobody_unknown_is_charged(survey: Curator, where: str) -> None:
    for analyst in ("eve", "Ana", "ana ", "", "anyone", "ana\n", 7, ["ana"]):
        refused(survey, epsilon="0.1", analyst=analyst)
        with pytest.raises(dt.DitherError, match="Charged: nothing"):
            survey.ask(question(0), epsilon="0.1", analyst=analyst)  # type: ignore[arg-type]  # nor is an old answer shown
    assert charged(where)[0].total() == 1
    assert survey.ask(COUNT, epsilon="0.1", analyst="ana")


@pytest.mark.parametrize("edited", [{"high": 1200}, {"unit": "household"}, {"epsilon": 100}, {"snapshot": "2026-12"}])
def test_a_catalog_that_is_edited_under_a_session(survey: Curator, folder: Path, where: str, edited: dict[str, Any]) -> None:
    more = 'delta = 1e-6\nanalysts = ["ana"]'
    write(folder, more=more, **edited)
    refused(survey, epsilon="0.1")
    with pytest.raises(dt.LedgerError, match=r"catalog file was changed(.|\n)*Charged: nothing"):
        survey.ask(question(0), epsilon="0.1")
    assert kinds(survey.ledger) == ["opened", "catalog", "reserved", "committed"]
    write(folder, more=more)
    assert true(outcome(survey, question(1)), *charged(where)) == "answered"


@pytest.mark.parametrize("back", [timedelta(minutes=4), timedelta(minutes=6), timedelta(days=4000)])
def test_a_clock_that_goes_backwards(survey: Curator, where: str, back: timedelta) -> None:
    """Order comes from numbers: the question is answered, at the time of the entry before it."""
    survey.ledger._clock = lambda: datetime.now(UTC) - back
    warned = pytest.warns(DitherWarning, match="ahead of this machine's clock")
    with nullcontext() if back < timedelta(minutes=5) else warned:
        told = outcome(survey, question(1))
    assert true(told, *charged(where)) == "answered"
    times = [entry.time for entry in survey.ledger.history()]
    assert times == sorted(times)


def test_a_clock_that_goes_backwards_while_the_engine_reads(survey: Curator, where: str) -> None:
    """An answer is stored even if the clock went back, with the time of the entry before it."""

    def late(engine: Engine, work: Work) -> Sequence[Group]:
        survey.ledger._clock = lambda: datetime(2001, 1, 1, tzinfo=UTC)
        return STEPS.run(engine, work)

    survey.steps = Steps(run=late)
    assert true(outcome(survey, question(1)), *charged(where)) == "answered"
    *_, reserved, committed = survey.ledger.history()
    assert reserved.time == committed.time
