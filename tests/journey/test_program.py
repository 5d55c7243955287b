"""Anything can take the charged path: a program of two steps, the second chosen by what the first released."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest

import dither as dt
from dither.curator import STEPS, Curator, Steps
from dither.engines.base import Engine
from dither.errors import ClosedError, DitherError, EngineError, LedgerError, QueryError
from dither.planning import outputs
from dither.planning import program as charges
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.program import Batch, Run
from dither.planning.records import decode_noisy, encode_noisy
from dither.privacy.filters import Charge
from dither.query.work import Group, Work
from dither.session import Paid
from journey.paid import kinds

FEW, MANY = "SELECT COUNT(*) AS n FROM people WHERE age < 50", "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@dataclass(frozen=True)
class Zoom:
    """A noisy count of everybody; if it is at least `enough`, counts by region, else one count of the young."""

    everybody: Plan
    few: Plan
    many: Plan
    enough: int = 100
    tables: tuple[str, ...] = ("people",)
    unit: str = "one value of person"

    @property
    def identity(self) -> str:
        return Batch(self.plans, self.tables, f"zoom at {self.enough}").identity

    @property
    def plans(self) -> tuple[Plan, Plan, Plan]:
        return self.everybody, self.few, self.many

    @cached_property
    def charge(self) -> Charge:
        """The first step and the dearer of the two that may follow: epsilons and rhos add under adaptive composition."""
        first, few, many = (charges.charge([plan]) for plan in self.plans)
        return Charge(
            first.epsilon + max(few.epsilon, many.epsilon), first.delta, first.rho + max(few.rho, many.rho), first.slack
        )

    @property
    def mechanisms(self) -> tuple[dict[str, Any], ...]:
        return charges.mechanisms(self.plans)

    @property
    def works(self) -> tuple[Work, ...]:
        return tuple(plan.work for plan in self.plans)

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        first = outputs.release(self.everybody, run(self.everybody.work), draw)
        chosen = self.chosen(first)
        return [first, outputs.release(chosen, run(chosen.work), draw)]

    def write(self, released: Sequence[Noisy]) -> str:
        return encode_noisy(released)

    def read(self, stored: str) -> Sequence[Noisy]:
        return decode_noisy(stored)

    def chosen(self, first: Noisy) -> Plan:
        """What follows, from noisy numbers alone: whoever is given the answer again finds the same."""
        return self.many if int(first.cells[0].sum()) >= self.enough else self.few

    def show(self, paid: Paid) -> tuple[bool, tuple[Any, ...]]:
        """Whether it was given again, and the rows of the second step."""
        first, second = paid.noisy
        return paid.stored is not None, outputs.table(self.chosen(first), second).rows


@dataclass
class Watched:
    """Steps that record what happens, and fail where the test says."""

    ledger: Any = None
    seen: list[str] = field(default_factory=list)
    prepared: list[Work] = field(default_factory=list)
    fails: int = 0  # at this run, from 1
    spent: list[Any] = field(default_factory=list)

    def steps(self) -> Steps:
        return replace(STEPS, prepare=self.prepare, run=self.run)

    def prepare(self, engine: Engine, works: Sequence[Work]) -> None:
        STEPS.prepare(engine, works)
        self.prepared += works
        self.seen.append("prepare")

    def run(self, engine: Engine, work: Work) -> Sequence[Group]:
        self.seen.append("run")
        self.spent.append(kinds(self.ledger)[-1])
        if self.seen.count("run") == self.fails:
            raise ValueError("Mrs Miller")
        return STEPS.run(engine, work)


def opened(people: int, watch: Watched) -> Curator:
    rows = {"person": list(range(people)), "age": [i % 90 for i in range(people)], "region": ["north", "south"] * (people // 2)}
    columns = {"age": dt.between(0, 120), "region": dt.values("north", "south")}
    catalog = dt.Catalog({"people": dt.Table(rows, unit="person", max_rows=1, columns=columns)}, dt.Budget(1000))
    survey = dt.open(catalog, ledger=":memory:")
    survey.steps = watch.steps()
    watch.ledger = survey.ledger
    return survey


@pytest.fixture
def watch() -> Watched:
    return Watched()


@pytest.fixture(params=[400, 10], ids=["many people", "few people"])
def survey(request: pytest.FixtureRequest, watch: Watched) -> Iterator[Curator]:
    with opened(request.param, watch) as made:
        yield made


def zoom(survey: Curator, enough: int = 100) -> Zoom:
    asked = ("SELECT COUNT(*) AS n FROM people", FEW, MANY)
    return Zoom(*(survey.quote(text, epsilon=20, left_out=False).plan for text in asked), enough)


def test_the_second_step_follows_from_the_noisy_first(survey: Curator, watch: Watched) -> None:
    program = zoom(survey)
    again, rows = survey.release(program, "zoom", program.show)
    assert not again
    many = survey.engine.run(program.everybody.work, bytes(32))[0].measures[0][0] == 400  # type: ignore[index]
    assert len(rows) == (2 if many else 1)
    assert watch.seen == ["prepare", "run", "run"]


def test_all_that_may_run_is_prepared_before_anything_is_charged(survey: Curator, watch: Watched) -> None:
    program = zoom(survey)
    survey.release(program, "zoom", program.show)
    assert watch.prepared == list(program.works)
    assert watch.spent == ["reserved", "reserved"], "charged before the first row, and not again before the second step"


def test_an_answer_is_shown_after_it_is_kept(survey: Curator) -> None:
    program = zoom(survey)
    assert survey.release(program, "zoom", lambda paid: kinds(survey.ledger)[-1]) == "committed"


def test_what_could_not_be_kept_is_not_shown(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise LedgerError("The disk is full.", fix="make room.")

    program, shown = zoom(survey), []
    monkeypatch.setattr(survey.ledger, "commit", fail)
    with pytest.raises(LedgerError, match="Charged: ε = 40"):
        survey.release(program, "zoom", shown.append)
    assert shown == []


def test_files_that_change_while_the_price_is_reserved_are_not_read(survey: Curator, watch: Watched) -> None:
    program, unchanged = zoom(survey), iter([True, False])
    survey.session.files = lambda: next(unchanged)
    with pytest.raises(DitherError, match=r"no longer those that were opened(.|\n)*Charged: nothing"):
        survey.release(program, "zoom", program.show)
    assert watch.seen == ["prepare"]
    assert kinds(survey.ledger)[-1] == "cancelled", "its price is given back"


def test_it_is_charged_once_for_the_dearer_way(survey: Curator) -> None:
    program = zoom(survey)
    survey.release(program, "zoom", program.show)
    assert survey.budget.spent.epsilon == program.charge.epsilon == 40
    assert kinds(survey.ledger)[2:] == ["reserved", "committed"]


def test_it_is_given_again_for_nothing(survey: Curator, watch: Watched) -> None:
    program = zoom(survey)
    _, first = survey.release(program, "zoom", program.show)
    again, rows = survey.release(zoom(survey), "zoom", program.show)
    assert (again, rows) == (True, first)
    assert survey.budget.spent.epsilon == 40
    assert watch.seen.count("run") == 2
    survey.release(zoom(survey, enough=101), "zoom", program.show)
    assert survey.budget.spent.epsilon == 80, "another program is another question"


@pytest.mark.parametrize("step", [1, 2])
def test_a_failure_of_either_step_stays_charged_and_closes_the_catalog(survey: Curator, watch: Watched, step: int) -> None:
    program, watch.fails = zoom(survey), step
    with pytest.raises(EngineError, match="Charged: ε = 40"):
        survey.release(program, "zoom", program.show)
    assert survey.closed
    assert "Mrs Miller" in survey.diagnosis
    assert survey.budget.spent.epsilon == 40
    with pytest.raises(ClosedError):
        survey.ask(FEW, epsilon=1)


def test_a_price_is_not_given_back_after_the_engine_was_called(survey: Curator, watch: Watched) -> None:
    program, watch.fails = zoom(survey), 1
    with suppress(EngineError, ValueError):
        survey.release(program, "zoom", program.show)
    assert survey.budget.spent.epsilon == 40
    assert kinds(survey.ledger)[-1] == "failed"


def test_what_was_not_prepared_is_not_run(survey: Curator, watch: Watched) -> None:
    class Unannounced(Zoom):
        @property
        def works(self) -> tuple[Work, ...]:
            return (self.everybody.work,)

    program = Unannounced(*zoom(survey).plans)
    with pytest.raises(EngineError):
        survey.release(program, "zoom", program.show)
    assert watch.seen == ["prepare", "run"]
    assert survey.closed


def test_what_an_engine_cannot_do_is_refused_uncharged(survey: Curator) -> None:
    def refuse(engine: Engine, works: Sequence[Work]) -> None:
        raise QueryError("This engine has no regions.", span=(7, 13))

    program, survey.steps = zoom(survey), Steps(prepare=refuse)
    with pytest.raises(QueryError, match=r"\^\^\^\^\^\^(.|\n)*Charged: nothing"):
        survey.release(program, "zoom", program.show, within=MANY)
    assert kinds(survey.ledger) == []


def test_ask_and_suggest_take_the_same_door() -> None:
    """Every step of theirs is one of the named ones."""
    watch = Watched()
    with opened(400, watch) as survey:
        survey.ask(FEW, epsilon=1, left_out=False)
        assert watch.seen == ["prepare", "run"]
        survey.suggest("people.age", epsilon=1)
        assert watch.seen == ["prepare", "run", "prepare", "run", "run"]
