"""A curator and an analyst, end to end on the real engine: answers, prices, errors, and what data must not change."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.catalog.declare import between, column, values
from dither.catalog.values import Budget, Catalog, Table
from dither.curator import Curator
from dither.curator import open as open_curator
from dither.engines.base import Engine
from dither.errors import ArgumentError, BudgetError, DitherError, EngineError, QueryError
from dither.exact import replay
from dither.ledger.opening import memory
from dither.mechanisms import Gaussian
from dither.planning.outputs import release
from dither.query.fluent import count, mean
from dither.query.work import Bins, Group
from journey.paid import Broken

QUESTION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"


def people(size: int = 2000) -> pd.DataFrame:
    dice = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "person": np.arange(size),
            "age": dice.integers(0, 100, size),
            "wage": np.exp(dice.normal(3, 1, size)),
            "region": dice.choice(["north", "south", "east"], size),
            "town": dice.choice([f"t{i}" for i in range(5)], size),
        }
    )


def catalog(frame: Any, epsilon: Any = 10, delta: Any = 0, **more: Any) -> Catalog:
    columns = {
        "person": column(kind="int"),
        "age": between(0, 120),
        "wage": between(0, 200),
        "region": values("north", "south", "east", "west"),
        "town": column(kind="text"),
    }
    return Catalog({"people": Table(frame, unit="person", columns=columns, **({"max_rows": 1} | more))}, Budget(epsilon, delta))


@pytest.fixture(scope="module")
def survey() -> Curator:
    return open_curator(catalog(people(), 1000), ledger=":memory:")


def with_engine(survey: Curator, engine: Engine, epsilon: Any = 10) -> Curator:
    smaller = Catalog(survey.catalog.tables, Budget(epsilon))
    return Curator(smaller, engine, memory())


# --- the ordinary day -------------------------------------------------------------------------------------------


def test_an_answer_is_a_table_with_margins(survey: Curator) -> None:
    answer = survey.ask(QUESTION, epsilon=1)
    assert answer.columns == ("region", "n", "age")
    assert answer["region"] == ["east", "north", "south", "west"]  # sorted; the empty one is shown
    assert abs(answer["n"][3]) < 60  # type: ignore[arg-type]
    assert all(abs(n - 667) < 150 for n in answer["n"][:3])  # type: ignore[operator]
    assert set(answer.margins()) == {"n", "age"}
    wider = answer.margins(0.99)
    assert all(w > m for w, m in zip(wider["n"], answer.margins(0.5)["n"], strict=True))  # type: ignore[operator]
    text = str(answer)
    assert "±" in text
    assert "charged ε = 1" in text
    assert "people.age is clipped to [0, 120]" in text
    assert "<table>" in answer._repr_html_()


def test_it_comes_in_every_form(survey: Curator) -> None:
    answer = survey.ask(QUESTION, epsilon=1)
    assert list(answer.to_pandas().columns) == list(answer.columns)
    assert answer.to_polars().shape == (4, 3)
    assert answer.to_arrow().num_rows == 4
    assert [row[1] for row in answer] == answer.to_dict()["n"]


def test_a_missing_library_is_named(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("dither.answer.import_module", missing)
    with pytest.raises(DitherError, match=r"polars is not installed.*\n.*'\.\[polars\]' in the clone"):
        survey.ask(QUESTION, epsilon=1).to_polars()


def test_html_escapes_keys() -> None:
    frame = people(10).assign(region="<b>")
    odd = Catalog({"people": Table(frame, unit="person", max_rows=1, columns={"region": values("<b>")})}, Budget(1))
    answer = open_curator(odd, ledger=":memory:").ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon=1)
    assert "<b>" not in answer._repr_html_()


def test_the_fluent_question_is_the_same_question(survey: Curator) -> None:
    fluent = survey.table("people").group_by("region").agg(n=count(), age=mean("age"))
    assert survey.quote(fluent, epsilon=1).plan == survey.quote(QUESTION, epsilon=1).plan


def test_post_processing_is_free(survey: Curator) -> None:
    before = survey.budget.spent.epsilon
    answer = survey.ask(
        "SELECT region, COUNT(*) AS n, 2 * COUNT(*) AS twice FROM people GROUP BY region "
        "HAVING COUNT(*) > 300 ORDER BY n DESC LIMIT 2",
        epsilon=1,
    )
    assert survey.budget.spent.epsilon - before == 1
    assert len(answer) == 2
    assert answer["n"] == sorted(answer["n"], reverse=True)  # type: ignore[type-var]
    assert answer["twice"] == [2 * n for n in answer["n"]]  # type: ignore[operator]
    wide = answer.margins()
    assert wide["twice"] == [2 * m for m in wide["n"]]  # type: ignore[operator]


# --- the price --------------------------------------------------------------------------------------------------


def test_ten_tenths_are_one_and_the_eleventh_is_refused() -> None:
    survey = open_curator(catalog(people(50), 1), ledger=":memory:")
    for _ in range(10):
        survey.ask("SELECT COUNT(*) FROM people", epsilon=0.1, fresh=True)
    assert survey.budget.left.epsilon == 0
    with pytest.raises(BudgetError, match="left ε = 0"):
        survey.ask("SELECT COUNT(*) FROM people", epsilon="0.0001")
    assert survey.budget.spent.epsilon == 1


def test_a_quote_reads_nothing_and_charges_nothing(survey: Curator) -> None:
    engine = Broken(AssertionError("the engine was called"))
    careful = with_engine(survey, engine)
    quote = careful.quote(QUESTION, epsilon="0.1")
    assert quote.epsilon == Fraction(1, 10)
    assert quote.margins()["n"] is not None
    assert quote.margins()["age"] is None
    assert careful.quote(QUESTION, epsilon="0.1", assume_rows=500).margins()["age"] is not None
    assert "clipped to [0, 120]" in str(quote)
    assert careful.budget.spent.epsilon == 0
    assert engine.calls == 0


@pytest.mark.parametrize("rows", [0, -1, 1.5, "many", True])
def test_rows_to_assume_are_looked_at_with_a_price_too(survey: Curator, rows: int) -> None:
    before = survey.budget.spent
    for call in (survey.ask, survey.quote):
        with pytest.raises(ArgumentError, match="assume_rows"):
            call(QUESTION, epsilon="0.1", assume_rows=rows)
    assert survey.budget.spent == before


def test_the_smallest_price_for_a_margin(survey: Curator) -> None:
    careful = with_engine(survey, Broken(AssertionError()))
    quote = careful.quote("SELECT COUNT(*) AS n FROM people", margin=50)
    assert quote.margins()["n"] == 50
    less = careful.quote("SELECT COUNT(*) AS n FROM people", epsilon=quote.epsilon * Fraction(99, 100))
    assert less.margins()["n"] > 50  # type: ignore[operator]
    with pytest.raises(DitherError, match="assume_rows"):
        careful.quote(QUESTION, margin=5)
    assert careful.quote(QUESTION, margin=5, assume_rows=500).margins()["age"] <= 5  # type: ignore[operator]
    with pytest.raises(DitherError, match="needs more than"):
        with_engine(survey, Broken(AssertionError()), epsilon="0.01").quote("SELECT COUNT(*) AS n FROM people", margin=1)


@pytest.mark.parametrize("wrong", [{}, {"epsilon": 1, "margin": 5}, {"epsilon": -1}, {"epsilon": float("nan")}, {"epsilon": 0}])
def test_prices_that_are_none_are_refused(survey: Curator, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        survey.ask("SELECT COUNT(*) FROM people", **wrong)


def test_a_pure_catalog_takes_no_delta(survey: Curator) -> None:
    with pytest.raises(ArgumentError, match="no delta"):
        survey.ask("SELECT COUNT(*) FROM people", epsilon=1, delta="1e-6")


# --- failures ---------------------------------------------------------------------------------------------------


def test_a_failing_engine_tells_nothing_and_stays_charged(survey: Curator) -> None:
    failing = with_engine(survey, Broken(ValueError("could not convert 'Mrs Miller'")))
    with pytest.raises(EngineError) as caught:
        failing.ask("SELECT COUNT(*) FROM people", epsilon=1)
    assert "Miller" not in str(caught.value)
    assert "Charged: ε = 1." in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert failing.budget.spent.epsilon == 1


def test_files_that_changed_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    people(50).to_parquet(file)
    survey = open_curator(catalog(str(file)), ledger=":memory:")
    survey.ask("SELECT COUNT(*) FROM people", epsilon=1)
    people(51).to_parquet(file)
    with pytest.raises(DitherError, match=r"no longer those that were opened(.|\n)*snapshot(.|\n)*Charged: nothing"):
        survey.ask("SELECT COUNT(*) FROM people", epsilon=1)
    assert survey.budget.spent.epsilon == 1
    assert open_curator(catalog(str(file)), ledger=":memory:").ask("SELECT COUNT(*) FROM people", epsilon=1)


@pytest.mark.usefixtures("recorded")
def test_computed_numbers_say_how_sure_they_are(survey: Curator) -> None:
    outputs = "SUM(wage) / COUNT(*) AS each, MAX(age) AS oldest, 1 / (COUNT(*) - COUNT(*)) AS odd"
    text = f"SELECT region, {outputs} FROM people GROUP BY region"
    answer = survey.ask(text, epsilon=5)
    shown = str(answer)
    assert all(margin is not None and 0 < margin < 5 for margin in answer.margins()["each"][:3])  # nobody lives in the west
    assert "oldest: the 99 % quantile, rank ±" in shown
    assert answer["odd"] == [None] * 4
    assert "± ?" in str(survey.ask("SELECT 1 / (MEDIAN(age) - 50.5) AS odd FROM people", epsilon="0.001"))
    iqr = survey.ask("SELECT QUANTILE(age, 0.75) - QUANTILE(age, 0.25) AS iqr FROM people", epsilon=50)
    assert 0 < iqr.margins()["iqr"][0] < 60  # type: ignore[operator]


def test_a_margin_for_a_computed_number_is_foretold_where_it_can_be(survey: Curator) -> None:
    careful = with_engine(survey, Broken(AssertionError()), epsilon=10)
    assert careful.quote("SELECT 100 * COUNT(*) AS n FROM people", margin=50).margins()["n"] <= 50  # type: ignore[operator]
    with pytest.raises(DitherError, match="how many rows"):
        careful.quote("SELECT SUM(age) / COUNT(*) AS a FROM people", margin=50)
    assert careful.quote("SELECT SUM(age) / COUNT(*) AS a FROM people", margin=5, assume_rows=100).margins()["a"] <= 5  # type: ignore[operator]
    with pytest.raises(DitherError, match="cannot be predicted"):
        careful.quote("SELECT SUM(age) / SUM(wage) AS a FROM people", margin=50)


def test_offset_is_post_processing(survey: Curator) -> None:
    answer = survey.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY region LIMIT 2 OFFSET 1", epsilon=1)
    assert answer["region"] == ["north", "south"]


@pytest.mark.parametrize(
    "text",
    ["SELECT town, COUNT(*) FROM people GROUP BY town", "SELECT SUM(person) FROM people", "SELECT * FROM people", "DROP x"],
)
def test_refusals_charge_nothing_and_never_reach_the_engine(survey: Curator, text: str) -> None:
    engine = Broken(AssertionError())
    careful = with_engine(survey, engine)
    with pytest.raises(QueryError, match="Charged: nothing"):
        careful.ask(text, epsilon=1)
    assert engine.calls == 0
    assert careful.budget.spent.epsilon == 0


def test_a_question_beyond_the_budget_never_reaches_the_engine(survey: Curator) -> None:
    engine = Broken(AssertionError())
    with pytest.raises(BudgetError):
        with_engine(survey, engine, epsilon=1).ask("SELECT COUNT(*) FROM people", epsilon=2)
    assert engine.calls == 0


# --- neighbours through the real engine -------------------------------------------------------------------------

ALL = (
    "SELECT {keys} COUNT(*) AS n, COUNT(age) AS known, AVG(age) AS age, SUM(wage) AS wages, VAR_SAMP(wage) AS v, "
    "MEDIAN(age) AS m, COUNT(DISTINCT town) AS towns, COUNT(DISTINCT person) AS people, CLIPPED(wage) AS far "
    "FROM people {group}"
)
row = st.tuples(
    st.one_of(st.none(), st.integers(-(2**62), 2**62)),
    st.one_of(st.none(), st.floats(width=64)),
    st.sampled_from(["north", "south", "east", "elsewhere", None]),
    st.sampled_from(["t1", "t2", "t3"]),
)


def framed(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "person": pd.array([r[0] for r in rows], dtype="Int64"),
            "age": pd.array([r[1] for r in rows], dtype="Int64"),
            "wage": np.array([np.nan if r[2] is None else r[2] for r in rows], dtype=float),
            "region": pd.array([r[3] for r in rows], dtype="string"),
            "town": pd.array([r[4] for r in rows], dtype="string"),
        }
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(row, max_size=12), st.lists(row, max_size=12), st.sampled_from(["", "region", "town"]), st.integers(1, 3))
def test_one_person_moves_the_integers_by_at_most_what_is_priced(mine: Any, others: Any, key: str, bound: int) -> None:
    rest = [(i % 3, *r) for i, r in enumerate(others)]
    text = ALL.format(keys=key + "," if key else "", group=f"GROUP BY {key}" if key else "")
    seen = []
    for rows in (rest + [(99, *r) for r in mine], rest):
        survey = open_curator(catalog(framed(rows), 10, "1e-6", max_rows=bound, max_groups=bound), ledger=":memory:")
        plan = survey.quote(text, epsilon=1).plan
        seen.append((plan, {g.key: g for g in survey.engine.run(plan.work, b"k" * 32)}))
    (plan, left), (again, right) = seen
    assert plan == again
    for place, noise in enumerate(plan.noises):
        if isinstance(noise.of.measure, Bins):
            continue  # scores are compared in tests/planning
        moves = [abs(x - y) for k in left.keys() | right.keys() for x, y in _cells(left.get(k), right.get(k), place)]
        norm = noise.mechanism.sensitivity
        if isinstance(noise.mechanism, Gaussian):
            assert sum(m * m for m in moves) <= norm.squares(None)
        else:
            assert sum(moves) <= norm.total(None)


def _cells(a: Group | None, b: Group | None, place: int) -> list[tuple[int, int]]:
    x, y = (None if g is None else g.measures[place] for g in (a, b))
    if isinstance(x, int) or isinstance(y, int):
        return [(int(x or 0), int(y or 0))]
    size = len(x if x is not None else y)  # type: ignore[arg-type]
    return list(zip(x or (0,) * size, y or (0,) * size, strict=True))


def test_shape_charge_and_status_do_not_depend_on_rows() -> None:
    text = ALL.format(keys="region,", group="GROUP BY region")
    shapes = set()
    nothing = people(300).assign(wage=float("nan"))
    nothing["age"] = nothing["age"].astype("Int64").where(nothing["age"] < 0)  # NULLs in a column of the same kind
    for frame in (people(300), people(299), people(1), people(0), nothing):
        survey = open_curator(catalog(frame), ledger=":memory:")
        answer = survey.ask(text, epsilon=1)
        missing = tuple(tuple(v is None for v in r) for r in answer)
        shapes.add((answer.columns, tuple(answer["region"]), missing, survey.budget.spent, str(answer.plan.loss)))
    assert len(shapes) == 1


def test_equal_randomness_and_equal_integers_give_equal_answers(survey: Curator) -> None:
    """Noise depends on the plan and the stream alone, so answers of neighbours differ by what their integers differ."""
    plan = survey.quote(QUESTION, epsilon=1).plan
    groups = survey.engine.run(plan.work, b"k" * 32)
    first, *rest = sorted(groups, key=lambda g: str(g.key))
    ((a, b, c),) = first.measures  # type: ignore[misc]
    moved = Group(first.key, first.units, ((a + 5, b, c),))
    with replay.stream(b"same"):
        one = release(plan, groups)
    with replay.stream(b"same"):
        two = release(plan, [*rest, moved])
    difference = np.abs(one.cells[0] - two.cells[0])
    assert difference.sum() == 5


# --- bounds with help -------------------------------------------------------------------------------------------


def test_suggestions_are_priced_and_near_the_data() -> None:
    # One percent of the rows must outweigh the ranks' noise (about 6 rows a step): 500 rows leave a chance of e^-70 to err.
    survey = open_curator(catalog(people(50_000), 10, max_rows=5, max_groups=5), ledger=":memory:")
    found = survey.suggest("people.wage", epsilon=4, by="region")
    assert survey.budget.spent.epsilon == 4
    assert 0 <= found.low < 5
    assert 150 < found.high < 400
    assert found.max_rows == 1
    assert found.max_groups == 1
    assert "[tables.people.columns]\nwage = { between = [" in str(found)
    with pytest.raises(DitherError, match="only with a delta"):
        survey.suggest("people.town", epsilon=1)
    with pytest.raises(DitherError, match="not a column"):
        survey.suggest("people.salary", epsilon=1)
    assert survey.budget.spent.epsilon == 4
