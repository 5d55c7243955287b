"""Which noise, which keys, which grid: decided by the catalog and the question, and refused with a way out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither.catalog.rules import NEIGHBOURS
from dither.catalog.values import Rows
from dither.errors import ArgumentError, QueryError
from dither.mechanisms import Gaussian, Geometric
from dither.planning import sensitivity as grids
from dither.planning.outputs import release, table
from dither.planning.releases.base import Noise
from dither.planning.releases.count import Combined
from dither.planning.releases.count import Rows as CountedRows
from dither.planning.releases.keys import combinations, public_keys
from dither.planning.releases.sums import Ratio, Total
from dither.planning.sensitivity import Bounding
from dither.privacy import sensitivity
from dither.privacy.losses import Approx
from dither.privacy.neighbours import AddRemove, Replace, relation_named
from dither.query.functions.base import Facts
from dither.query.nodes import Column, Named
from dither.query.work import Group, Quantised
from planning.hand import AGE, WAGE, ask, planned, query

DELTA = Fraction(1, 10**6)


def test_the_noise_with_the_smaller_error_is_taken() -> None:
    asked = query(ask("n", "count"), keys=("region", "age"))
    few, many = (planned(asked, 1, DELTA, max_groups=groups) for groups in (1, 60))
    assert isinstance(few.noises[0].mechanism, Geometric)
    assert few.loss.pair() == (1, 0)  # the delta is not spent where it buys nothing
    assert isinstance(many.noises[0].mechanism, Gaussian)
    assert many.loss.pair() == (1, DELTA)
    pure = planned(asked, 1, max_groups=60)
    assert many.noises[0].variance < pure.noises[0].variance


def test_pure_questions_never_get_gaussian_noise() -> None:
    assert not planned(query(ask("n", "count"), keys=("region", "age")), 1, max_groups=60).noises[0].gaussian


def test_keys_that_are_not_public_need_a_delta_and_say_both_ways_out() -> None:
    with pytest.raises(QueryError, match=r"values.*delta"):
        planned(query(ask("n", "count"), keys=("town",)))
    plan = planned(query(ask("n", "count"), keys=("town",)), 1, DELTA, max_groups=3)
    assert plan.threshold is not None
    assert plan.threshold.keys_per_unit == 3
    assert planned(query(ask("n", "count"), keys=("town",)), 1, DELTA, neighbours="replace").threshold.keys_per_unit == 2  # type: ignore[union-attr]


def test_without_group_by_there_is_one_group() -> None:
    assert planned(query(ask("n", "count")), max_rows=5, max_groups=None).bounding.max_groups == 1


def test_too_many_public_groups_are_refused() -> None:
    wide = Facts("int", values=tuple(range(10_000)))
    with pytest.raises(QueryError, match="110000 public groups"):
        public_keys([Named("a", Column("a")), Named("b", Column("b"))], [wide, Facts("int", values=tuple(range(11)))])


def test_discovered_keys_are_shown_by_their_units_and_nothing_else() -> None:
    plan = planned(query(ask("n", "count"), keys=("town",)), 4, Fraction(1, 1000))
    sure, never = Group(("big",), 10**6, ((10**6,),)), Group(("none",), 0, ((0,),))
    for _ in range(20):
        assert [row[0] for row in table(plan, release(plan, [sure, never])).rows] == ["big"]
    assert table(plan, release(plan, [])).rows == ()


def test_keys_come_sorted_with_null_last() -> None:
    assert combinations((("b", "a", None), (True, False))) == [
        *(("a", flag) for flag in (False, True)),
        *(("b", flag) for flag in (False, True)),
        *((None, flag) for flag in (False, True)),
    ]
    assert combinations((("", "x"),)) == [("",), ("x",)]


def test_joint_releases_are_shared() -> None:
    plan = planned(query(ask("n", "count"), ask("a", "avg", "wage"), ask("s", "sum", "wage"), ask("c", "count", "wage")))
    assert len(plan.noises) == 1
    assert plan.noises[0].of.cells == 2  # the catalog says that wage is never NULL
    nullable = planned(query(ask("n", "count"), ask("a", "avg", "age")))
    assert nullable.noises[0].of.cells == 3
    assert planned(query(ask("a", "avg", "age"))).noises[0].of.cells == 2
    two = planned(query(ask("n", "count"), ask("a", "avg", "age"), ask("w", "avg", "wage")))
    combined = two.reading("n")
    assert isinstance(combined, Combined)
    count = combined.linear(two.noises)
    assert {term.noise for term in count.terms} == {0, 1}  # both columns' counts, weighted
    one = planned(query(ask("n", "count"), ask("a", "avg", "wage")), two.noises[1].mechanism.epsilon)
    alone, sure = one.reading("n"), Fraction(19, 20)
    assert alone is not None
    assert combined.predicted(two.noises, None, sure) < alone.predicted(one.noises, None, sure)  # type: ignore[operator]


def test_a_sum_alone_is_not_charged_for_its_offset() -> None:
    asked = query(ask("s", "sum", "wage"))
    noise = planned(asked).noises[0]
    assert noise.of.cells == 1
    step = noise.of.measure.cells[0].argument.step
    assert noise.of.row * step == 50  # max(|-10|, |50|), where the range is 60


def test_grids_are_public_and_fit() -> None:
    x = Column("x")
    asked = ask("s", "sum", "x")
    wage = grids.sum_grid(x, WAGE, asked)
    assert 2**20 <= wage.steps <= 2**22
    assert wage.low <= -10
    assert wage.low + wage.step * wage.steps >= 50
    assert grids.sum_grid(x, AGE, asked) == Quantised(x, Fraction(0), Fraction(1), 120)
    assert grids.sum_grid(x, Facts("int", Fraction(0), Fraction(2**62), whole=True, step=Fraction(1)), asked).steps <= 2**22
    cents = Facts("real", Fraction(0), Fraction(250000), step=Fraction(1, 100))
    assert grids.sum_grid(x, cents, asked).steps == 25_000_000
    with pytest.raises(QueryError, match="2\\^40"):
        grids.sum_grid(x, Facts("real", Fraction(0), Fraction(10**9), step=Fraction(1, 10**9)), asked)
    point = grids.sum_grid(x, Facts("real", Fraction(3), Fraction(3)), asked)
    assert point.steps >= 1
    with pytest.raises(QueryError, match="no bounds"):
        grids.sum_grid(x, Facts("real"), asked)


def test_wide_grids_get_their_noise_number_by_number() -> None:
    row = 2**30
    noise = Noise(
        Total(Column("x"), Quantised(Column("x"), Fraction(0), Fraction(1), row), 1, False),
        Geometric(epsilon=1, sensitivity=row),
    )
    exact = row * 2**40 * 5  # beyond 64 bits
    found = noise.release([(exact,)])
    assert abs(int(found[0, 0]) - exact) < row * 100
    narrow = Noise(CountedRows(1), Geometric(epsilon=1, sensitivity=1))
    assert np.isfinite(narrow.release([(2**100,), (-(2**100),)]).astype(float)).all()  # held at the ends, never an error


def test_noise_out_of_range_is_refused_in_words() -> None:
    with pytest.raises(QueryError, match="out of range: more than 10\\^12 steps") as wide:
        planned(query(ask("a", "avg", "wage")), Fraction(1, 10**9))
    assert (
        wide.value.fix == "spend a larger epsilon, or declare a coarser step for the column, or smaller max_rows or max_groups."
    )
    with pytest.raises(QueryError, match="out of range: less than a thousandth of a step") as narrow:
        planned(query(ask("n", "count")), Fraction(10**7))
    assert narrow.value.fix == "spend a smaller epsilon."
    with pytest.raises(QueryError, match="out of range: more than") as many:
        planned(query(ask("n", "count")), Fraction(1, 10**14))
    assert many.value.fix == "spend a larger epsilon, or declare smaller max_rows or max_groups."


def test_a_public_minimum_speaks_only_of_values_that_are_there() -> None:
    from_all = planned(query(ask("a", "avg", "wage")), rows=Rows(at_least=100)).readings[0]
    from_some = planned(query(ask("a", "avg", "age")), rows=Rows(at_least=100)).readings[0]
    assert isinstance(from_all, Ratio)
    assert isinstance(from_some, Ratio)
    assert (from_all.least, from_some.least) == (100, 1)


@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (3, 1), (2, 5)])
def test_sensitivity_is_reached_by_somebody(rows: int, groups: int) -> None:
    """The worst unit: all its rows at the bound, in as many groups as it may be in."""
    for relation, changes in ((AddRemove(), 1), (Replace(), 2)):
        bounding = Bounding(rows, groups, None, relation)
        assert bounding.total(7, 2, False) == 7 * rows * groups * changes
        assert bounding.l1(7, 1, False).total(None) == bounding.total(7, 1, False)
        assert bounding.l2(7, 3, True).squares(None) == bounding.squares(7, 3, True)


# Two groups with up to three rows each, and a row moves a measure by 10: who leaves takes 30 out of two groups, and who
# enters brings 30 into two.
EXCHANGED = Bounding(3, 2, None, Replace())


def test_who_is_replaced_touches_the_groups_they_leave_and_those_another_enters() -> None:
    assert EXCHANGED.touched == 4
    assert EXCHANGED.total(10, cells=1, signed=False) == 4 * 30
    assert EXCHANGED.squares(10, cells=1, signed=False) == 4 * 30**2
    assert Bounding(3, 2, 3, Replace()).touched == 3, "there are no more than that"


def test_who_is_replaced_moves_several_cells_by_both_worths() -> None:
    """One group may lose 30 in one cell and gain 30 in another."""
    assert EXCHANGED.total(10, cells=2, signed=False) == 2 * (30 + 30)
    assert EXCHANGED.squares(10, cells=2, signed=False) == 2 * (30**2 + 30**2)


@pytest.mark.parametrize("cells", [1, 2])
def test_signed_worths_of_two_people_add_up_before_they_are_squared(cells: int) -> None:
    """Who leaves may have had -30 where who enters brings 30."""
    assert EXCHANGED.squares(10, cells, signed=True) == 2 * (30 + 30) ** 2


def test_discovered_keys_and_gaussian_noise_get_half_of_delta_each() -> None:
    epsilon, delta = Fraction(1, 10), Fraction(1, 5)
    plan = planned(query(ask("n", "count"), keys=("town",)), epsilon, delta)
    noise = plan.noises[0].mechanism
    assert isinstance(noise, Gaussian)
    assert noise.delta == plan.threshold.delta == delta / 2  # type: ignore[union-attr]
    assert plan.loss == Approx(epsilon, delta)


@pytest.mark.parametrize("relation", [AddRemove(), Replace()])
def test_the_planner_and_the_library_agree_on_one_row_each(relation: AddRemove | Replace) -> None:
    """One row per unit: a count, a sum from 0 and a histogram are as sensitive here as privacy/sensitivity.py says."""
    alone, among = Bounding(1, 1, 1, relation), Bounding(1, 1, None, relation)
    assert alone.total(1, 1, False) == sensitivity.count(relation)
    assert alone.total(120, 1, False) == sensitivity.sum(0, 120, relation)
    assert among.total(1, 1, False) == sensitivity.histogram(relation)
    wide = sensitivity.sum(-10, 50, relation)
    assert isinstance(wide, Fraction)
    assert alone.total(50, 1, True) >= wide  # a signed sum is taken for one over [-50, 50]


@pytest.mark.parametrize("relation", [AddRemove(), Replace()])
def test_a_plan_holds_the_relation_that_its_catalog_names(relation: AddRemove | Replace) -> None:
    assert (
        planned(query(ask("s", "sum", "age")), neighbours=relation.name).bounding.neighbours
        == relation_named(relation.name)
        == relation
    )


def test_a_catalog_knows_the_names_of_the_relations() -> None:
    assert [relation_named(name).name for name in NEIGHBOURS] == list(NEIGHBOURS)
    with pytest.raises(ArgumentError, match="neighbours cannot be"):
        relation_named("swap")
