"""A new kind of release is an entry among the aggregates and one file: here EVEN(x), a private count of even values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pytest

from dither.curator import open as open_curator
from dither.planning import releases
from dither.planning.releases.base import Collection, Kind, Linear, Reading, Release, Term
from dither.query import nodes
from dither.query.nodes import NUMBERS, Aggregate, Call, Expression, Function, Literal
from dither.query.work import Cell, Sums
from planning.test_runs import filled, frames


@dataclass(frozen=True)
class Even(Release):
    """The rows in which x is even."""

    x: Expression
    max_rows: int
    row = 1
    nothing = (0,)
    words = "even values"

    @cached_property
    def measure(self) -> Sums:
        return Sums((Cell(constant=1),), self.max_rows, Call("eq", (Call("mod", (self.x, Literal(2))), Literal(0))))

    @property
    def rows_per_unit(self) -> int:
        return self.max_rows


def read(asked: Aggregate, question: Collection) -> Reading:
    place = question.add(Even(question.argument(asked), question.max_rows))
    return Linear(asked, (Term(place, 0, Fraction(1)),), whole=True)


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(nodes.FUNCTIONS, "even", Function(("EVEN",), NUMBERS))
    monkeypatch.setattr(releases, "KINDS", (*releases.KINDS, Kind({"even": read})))


@pytest.mark.usefixtures("even")
def test_it_is_asked_priced_kept_and_explained_like_any_other() -> None:
    data = frames()
    text = "SELECT region, EVEN(age) AS e, COUNT(*) AS n, 100 * EVEN(age) / COUNT(*) AS share FROM people GROUP BY region"
    with open_curator(filled(data), ledger=":memory:") as survey:
        assert "on even values" in str(survey.quote(text, epsilon=1))
        answer = survey.ask(text, epsilon=1000)
        again = survey.ask("SELECT region, EVEN(p.age) + 1 AS odd, COUNT(*) FROM people p GROUP BY region", epsilon=1000)
    people = data["people"]
    even = people[people["age"] % 2 == 0].groupby("region").size()
    assert answer["e"] == even.reindex(answer["region"]).tolist()
    assert answer.margins().keys() == {"e", "n", "share"}
    assert again.replayed
    assert again["odd"] == [value + 1 for value in answer["e"]]  # type: ignore[operator]


@pytest.mark.usefixtures("even")
def test_its_noise_is_as_large_as_its_price_asks() -> None:
    with open_curator(filled(frames()), ledger=":memory:") as survey:
        (noise,) = survey.quote("SELECT EVEN(age) AS e FROM people", epsilon="1/2").plan.noises
    assert noise.scale == 2


def test_without_it_the_word_is_unknown() -> None:
    with open_curator(filled(frames()), ledger=":memory:") as survey, pytest.raises(Exception, match="EVEN"):
        survey.quote("SELECT EVEN(age) AS e FROM people", epsilon=1)
