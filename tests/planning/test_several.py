"""Several questions at one price: the shares add up to the total, and the total is what their noise costs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dither as dt
from dither.answers import Answers
from dither.curator import STEPS
from dither.planning.several import Asked, Several, plan_several
from dither.planning.terms import Terms
from dither.privacy.losses import total
from dither.query.read import read

ROWS = 400
COUNT = "SELECT COUNT(*) AS n FROM visits"
MEANS = "SELECT ward, AVG(cost) AS c FROM visits GROUP BY ward"
MEDIAN = "SELECT MEDIAN(cost) AS m FROM visits"
PEOPLE = "SELECT sex, COUNT(DISTINCT person) AS people FROM visits GROUP BY sex HAVING people > 0"
QUESTIONS = [COUNT, MEANS, MEDIAN, PEOPLE]


def table(**bounds: object) -> dt.Table:
    n = np.arange(ROWS)
    data = {
        "person": n // 4,
        "cost": n % 100,
        "ward": np.array(["a", "b"])[n % 2],
        "sex": np.array(["m", "f"])[(n // 4) % 2],
    }
    columns = {"cost": dt.between(0, 100), "ward": dt.values("a", "b"), "sex": dt.values("m", "f")}
    return dt.Table(data, unit="person", columns=columns, **bounds)


def opened(delta: str = "0", **bounds: object) -> dt.Curator:
    bounds = bounds or {"max_rows": 4, "max_groups": 2}
    budget = dt.Budget(epsilon=5000, delta=delta)
    return dt.open(dt.Catalog(tables={"visits": table(**bounds)}, budget=budget), ledger=":memory:")


@pytest.fixture(params=["0", "1e-6"])
def survey(request: pytest.FixtureRequest) -> Iterator[dt.Curator]:
    with opened(request.param) as curator:
        yield curator


def planned(survey: dt.Curator, questions: Sequence[str], epsilon: object = 1, weights: object = None) -> Several:
    queries = [read(each, survey.catalog) for each in questions]

    def plan(query: object, terms: Terms, text: str) -> object:
        return STEPS.plan(query, survey.catalog, survey.session.caps, terms, text)  # type: ignore[arg-type]

    asked = [Asked([query], text) for query, text in zip(queries, questions, strict=True)]
    return plan_several(asked, Terms.of(epsilon), weights, plan)  # type: ignore[arg-type]


def covers(program: Several) -> bool:
    """Whether the charge covers the loss of every plan that runs, stated both ways."""
    losses = total([plan.loss for plan in program.plans])
    epsilon, delta = losses.pair()  # type: ignore[attr-defined]
    concentrated = total([plan.zcdp for plan in program.plans]).zcdp()
    charge = program.charge
    both = charge.rho is not None and charge.rho >= concentrated.rho and charge.slack >= concentrated.slack
    return charge.epsilon >= epsilon and charge.delta >= delta and both


def test_the_charge_is_the_total_and_covers_every_plan(survey: dt.Curator) -> None:
    for weights in (None, [1, 2, 3, 4]):
        program = planned(survey, QUESTIONS, 2, weights)
        assert program.charge.epsilon == 2
        assert covers(program)


def test_that_check_can_fail(survey: dt.Curator) -> None:
    program = planned(survey, QUESTIONS, 2)

    class Cheap(Several):
        charge = max((part.charge for part in program.parts), key=lambda one: one.epsilon)

    assert not covers(Cheap(program.questions))


def test_weights_divide_the_price(survey: dt.Curator) -> None:
    program = planned(survey, [COUNT, MEANS], 3, [2, "1"])
    assert [part.total.epsilon for part in program.questions] == [2, 1]
    assert [part.total.epsilon for part in planned(survey, [COUNT, MEANS], 3).questions] == [Fraction(3, 2)] * 2


def test_answers_are_those_of_the_questions(survey: dt.Curator) -> None:
    answers = survey.ask(QUESTIONS, epsilon=1600, left_out=False)
    alone = [survey.ask(each, epsilon=400, left_out=False) for each in QUESTIONS]
    assert [answer["n"] for answer in answers[:1]] == [[ROWS]]
    assert [answer.columns for answer in answers] == [answer.columns for answer in alone]
    assert answers[3].rows == alone[3].rows == (("f", 50), ("m", 50))
    assert [round(v) for v in answers[1]["c"]] == [round(v) for v in alone[1]["c"]]


def test_a_list_is_one_entry_and_one_receipt(survey: dt.Curator) -> None:
    before = survey.ledger.head().number
    answers = survey.ask(QUESTIONS, epsilon=4)
    kinds = [row.kind for row in survey.ledger.store.rows(before + 1)]
    assert [kind for kind in kinds if kind.startswith(("reserved", "committed"))] == ["reserved/1", "committed/1"]
    assert all(answer.receipt is answers.receipt for answer in answers)
    assert survey.budget.spent.epsilon == 4


def test_the_same_list_in_another_order_is_free(survey: dt.Curator) -> None:
    first = survey.ask(QUESTIONS, epsilon=4)
    spent = survey.budget.spent
    again = survey.ask(QUESTIONS[::-1], epsilon=4)
    assert again.replayed
    assert survey.budget.spent == spent
    assert [answer.rows for answer in again] == [answer.rows for answer in first][::-1]


def test_equal_questions_are_asked_once(survey: dt.Curator) -> None:
    other = "SELECT ward AS w, AVG(cost) AS c FROM visits GROUP BY ward ORDER BY w DESC"
    program = planned(survey, [MEANS, COUNT, other], 1)
    assert len(program.parts) == 2
    assert [part.total.epsilon for part in program.questions] == [Fraction(1, 2)] * 3
    answers = survey.ask([MEANS, COUNT, other], epsilon=1)
    assert answers[2].rows == answers[0].rows[::-1]
    again = survey.ask([MEANS, COUNT, other], epsilon=1)
    assert [answer.rows for answer in again] == [answer.rows for answer in answers]


def test_a_list_of_one_question_is_that_question(survey: dt.Curator) -> None:
    alone = survey.ask(MEANS, epsilon=1)
    assert survey.ask([MEANS], epsilon=1).replayed
    assert survey.ask([MEANS, MEANS], epsilon=1)[1].rows == alone.rows
    listed = survey.ask([MEDIAN], epsilon=1)
    assert survey.ask(MEDIAN, epsilon=1).rows == listed[0].rows


def test_bounds_may_be_chosen_in_a_list() -> None:
    with opened() as survey:
        answers = survey.ask([COUNT, MEANS], epsilon=100, max_rows="auto", max_groups="auto")
        again = survey.ask([COUNT, MEANS], epsilon=100, max_rows="auto", max_groups="auto")
        assert all("chosen" in answer.chosen for answer in answers)
        assert again.replayed
        assert [answer.rows for answer in again] == [answer.rows for answer in answers]


def test_a_margin_is_that_of_each_question(survey: dt.Curator) -> None:
    quotes = survey.quote([COUNT, PEOPLE], margin=40)
    assert all(margin <= 40 for quote in quotes for margin in quote.margins().values() if margin is not None)
    assert quotes.epsilon == sum(quote.epsilon for quote in quotes)


def test_a_refusal_names_the_question_and_charges_nothing(survey: dt.Curator) -> None:
    before = survey.ledger.head()
    for bad in ("SELECT SUM(nothing) FROM visits", "SELECT SUM(person) FROM visits", "SELECT cost FROM visits"):
        with pytest.raises(dt.QueryError) as refused:
            survey.ask([COUNT, bad], epsilon=1)
        assert str(refused.value).startswith("Question 2: ")
        assert bad in str(refused.value)
        assert "Charged: nothing" in str(refused.value)
    with pytest.raises(dt.DitherError, match="Question 2: The margin of a mean"):
        survey.ask([COUNT, MEANS], margin=3)
    assert survey.ledger.head() == before


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, "x"], 3])
def test_odd_weights_are_refused(survey: dt.Curator, weights: object) -> None:
    with pytest.raises(dt.ArgumentError):
        survey.ask([COUNT, MEANS], epsilon=1, weights=weights)  # type: ignore[arg-type]


def test_odd_lists_are_refused(survey: dt.Curator) -> None:
    for questions in ([], [COUNT] * 1001, [COUNT, 3], [[COUNT]]):
        with pytest.raises(dt.ArgumentError):
            survey.ask(questions, epsilon=1)  # type: ignore[call-overload]
    with pytest.raises(dt.ArgumentError, match="a list of questions"):
        survey.ask(COUNT, epsilon=1, weights=[1])
    with pytest.raises(dt.ArgumentError, match="no price to divide"):
        survey.ask([COUNT, PEOPLE], margin=40, weights=[1, 1])


def test_answers_print_and_export(survey: dt.Curator) -> None:
    answers = survey.ask(QUESTIONS, epsilon=4)
    assert isinstance(answers, Answers)
    assert len(answers) == 4
    assert answers[-1] is list(answers)[-1]
    assert str(answers).count("charged ε = 1") == 4
    assert "in all: charged ε = 4" in str(answers)
    data = json.loads(answers.to_json())
    assert data["price"]["epsilon"] == data["charged"]["epsilon"] == "4"
    assert [each["columns"] for each in data["answers"]] == [list(answer.columns) for answer in answers]
    assert "<table>" in answers._repr_html_()
    again = survey.ask(QUESTIONS, epsilon=4)
    assert json.loads(again.to_json())["charged"]["epsilon"] == "0"
    assert "given again" in again.footer()


def test_a_quote_states_each_share_and_what_asking_would_do(survey: dt.Curator) -> None:
    quotes = survey.quote(QUESTIONS, epsilon=4)
    assert [quote.epsilon for quote in quotes] == [1] * 4
    assert (quotes.epsilon, quotes.again) == (4, None)
    assert "ε = 4" in str(quotes)
    assert "for 4 questions" in str(quotes)
    survey.ask(QUESTIONS, epsilon=4)
    assert "answers of entry" in str(survey.quote(QUESTIONS, epsilon=4))
    assert "refused" in str(survey.quote(QUESTIONS, epsilon=8000))
    json.loads(quotes.to_json())


def test_other_noise_is_another_list(survey: dt.Curator) -> None:
    program = planned(survey, QUESTIONS, 1)
    assert program.identity == planned(survey, QUESTIONS[::-1], 1).identity
    assert program.identity != planned(survey, QUESTIONS, 2).identity
    assert program.identity != planned(survey, QUESTIONS[:3], 1).identity
    assert program.identity != replace(program, questions=program.questions[:1]).identity


# --- identities, which ledgers keep --------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent.parent / "golden" / "several.txt"
PINNED = (
    [COUNT, MEANS],
    ["SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, sex)"],
    ["SELECT sex, ward, SUM(cost) AS s FROM visits GROUP BY GROUPING SETS ((ward), (sex))"],
    ["SELECT ward, COUNT(DISTINCT person) AS people FROM visits GROUP BY ROLLUP (ward)"],
)


def test_identities_are_those_of_the_file() -> None:
    with opened("1e-6") as survey:
        texts = ["".join(f"ask> {each}\n" for each in one) + planned(survey, one, 1).identity + "\n" for one in PINNED]
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(texts), encoding="utf-8")
    assert GOLDEN.read_text(encoding="utf-8") == "\n".join(texts)
