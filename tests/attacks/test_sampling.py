"""Samples of units on the whole path: neighbours with the same coins, nothing but noisy numbers told, refusals uncharged."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dither as dt
from attacks.moved import channels, complaints
from attacks.neighbours import add, filled, heavy, ordinary, poisoned, survey, without
from attacks.paths import Change, Observation, looser, observe, open_observed
from dither.engines.base import Engine
from dither.query.sample import is_sampled, sample_key
from dither.query.work import Group, Work
from planning.test_golden import cases as plans

HALF, SECRET = "1/2", b"known to the test only"
GOLDEN = list(dict.fromkeys(text for _, text, _ in plans()))


def with_one(person: Any) -> Any:
    tables = survey()
    add(tables, person)
    return tables


TABLES = {
    "nobody more": survey,
    "one ordinary": lambda: with_one(ordinary(555, random.Random(5))),
    "one heavy": lambda: with_one(heavy()),
    "one poisoned": lambda: with_one(poisoned()),
    "one less": lambda: without(survey(), 7),
}


@cache
def asked(table: str, key: bytes = b"coins") -> list[Observation]:
    curator = open_observed(filled(TABLES[table]()))
    return [observe(curator, question, 2, "1e-6", key=key, sample=HALF) for question in GOLDEN]


@pytest.mark.slow
@pytest.mark.parametrize("table", [name for name in TABLES if name != "nobody more"])
def test_a_neighbour_moves_the_integers_of_a_sample_by_what_is_priced_and_shows_nothing_else(table: str) -> None:
    compared = list(zip(GOLDEN, asked("nobody more"), asked(table), strict=True))
    answered = [(question, a, b) for question, a, b in compared if a.plan is not None]
    assert len(answered) > 30
    assert all(a.plan is not None and a.plan.work.sample == dt.Pure(HALF).epsilon() for _, a, _ in answered)
    assert [(question, found) for question, a, b in answered if (found := complaints(a, b))] == []
    assert [(question, found) for question, a, b in compared if (found := channels(a, b))] == []


VISITS = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward"


def test_that_comparison_can_fail() -> None:
    """The twin: an engine that lets each unit of the sample in with twenty times the rows."""
    loose = looser(rows=20)
    keys = [bytes([n]) for n in range(8)]  # the heavy person is in about half of the samples
    curators = [open_observed(filled(TABLES[name]()), loose) for name in ("nobody more", "one heavy")]
    found = [complaints(*(observe(each, VISITS, 2, key=key, sample=HALF) for each in curators)) for key in keys]
    assert any(found)


def test_one_persons_rows_are_in_or_out_together_and_other_people_stay() -> None:
    """With the same coins, a person more changes nothing about who else is in the sample, over joined tables too."""
    question = "SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.person_id = v.person_id"
    before, after = (open_observed(filled(TABLES[name]())) for name in ("nobody more", "one heavy"))
    moved = set()
    for n in range(24):
        a, b = (observe(each, question, 2, key=bytes([n]), sample=HALF).only()[0][0] for each in (before, after))
        moved.add(b - a)
    assert len(moved) == 2  # nothing, or all that the person counts for
    assert 0 in moved


def ignoring_the_sample(work: Work) -> Work:
    return replace(work, sample=None)


@pytest.mark.parametrize(("change", "whole"), [(None, False), (ignoring_the_sample, True)])
def test_the_engine_looks_at_a_sample_only(change: Change | None, whole: bool) -> None:
    curator = open_observed(filled(survey()), change)
    question = "SELECT COUNT(*) AS n FROM people"
    everybody = observe(curator, question, 2).only()
    assert (observe(curator, question, 2, sample="1/10").only() == everybody) is whole


def test_nothing_but_the_noisy_numbers_depends_on_the_sample() -> None:
    """Other coins, the same noisy numbers: answer, margins, notes, ledger entries and receipt are equal. So no size of a
    sample is told."""
    question = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
    curator = open_observed(filled(survey()))
    first = observe(curator, question, 1, key=b"one", sample=HALF)
    again = observe(curator, question, 1, key=b"two", like=first.trace, sample=HALF)
    assert first.groups != again.groups
    assert first.answer is not None
    assert again.answer is not None
    assert str(first.answer.table) == str(again.answer.table)
    assert first.answer.margins() == again.answer.margins()
    assert first.answer.notes()[:-1] == again.answer.notes()[:-1]
    assert first.entries == again.entries
    assert first.charge == again.charge


# --- meaning, price, stored answers ---------------------------------------------------------------------------------


def people(count: int = 3000) -> dt.Catalog:
    dice = random.Random(3)
    who = [person for person in range(count) for _ in range(dice.choice([1, 2]))]
    rows = [(person, dice.choice(["north", "south"]), dice.randint(0, 120)) for person in who]
    names = ("person", "region", "age")
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    columns = {"region": dt.values("north", "south"), "age": dt.between(0, 120)}
    return dt.Catalog({"t": dt.Table(table, unit="person", max_rows=2, max_groups=2, columns=columns)}, dt.Budget(10**7))


def with_secret(engine: Engine, work: Work) -> list[Group]:
    return engine.run(work, SECRET)


def opened(catalog: dt.Catalog) -> dt.Curator:
    curator = dt.open(catalog, ":memory:", make=True)
    curator.steps = replace(curator.steps, run=with_secret)
    return curator


BY_REGION = "SELECT region, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, COUNT(DISTINCT person) AS p FROM t GROUP BY region"


def test_at_a_large_epsilon_it_is_plain_sql_on_the_sampled_people_divided_by_q() -> None:
    catalog = people()
    key, q = sample_key(SECRET), dt.Pure("1/5").epsilon()
    with opened(catalog) as curator:
        answer = curator.ask(BY_REGION, epsilon=400, sample="1/5")
        kept = [person for person in range(3000) if is_sampled(key, person, q)]
        t = catalog.tables["t"].source  # noqa: F841 - read by DuckDB
        plain = duckdb.sql(BY_REGION.replace(" FROM t", " FROM t SEMI JOIN (SELECT unnest($kept) AS person) USING (person)")
                           + " ORDER BY region", params={"kept": kept}).fetchall()  # fmt: skip
        for (region, n, s, a, each), (known, *truth) in zip(answer.rows, plain, strict=True):
            assert region == known
            assert (n, each) == (pytest.approx(5 * truth[0], rel=1e-3), 5 * truth[3])
            assert s == pytest.approx(5 * float(truth[1]), rel=1e-3)
            assert a == pytest.approx(float(truth[2]), rel=1e-3)
        whole = {row[0]: row[1:] for row in duckdb.sql(BY_REGION).fetchall()}
        wide = answer.margins()
        for place, row in enumerate(answer.rows):
            for name, value, truth in zip(("n", "s", "a", "p"), row[1:], whole[row[0]], strict=True):
                assert abs(value - float(truth)) <= wide[name][place]


def test_the_charge_is_the_quote_and_the_named_price() -> None:
    with dt.open(people(), ":memory:", make=True) as curator:
        quote = curator.quote(BY_REGION, epsilon="0.1", sample="1/10")
        assert "noise at ε = 0.718673 on the sample, charged ε = 0.1" in str(quote)
        answer = curator.ask(BY_REGION, epsilon="0.1", sample="1/10")
        assert curator.budget.spent.epsilon == quote.epsilon == dt.Pure("0.1").epsilon()
        assert {each["sample"] for each in answer.receipt.body["mechanisms"]} == {"1/10"}
        assert quote.as_data()["sample"] == answer.as_data()["sample"] == "1/10"


def test_a_sampled_answer_is_given_again_and_serves_no_other_question() -> None:
    with dt.open(people(), ":memory:", make=True) as curator:
        first = curator.ask(BY_REGION, epsilon=1, sample="1/10")
        assert curator.ask(BY_REGION, epsilon=1, sample="0.1").replayed
        assert not curator.ask(BY_REGION, epsilon=1, sample="1/5").replayed
        with pytest.raises(dt.DitherError, match="No earlier answer gives this"):
            curator.ask("SELECT COUNT(*) AS n FROM t", free=True)
        whole = curator.ask(BY_REGION, epsilon=1)
        assert not whole.replayed
        served = curator.ask("SELECT COUNT(*) AS n FROM t", free=True)
        assert served.as_data()["made_of"] == [whole.receipt.body["entry"]["number"]]
        assert first.plan.sample is not None


def test_sums_of_either_sign_have_a_margin_beside_their_count() -> None:
    held_rows = pa.table({"person": list(range(4000)), "net": [n % 101 - 50 for n in range(4000)]})
    held = dt.Table(held_rows, unit="person", max_rows=1, max_groups=1, columns={"net": dt.between(-50, 50)})
    question = (
        "SELECT SUM(net) AS s, COUNT(net) AS n, SUM(net) FILTER (WHERE net > 0) AS t, COUNT(net) FILTER (WHERE net > 0) AS m, "
        "SUM(net) / COUNT(net) AS each FROM t"
    )
    with opened(dt.Catalog({"t": held}, dt.Budget(1000))) as curator:
        answer = curator.ask(question, epsilon=20, sample="1/2")
        (truth,) = duckdb.sql(question.replace("FROM t", "FROM held_rows")).fetchall()
        for (name, (wide,)), value, true in zip(answer.margins().items(), answer.rows[0], truth, strict=True):
            assert abs(value - true) <= wide, name
        consistent = answer.consistent()
        assert abs(consistent["n"][0] - 4000) <= consistent.margins()["n"][0]


# --- refusals -------------------------------------------------------------------------------------------------------

FILE = Path(__file__).parent.parent / "golden" / "sample_to_error.txt"


def refusal(question: str, terms: dict[str, Any]) -> str:
    tables = {
        "t": dt.Table({"person": [1], "age": [3], "net": [0], "region": ["a"]}, unit="person", max_rows=2, max_groups=2,
                      columns={"age": dt.between(0, 9), "net": dt.between(-5, 5), "region": dt.values("a", "b")}),
        "r": dt.Table({"x": [1]}, unit="row", columns={"x": dt.between(0, 9)}),
        "open": dt.Table({"person": [1], "k": ["a"]}, unit="person", columns={"k": dt.values("a", "b")}),
    }  # fmt: skip
    replaced = {"t": dt.Table({"person": [1]}, unit="person", max_rows=1, rows={"public": 1})}
    catalog = dt.Catalog(tables, dt.Budget(10, "1e-3")) if "FROM n" not in question else None
    catalog = catalog or dt.Catalog(replaced, dt.Budget(10), neighbours="replace")
    asked: Any = question.replace("FROM n", "FROM t").split("; ")
    with dt.open(catalog, ":memory:", make=True) as curator:
        with pytest.raises(dt.DitherError) as caught:
            curator.ask(asked if len(asked) > 1 else asked[0], **({"epsilon": 1, "sample": "1/10"} | terms))
        assert not curator.budget.spent.epsilon
        return str(caught.value)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("SELECT MEDIAN(age) AS m FROM t", {}),
    ("SELECT MEDIAN(age) AS m, QUANTILE(age, 0.9) AS q FROM t", {}),
    ("SELECT COUNT(DISTINCT age) AS n FROM t", {}),
    ("SELECT STDDEV(age) AS s FROM t", {}),
    ("SELECT MAX(age) AS top FROM t", {}),
    ("SELECT MODE(region) AS r FROM t", {}),
    ("SELECT SUM(net) AS s FROM t", {}),
    ("SELECT SUM(net) FILTER (WHERE age > 3) AS s FROM t", {}),
    ("SELECT region, COUNT(*) AS n FROM t GROUP BY ROLLUP (region)", {}),
    ("SELECT SUM(n) AS n FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)", {}),
    ("SELECT COUNT(*) AS n FROM r", {}),
    ("SELECT k, COUNT(*) AS n FROM open GROUP BY k", {}),
    ("SELECT COUNT(*) AS n FROM n", {}),
    ("SELECT COUNT(*) AS n FROM t; SELECT AVG(age) AS a FROM t", {}),
    ("SELECT COUNT(*) AS n FROM t", {"epsilon": None, "margin": 50}),
    ("SELECT COUNT(*) AS n FROM t", {"left_out": True}),
    ("SELECT COUNT(*) AS n FROM t", {"epsilon": None, "free": True}),
    ("SELECT COUNT(*) AS n FROM t", {"sample": 0}),
    ("SELECT COUNT(*) AS n FROM t", {"sample": 1}),
    ("SELECT COUNT(*) AS n FROM t", {"sample": "a tenth"}),
    ("SELECT COUNT(*) AS n FROM t", {"delta": "1/2"}),
]


def test_refusals_are_as_printed() -> None:
    blocks = [f"{question} {terms or ''}".rstrip() + f"\n{refusal(question, terms)}" for question, terms in REFUSED]
    text = "\n\n".join(blocks) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(text, encoding="utf-8")
    assert text == FILE.read_text(encoding="utf-8")
