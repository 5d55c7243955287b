"""Answers from stored numbers: what follows from earlier answers, and what it means."""

from __future__ import annotations

from typing import Any

import pytest

import dither as dt
from dither.curator import Curator
from dither.planning.free.derive import derive, sources, wanted
from dither.planning.free.stored import parts_of
from dither.planning.records import encode_noisy
from dither.planning.terms import Terms
from dither.query.read import read
from planning.free_survey import frames, survey, truth, without_engine

BY_TWO = "SELECT region, sex, COUNT(*) AS n, AVG(age) AS a, SUM(income) AS s FROM people GROUP BY region, sex"
DECADES = "SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM people GROUP BY d"
MONTHS = "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM people GROUP BY m"
ADULTS = "SELECT region, COUNT(*) AS n, SUM(income) AS s FROM people WHERE age >= 18 GROUP BY region"
PARTS = (
    "SELECT region, sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 18) AS c, COUNT(*) FILTER (WHERE age >= 65) AS o "
    "FROM people GROUP BY region, sex"
)
FIVES = "SELECT BUCKET(age, 5) AS d, COUNT(*) AS n FROM people GROUP BY d"
YEARS = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"

FREE = [
    (BY_TWO, "SELECT COUNT(*) AS n FROM people"),
    (BY_TWO, "SELECT SUM(income) AS s FROM people"),
    (BY_TWO, "SELECT AVG(age) AS a, COUNT(age) AS k, COUNT(*) AS n FROM people"),
    (BY_TWO, "SELECT AVG(age) AS a FROM people"),
    (BY_TWO, "SELECT sex, SUM(income) AS s, COUNT(*) AS n, SUM(income) / COUNT(*) AS m FROM people GROUP BY sex"),
    (BY_TWO, "SELECT COUNT(*) AS n FROM people WHERE region = 'north'"),
    (BY_TWO, "SELECT region, COUNT(*) AS n FROM people WHERE sex = 'F' AND region <> 'west' GROUP BY region"),
    (BY_TWO, "SELECT COUNT(DISTINCT id) AS n FROM people WHERE region IN ('north', 'south')"),
    (BY_TWO, "SELECT CASE WHEN region = 'north' THEN 'up' ELSE 'down' END AS k, COUNT(*) AS n FROM people GROUP BY k"),
    (BY_TWO, "SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING region = 'south'"),
    (
        BY_TWO,
        "SELECT sex, n, ROUND(100 * n / SUM(n) OVER (), 3) AS p FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
    ),
    (ADULTS, "SELECT COUNT(*) AS n, SUM(income) AS s FROM people WHERE 18 <= age"),
    (ADULTS, "SELECT SUM(income) AS s FROM people WHERE age >= 18 AND region = 'east'"),
    (DECADES, "SELECT FLOOR(age / 20) AS d, COUNT(*) AS n FROM people GROUP BY d"),
    (
        DECADES,
        "SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS k, COUNT(*) AS n FROM people WHERE age >= 0 GROUP BY k",
    ),
    (YEARS, "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 64"),
    (PARTS, "SELECT COUNT(*) AS n FROM people"),
    (PARTS, "SELECT sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 18) AS c FROM people GROUP BY sex"),
    (PARTS, "SELECT COUNT(*) FILTER (WHERE age < 18) AS c FROM people"),
    (FIVES, "SELECT COUNT(*) AS n FROM people WHERE age >= 65"),
    (MONTHS, "SELECT YEAR(born) AS y, COUNT(*) AS n FROM people GROUP BY y"),
    (MONTHS, "SELECT COUNT(*) AS n FROM people WHERE born >= '2021-01-01'"),
    ("SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS m FROM people"),
    (
        "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    ),
]


@pytest.mark.parametrize(("earlier", "asked"), FREE)
def test_a_free_answer_at_a_large_price_is_duckdbs(earlier: str, asked: str) -> None:
    with survey(max_rows=100) as curator:
        curator.ask(earlier, epsilon=10**5 if "SUM" in earlier else 500, **({"max_groups": 4} if "visits" in earlier else {}))
        answer = curator.ask(asked, free=True, **({"max_groups": 4} if "visits" in asked else {}))
    noisy = {field.name for field in answer.schema if field.noisy}
    found = _by_key(answer.columns, answer.rows, noisy)
    expected = _by_key(answer.columns, truth(asked), noisy)
    expected.pop((None,), None)  # NULL is declared for no key
    assert set(expected) <= set(found)
    for key, values in found.items():
        for value, right in zip(values, expected.get(key, (0,) * len(values)), strict=True):
            assert abs(value - float(right)) <= 0.02 + 1e-5 * abs(float(right)), (key, values, expected.get(key))


def _by_key(columns: tuple[str, ...], rows: Any, noisy: set[str]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the noisy values of each row by its keys."""
    places = [place for place, name in enumerate(columns) if name in noisy]
    keys = [place for place, name in enumerate(columns) if name not in noisy]
    return {tuple(row[place] for place in keys): tuple(row[place] for place in places) for row in rows}


def test_bins_that_are_unions_of_earlier_bins() -> None:
    with survey() as curator:
        curator.ask(FIVES, epsilon=500)
        answer = curator.ask("SELECT BUCKET(age, 20) AS d, COUNT(*) AS n FROM people GROUP BY d", free=True)
    expected = dict(truth("SELECT FLOOR(age / 20) * 20, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY 1"))
    assert {key: n for key, n in answer if n} == expected


def test_a_total_is_the_sum_of_the_stored_numbers_and_nothing_else() -> None:
    with survey() as curator:
        groups = curator.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon="0.1")
        total = without_engine(curator).ask("SELECT COUNT(*) AS n FROM people", free=True)
        assert total["n"] == [sum(groups["n"])]
        assert total.made_of == (groups.receipt.body["entry"]["number"],)


def test_no_engine_is_called_and_nothing_is_charged() -> None:
    with survey(epsilon=1) as curator:
        curator.ask(BY_TWO, epsilon=1)
        without_engine(curator)
        before, head = curator.budget, curator.ledger.head()
        answer = curator.ask("SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex", free=True)
        again = curator.ask("SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex", free=True)
        assert (answer.rows, answer.margins()) == (again.rows, again.margins())
        assert (curator.budget, curator.ledger.head()) == (before, head), "the budget is spent, and a free answer is given"
        assert "charged nothing" in answer.footer()


def test_that_check_can_fail() -> None:
    with survey(epsilon=1) as curator:
        curator.ask(BY_TWO, epsilon="0.5")
        without_engine(curator)
        with pytest.raises(AssertionError, match="an engine was called"):
            curator.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.1")


def test_other_data_under_the_same_ledger_gives_the_same_free_answer(tmp_path: Any) -> None:
    """The rows may change altogether: only stored numbers count."""
    ledger = str(tmp_path / "a.ledger")
    question = "SELECT sex, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY sex"
    with survey(ledger=ledger, seed=1, analyst="ana") as curator:
        curator.ask(BY_TWO, epsilon=1000)
        first = curator.ask(question, free=True)
    with survey(ledger=ledger, seed=2, analyst="ana") as curator:
        assert curator.ask(question, free=True).rows == first.rows
        assert curator.ask(question, epsilon=1000).rows != first.rows, "a new answer depends on the rows"


def test_several_earlier_answers_are_combined_by_inverse_variance() -> None:
    question = "SELECT COUNT(*) AS n FROM people"
    with survey() as curator:
        curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        (alone,) = curator.ask(question, free=True).margins()["n"]
        curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=2)
        both = curator.ask(question, free=True)
        assert len(both.made_of) == 2
        assert both.margins()["n"][0] < alone
        curator.ask(question, epsilon=500)
        best = curator.ask(question, free=True)
        assert best["n"] == [1200]
        assert best.margins()["n"] == [0.0]


def test_noise_decides_nothing(tmp_path: Any) -> None:
    """Which answers are used, and the margins, are the same whatever was drawn."""
    found = set()
    for _ in range(3):
        with survey() as curator:
            for text in (BY_TWO, YEARS, DECADES):
                curator.ask(text, epsilon="0.5")
            answer = curator.ask("SELECT COUNT(*) AS n FROM people", free=True)
            found.add((answer.made_of, tuple(answer.margins()["n"])))
    assert len(found) == 1


def test_people_add_up_only_where_each_is_in_one_group() -> None:
    with survey() as curator:
        curator.ask("SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward", epsilon=1)
        with pytest.raises(dt.QueryError, match="No earlier answer"):
            curator.ask("SELECT COUNT(DISTINCT person) AS n FROM visits", free=True)
        one = curator.ask("SELECT COUNT(DISTINCT person) AS n FROM visits WHERE ward = 'a'", free=True)
        assert one.made_of == (4,)


def test_an_answer_says_how_people_were_bounded() -> None:
    with survey() as curator:
        curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
        total = curator.ask("SELECT COUNT(*) AS n FROM visits", free=True)
        picked = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE ward = 'b'", free=True)
        same = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", free=True)
    bounds = "each person counts at most 5 rows' worth in each group by visits.ward, in at most 2 of them"
    assert f"{bounds}; asked alone, the bounds would be on its own groups" in total.footer()
    assert f"{bounds}; asked alone, the bounds would be on its own groups" in picked.footer()
    assert bounds in same.footer()
    assert "asked alone" not in same.footer()
    assert "rows with other values of visits.ward" in total.footer()


def test_margins_are_nominal_after_numbers_were_seen() -> None:
    question = "SELECT COUNT(*) AS n FROM people"
    with survey(analyst="ana") as curator:
        curator.ask(BY_TWO, epsilon=1)
        assert "nominal" in curator.ask(question, free=True).footer()
        other = curator.ask(question, free=True, analyst="ben")
        assert "nominal" not in other.footer()
        assert "nominal" in curator.ask(question, free=True, analyst="ben").footer(), "now ben has seen them"


def test_a_quote_offers_margins_and_no_value() -> None:
    question = "SELECT COUNT(*) AS n FROM people"
    with survey() as curator:
        assert curator.quote(question, epsilon="0.1").free is None
        groups = curator.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon="0.1")
        quote = curator.quote(question, epsilon="0.1")
        total = sum(groups["n"])
        answer = curator.ask(question, free=True)
    assert quote.free is not None
    assert quote.free.margins == {"n": answer.margins()["n"][0]}
    assert f"free from earlier answers: ± {round(answer.margins()['n'][0])} (nominal); new: ε = 0.1 for ± 30" in str(quote)
    assert str(total) not in str(quote)
    assert quote.as_data()["free"]["made_of"] == list(answer.made_of)


def test_a_receipt_is_enough_to_compute_the_answer_again() -> None:
    question = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex"
    with survey() as curator:
        for text in (BY_TWO, "SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex"):
            curator.ask(text, epsilon=1)
        receipt = curator.ask(question, free=True).receipt
        curator.ask("SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people WHERE TRUE GROUP BY sex", epsilon=100)
        assert curator.ask(question, free=True).receipt.body["numbers"] != receipt.body["numbers"], "a better answer came later"
        assert _again(curator, receipt) == receipt.body["numbers"]


def _again(curator: Curator, receipt: dt.Receipt) -> str:
    """Computes the numbers of a receipt again from the entries it names."""
    from dither.ledger.records import Committed, Reserved, digest, parse

    store = curator.ledger.store
    plans, payloads = {}, {}
    for place in receipt.body["made_of"]:
        row = store.entry(place["number"])
        assert row is not None
        assert row.hash == place["hash"]
        answer = parse(row).record
        assert isinstance(answer, Committed)
        before = store.entry(answer.reserved)
        assert before is not None
        asked = parse(before).record
        assert isinstance(asked, Reserved)
        plans[row.number], payloads[row.number] = asked.plan, answer.payload
    terms = Terms.free("0.95", None, None, None)
    want = wanted(read(receipt.body["question"], curator.catalog), curator.catalog, terms)
    assert not isinstance(want, str)
    parts = [part for entry, plan in plans.items() for part in parts_of(entry, plan)]
    derived = derive(want, list(sources(want, parts)), terms)
    assert derived is not None
    return digest("derived numbers 1", encode_noisy([derived.numbers(payloads)]))


REFUSED = [
    ("SELECT MEDIAN(age) AS m FROM people", "No earlier answer gives this"),
    ("SELECT AVG(income) AS m FROM people WHERE age > 3", "No earlier answer gives this"),
    ("SELECT region, sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, sex)", "grouping sets"),
    ("SELECT COUNT(*) FILTER (WHERE age > 9) AS n FROM people", "No earlier answer gives this"),
    ("SELECT COUNT(DISTINCT age) AS n FROM people", "No earlier answer gives this"),
    ("SELECT VAR_POP(age) AS v FROM people", "No earlier answer gives this"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_does_not_follow_is_refused_in_words(text: str, reason: str) -> None:
    with survey() as curator:
        curator.ask(BY_TWO, epsilon=1)
        with pytest.raises(dt.QueryError, match=reason) as refused:
            curator.ask(text, free=True)
    assert "Charged: nothing" in str(refused.value)


def test_bounds_that_are_chosen_later_cannot_be_compared() -> None:
    with survey() as curator, pytest.raises(dt.QueryError, match="max_rows is chosen when it is asked"):
        curator.ask("SELECT COUNT(*) AS n FROM visits", free=True, max_rows="auto")


def test_a_question_built_in_python_and_what_is_done_with_its_answer() -> None:
    with survey() as curator:
        curator.ask(BY_TWO, epsilon=1)
        question = curator.table("people").group_by("sex").agg(n=dt.count())
        answer = without_engine(curator).ask(question, free=True)
        text = curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", free=True)
        assert answer.rows == text.rows
        whole = answer.consistent()
        assert sum(whole["n"]) == max(0, sum(answer["n"]))
        assert whole.margins()["n"] == answer.margins()["n"], "no count was moved"
        assert answer.to_dict(margins=True)["n_margin"] == answer.margins()["n"]
        assert "free: made of the noisy numbers of entry 4" in answer.explain()
        assert f"entry {answer.made_of[0]}" in str(curator.quote(question, margin="2 %", of=answer))


@pytest.mark.parametrize("more", [{"epsilon": 1}, {"margin": 5}, {"fresh": True}, {"delta": "1e-9"}, {"weights": [1]}])
def test_a_free_answer_has_no_price(more: dict[str, Any]) -> None:
    with survey() as curator, pytest.raises(dt.ArgumentError, match="has no price"):
        curator.ask("SELECT COUNT(*) AS n FROM people", free=True, **more)


def test_a_list_is_asked_one_by_one() -> None:
    with survey() as curator, pytest.raises(dt.ArgumentError, match="one question at a time"):
        curator.ask(["SELECT COUNT(*) AS n FROM people"], free=True)


def test_people_who_are_in_one_group_whatever_the_bounds_add_up() -> None:
    tables = frames()
    people = dt.Table(tables["people"], unit="id", key="id", columns={"region": dt.values("north", "south", "east")})
    unit = {"column": "person", "references": "people.id"}
    visits = dt.Table(tables["visits"], unit=unit, max_rows=200, max_groups=2, columns={"cost": dt.between(0, 100)})
    joined = "FROM visits AS v JOIN people AS p ON v.person = p.id"
    with dt.open(dt.Catalog({"people": people, "visits": visits}, dt.Budget(epsilon=10**6)), ledger=":memory:") as curator:
        curator.ask(f"SELECT p.region, COUNT(*) AS n {joined} GROUP BY p.region", epsilon=10**5)
        curator.ask(f"SELECT p.region, COUNT(DISTINCT v.person) AS k {joined} GROUP BY p.region", epsilon=500)
        answer = without_engine(curator).ask(f"SELECT COUNT(*) AS n, COUNT(DISTINCT v.person) AS k {joined}", free=True)
        assert answer.rows == tuple(truth(f"SELECT COUNT(*), COUNT(DISTINCT v.person) {joined}"))
        assert "in at most" not in answer.footer()


def test_one_person_replaced() -> None:
    tables = frames()
    columns = {"region": dt.values("north", "south", "east"), "income": dt.between(-50, 200)}
    rows = {"public": len(tables["people"])}
    people = dt.Table(tables["people"], unit="id", key="id", max_rows=1, rows=rows, columns=columns)
    declared = dt.Catalog({"people": people}, dt.Budget(epsilon=10**6), neighbours="replace")
    with dt.open(declared, ledger=":memory:") as curator:
        curator.ask("SELECT region, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY region", epsilon=10**5)
        answer = without_engine(curator).ask("SELECT COUNT(*) AS n, SUM(income) AS s FROM people", free=True)
        assert answer.rows[0] == pytest.approx(truth("SELECT COUNT(*), SUM(income) FROM people")[0], abs=0.5)
