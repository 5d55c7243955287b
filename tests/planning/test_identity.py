"""The same releases have one text, others another, however the question was written and whatever is read from them."""

from __future__ import annotations

import enum
import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import mechanisms
from dither.catalog.values import Catalog
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.records import CONSTANTS, NODES, Identity, Order, encode, identity
from dither.query import fluent as dt
from dither.query import show
from dither.query.nodes import Literal
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from planning.test_charges import plans
from planning.test_golden import CATALOGS, cases
from sql.survey import CATALOG

FILE = Path(__file__).parent.parent / "golden" / "identities.txt"


def canonical(made: list[Plan], purpose: str = "answer") -> str:
    return identity(made, purpose).text


def golden() -> Iterator[tuple[str, str, Plan]]:
    for word, text, expected in cases():
        if expected.startswith("price"):
            catalog = CATALOGS[word]
            found = resolve(parse(text, catalog), catalog, text)
            yield word, text, plan(found, catalog, Price(Fraction(1, 2), catalog.budget.delta / 2))


def of(text: str, epsilon: Any = "1/2", catalog: Catalog = CATALOG) -> Plan:
    price = Price(Fraction(epsilon), catalog.budget.delta / 4)
    return plan(resolve(parse(text, catalog), catalog, text), catalog, price)


# --- the text is for ever ---------------------------------------------------------------------------------------


def texts() -> str:
    return "\n\n".join(f"{word}> {text}\n{canonical([made])}" for word, text, made in golden()) + "\n"


def test_the_texts_are_those_of_the_file() -> None:
    """A change here charges people twice for what they have. If it must be, the format gets another number."""
    found = texts()
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(found, encoding="utf-8")
    assert found.split("\n\n") == FILE.read_text(encoding="utf-8").split("\n\n")


@contextmanager
def renamed(kinds: set[type]) -> Iterator[None]:
    names = {kind: kind.__name__ for kind in kinds}
    for kind in kinds:
        kind.__name__ = f"Renamed{kind.__name__}"
    try:
        yield
    finally:
        for kind, name in names.items():
            kind.__name__ = name


def test_renamed_classes_and_other_words_leave_the_texts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    before = texts()
    noises = [noise for _, _, each in golden() for noise in each.noises]
    made = {type(part) for noise in noises for part in (noise, noise.of, noise.mechanism, noise.mechanism.sensitivity)}
    monkeypatch.setattr(show, "show_expression", lambda x, names=False: "reworded")
    for release in {type(noise.of) for noise in noises}:
        monkeypatch.setattr(release, "words", "reworded")
    with renamed({*NODES, *made, mechanisms.Threshold, Plan, Price} - {Fraction}):
        assert texts() == before
        assert "reworded" in str(plan_words())


def plan_words() -> list[str]:
    return [noise.explain("person") for _, _, each in golden() for noise in each.noises]


def test_every_field_that_counts_is_in_the_tables() -> None:
    for kind, (_, names) in NODES.items():
        assert set(names) == {field.name for field in fields(kind) if field.compare}, kind
        assert len(set(names.values())) == len(names)
    tags = [tag for tag, _ in NODES.values()]
    assert len(set(tags)) == len(tags)
    assert len(set(CONSTANTS.values())) == len(CONSTANTS) - 1  # a float is a decimal, by its exact value


def test_the_text_is_plain_json_with_a_format_number() -> None:
    text = canonical([of("SELECT region, COUNT(*) AS n FROM people GROUP BY region")])
    assert json.loads(text)["format"] == 2
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text.isascii()


# --- which questions are the same -------------------------------------------------------------------------------


@given(plans())
def test_equal_plans_have_equal_texts(one: Plan) -> None:
    assert canonical([one]) == canonical([replace(one)])


@given(plans(), plans())
def test_equal_texts_release_the_same(one: Plan, other: Plan) -> None:
    if canonical([one]) == canonical([other]):
        for mine, theirs in zip(_releases(one), _releases(other), strict=True):
            assert mine == theirs
        assert one.price == other.price
        assert sorted(map(str, one.work.keys)) == sorted(map(str, other.work.keys))


def _releases(made: Plan) -> list[tuple[str, str]]:
    """Measures and mechanisms; these plans are all about one source, so their columns need no form."""
    return sorted((str(noise.of.measure), str(noise.mechanism)) for noise in made.noises)


def test_sql_and_python_give_one_text() -> None:
    asked = dt.table(CATALOG, "people").where("age >= 18").group_by("region").agg(n=dt.count(), m=dt.quantile("age", 0.9))
    text = "SELECT region, COUNT(*) AS n, QUANTILE(age, 0.9) AS m\n FROM people  WHERE (age >= 18) GROUP BY region"
    price = Price(Fraction(1, 2), CATALOG.budget.delta / 4)
    fluent = plan(resolve(asked.query, CATALOG, asked.text), CATALOG, price)
    assert canonical([fluent]) == canonical([of(text)])
    assert canonical([of(text)]) == canonical([of(text.replace("  ", " ").replace("0.9", "0.90"))])


@pytest.mark.parametrize(
    "other",
    [
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18", "1/3"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 19"),
        of("SELECT COUNT(*) AS n FROM people WHERE age > 18.5"),
        of("SELECT COUNT(*) AS n FROM people WHERE NOT age > 18"),
        of("SELECT COUNT(income) AS n FROM people WHERE age > 18"),
        of("SELECT COUNT(*) AS n, COUNT_UNITS() AS m, COUNT(DISTINCT city) AS c FROM people WHERE age > 18"),
        of("SELECT active, COUNT(*) AS n FROM people WHERE age > 18 GROUP BY active"),
    ],
)
def test_a_different_question_or_price_has_another_text(other: Plan) -> None:
    mine = of("SELECT COUNT(*) AS n FROM people WHERE age > 18")
    assert canonical([mine]) != canonical([other])


def test_other_keys_with_the_same_values_are_another_question() -> None:
    """Both have a group for TRUE and one for FALSE, and the same noise."""
    one, other = (of(f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY k") for key in ("age > 18", "age > 65"))
    assert (one.work.known, one.noises) == (other.work.known, other.noises)
    assert canonical([one]) != canonical([other])


WRITTEN = "SELECT region, AVG(age) AS a, COUNT(*) AS n FROM people WHERE age >= 18 AND age <= 65 GROUP BY region"
SAME = [
    "select region, mean(AGE) a, count(*) from PEOPLE where age >= 18 and age <= 65 group by region -- grown-ups",
    'SELECT "region", AVG("age") AS a, COUNT(*) FROM people WHERE (("age" >= 18) AND age <= 65) GROUP BY 1',
    "SELECT people.region, AVG(people.age), COUNT(*) FROM people WHERE people.age BETWEEN 18 AND 65 GROUP BY people.region",
    WRITTEN.replace("AS a", "AS b"),
    "SELECT p.region, AVG(p.age) AS a, COUNT(*) FROM people p WHERE p.age >= 18 AND p.age <= 65 GROUP BY p.region",
    WRITTEN.replace("age >= 18", "18 <= age"),
    WRITTEN.replace("18", "18.0"),
    WRITTEN.replace("age >= 18 AND age <= 65", "age <= 65 AND age >= 18"),
    WRITTEN.replace("region, AVG(age) AS a, COUNT(*) AS n", "COUNT(*) AS n, AVG(age) AS a, region"),
    WRITTEN.replace("WHERE", "WHERE TRUE AND"),
    f"WITH p AS (SELECT region, age FROM people) {WRITTEN.replace('people', 'p')}",
    f"{WRITTEN} HAVING COUNT(*) > 3",
    f"{WRITTEN} ORDER BY a DESC",
    f"{WRITTEN} LIMIT 3",
    f"{WRITTEN} LIMIT 3 OFFSET 1",
    WRITTEN.replace("AVG(age) AS a", "SUM(age) AS s, 100 * AVG(age) AS a"),
    WRITTEN.replace("AVG(age) AS a, ", "AVG(age) / 2 AS a, SUM(age) / COUNT(*) AS b, "),
    WRITTEN.replace("region, AVG(age) AS a, COUNT(*) AS n", "AVG(age) AS a") + " ORDER BY region",
    WRITTEN.replace(", COUNT(*) AS n", "") + " HAVING COUNT(*) > 3",  # an aggregate that only decides is a release
]


@pytest.mark.parametrize("same", SAME)
def test_what_the_page_calls_the_same_has_one_text(same: str) -> None:
    assert canonical([of(same)]) == canonical([of(WRITTEN)])


@pytest.mark.parametrize(
    "other",
    [
        WRITTEN.replace("18", "19"),
        WRITTEN.replace("age <= 65", "age < 65"),
        WRITTEN.replace("region", "active"),
        WRITTEN.replace("AVG(age)", "MEDIAN(age)"),
        WRITTEN.replace("AVG(age)", "AVG(age + 1)"),
        WRITTEN.replace("COUNT(*) AS n", "COUNT(DISTINCT city) AS n"),
        WRITTEN.replace(" GROUP BY region", "").replace("region, ", ""),
        f"{WRITTEN} HAVING COUNT(DISTINCT city) > 3",  # one more release
    ],
)
def test_what_the_page_calls_a_new_question_has_another_text(other: str) -> None:
    assert canonical([of(other)]) != canonical([of(WRITTEN)])


def test_the_order_of_keys_is_no_other_question() -> None:
    text = "SELECT region, active, COUNT(*) AS n FROM people GROUP BY region, active"
    turned = text.replace("GROUP BY region, active", "GROUP BY active, region")
    assert canonical([of(text)]) == canonical([of(turned)])


@pytest.mark.parametrize("keys", [*itertools.permutations(range(3))])
def test_the_order_of_a_stored_answer_is_undone_when_it_is_read(keys: tuple[int, ...]) -> None:
    """Every order of three keys and four releases, because one that only exchanges pairs is its own way back."""
    noisy = Noisy((("a", 2, True), ("a", 3, False), ("b", 1, True)), tuple(np.arange(3)[:, None] + 10 * i for i in range(4)))
    for releases in itertools.permutations(range(4)):
        same = Identity("", (Order(keys, releases),), (0,))
        (again,) = same.read(same.write([noisy]))
        assert again.keys == noisy.keys
        assert [cells.tolist() for cells in again.cells] == [cells.tolist() for cells in noisy.cells]


def test_a_delta_that_buys_nothing_is_not_in_the_text() -> None:
    def priced(question: str) -> set[str]:
        found = resolve(parse(question, CATALOG), CATALOG, question)
        prices = [Price(Fraction(1, 10), Fraction(delta)) for delta in ("1e-8", "1e-9")]
        return {canonical([plan(found, CATALOG, price)]) for price in prices}

    count = "SELECT COUNT(*) AS n FROM people"
    pure = plan(resolve(parse(count, CATALOG), CATALOG, count), CATALOG, Price(Fraction(1, 10)))
    assert priced(count) == {canonical([pure])}
    assert len(priced("SELECT city, COUNT(*) AS n FROM people GROUP BY city")) == 2  # found keys are shown by it


def test_a_different_bound_has_another_text() -> None:
    people = CATALOG.tables["people"]
    wider = replace_bounds(people.columns["age"])
    changed = Catalog({**CATALOG.tables, "people": with_column(people, "age", wider)}, CATALOG.budget)
    text = "SELECT AVG(age) AS a FROM people"
    assert canonical([of(text)]) != canonical([of(text, catalog=changed)])


def replace_bounds(facts: Any) -> Any:
    return replace(facts, high=facts.high + 1)


def with_column(table: Any, name: str, facts: Any) -> Any:
    return replace(table, columns={**table.columns, name: facts})


def test_true_is_not_one_and_text_is_no_number() -> None:
    kinds = [True, 1, "1", None, Fraction(1, 2), "1/2"]
    found = [json.dumps(encode((value,))) for value in kinds]
    assert len(set(found)) == len(kinds)
    assert encode(Literal(True)) != encode(Literal(1))


@given(st.integers() | st.fractions(), st.integers() | st.fractions())
def test_numbers_are_told_apart_by_value_alone(one: Any, other: Any) -> None:
    assert (encode(one) == encode(other)) == (one == other)


def test_huge_numbers_have_a_spelling() -> None:
    assert encode(10**9999) != encode(10**9999 + 1)
    assert encode(Fraction(1, 10**9999)) != encode(Fraction(1, 10**9999 + 1))


@pytest.mark.parametrize("odd", [0.5, float("nan"), {"a": 1}, [1], {1}, b"x", object()])
def test_what_has_no_spelling_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError):
        encode(odd)


def test_a_purpose_is_part_of_the_text() -> None:
    made = [of("SELECT COUNT(*) AS n FROM people")]
    assert canonical(made) != canonical(made, "proposal")


class Wing(enum.IntEnum):
    EAST = 1


def test_constants_of_questions_in_python_have_a_spelling() -> None:
    assert encode(Literal(0.5)) == encode(Literal(Fraction(1, 2)))
    assert encode(Literal(0.1)) != encode(Literal(Fraction(1, 10)))
    assert encode(Literal(Wing.EAST)) == encode(Literal(1))
    with pytest.raises(TypeError):
        encode(Literal(float("inf")))
