"""Streams on a catalog: charged once, continued over snapshots, in words."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.curator import Curator
from dither.ledger import opening
from dither.ledger.streams import StreamMovedError
from dither.ledger.verify.report import verify
from dither.stream import Stream
from streams.visits import Visit, catalog, day, frame, opened, watched

COUNT = "SELECT COUNT(*) FROM visits"
EXACT = {"by": "day", "horizon": 10, "epsilon": 1000}  # so much that the noise is 0, except with probability e^-100
BUDGET = {"budget": dt.Budget(epsilon=10**5)}


def exact(survey: Curator, question: str = COUNT, **terms: Any) -> Stream:
    return survey.stream(question, **(EXACT | terms))


def values(answer: Any) -> list[Any]:
    return [value for _, value, _ in answer]


def test_a_quote_charges_nothing_and_the_horizon_is_charged_once(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l") as survey:
        stream = survey.stream(COUNT, by="day", horizon=10, epsilon=1)
        assert "ε = 1, charged once" in str(stream.quote)
        assert "allowed" in str(stream.quote)
        assert (survey.budget.spent.epsilon, stream.step, stream.opened, len(stream.released())) == (0, 0, False, 0)
        first = stream.advance(until=day(2))
        assert "charged ε = 1, for all 10 steps; left ε = 19" in str(first)
        for _ in range(3):
            assert "charged nothing now: paid for in entry 3" in str(stream.next())
        assert (survey.budget.spent.epsilon, stream.step) == (1, 6)
        assert "paid for already" in str(stream.quote)
        assert verify(survey.ledger.store).ok


def test_it_continues_over_snapshots_and_leaves_late_rows_out(tmp_path: Path) -> None:
    rows: list[Visit] = [(1, 0, 1), (2, 0, 1), (2, 1, 1)]
    with opened(rows, tmp_path / "l", "a", **BUDGET) as survey:
        assert values(exact(survey).advance(until="2026-01-02")) == [2, 3]
    rows += [(3, 1, 1), (1, 3, 1), (4, 3, 1), (9, -1, 1), (9, None, 1), (None, 3, 1)]  # a late one, and some of no step
    with opened(rows, tmp_path / "l", "b", **BUDGET) as survey:
        stream = exact(survey)
        seen = watched(survey)
        assert values(stream.advance(until=day(4))) == [3, 5, 5]
        assert values(stream.advance(until=day(3))) == []
        assert [sorted(group.key[0] for group in groups) for groups in seen] == [[day(3)]]  # closed days are not read
        assert values(stream.released()) == [2, 3, 3, 5, 5]
        assert stream.released().keys == tuple(day(number) for number in range(5))
        assert survey.budget.spent.epsilon == 1000
        assert "rows that came after their step was read" in str(stream.released())
    assert verify(opening.view(tmp_path / "l").store).ok


def test_a_person_counts_in_the_first_k_steps_of_the_whole_horizon(tmp_path: Path) -> None:
    rows: list[Visit] = [(1, number, 1) for number in range(10)]
    for snapshot, (end, expected) in {"a": (1, [1, 2]), "b": (4, [3, 3, 3]), "c": (9, [3] * 5)}.items():
        with opened(rows, tmp_path / "l", snapshot, **BUDGET) as survey:
            assert values(exact(survey, max_groups=3).advance(until=day(end))) == expected


def test_sums_are_of_clipped_values_on_a_grid() -> None:
    rows: list[Visit] = [(1, 0, 100), (2, 0, -100), (3, 0, None), (4, 1, 3), (4, 1, 4), (4, 1, 5)]
    with opened(rows, **BUDGET) as survey:
        answer = exact(survey, "SELECT SUM(amount) FROM visits", max_rows=2).advance(until=day(1))
        assert values(answer) == pytest.approx([5, 13], abs=0.5)  # 10 - 5; two thirds of 12
        assert exact(survey, "SELECT SUM(amount) FROM visits WHERE amount > 3", max_rows=9).advance(
            day(1)
        ).values == pytest.approx((10, 19), abs=2)
        assert exact(survey, "SELECT COUNT(amount) FROM visits", max_rows=9).advance(day(1)).values == (2, 5)


def test_rows_can_be_the_unit_and_steps_weeks_or_numbers() -> None:
    rows: list[Visit] = [(1, 0, 1), (1, 0, 1), (1, 8, 2)]
    with opened(rows, table={"unit": "row", "max_rows": None, "max_groups": None}, **BUDGET) as survey:
        assert values(exact(survey).advance(until=day(8))) == [2] * 8 + [3]
        weeks = exact(survey, by="DATE_TRUNC('week', day)").advance(until="2026-01-05")
        assert weeks.rows[1][:2] == (day(4), 3)
        assert weeks.by == "DATE_TRUNC('week', day)"
        assert values(exact(survey, by="amount", start=1, horizon=3).advance(until=2)) == [2, 3]
        with pytest.raises(dt.DitherError, match="max_groups bounds the rows"):
            exact(survey, max_groups=2)


def test_questions_built_in_python_and_parameters_do() -> None:
    with opened([(1, 0, 1), (2, 1, 4)], **BUDGET) as survey:
        built = survey.table("visits").where("amount >= 2").agg(n=dt.count())
        assert values(survey.stream(built, **EXACT).advance(until=day(1))) == [0, 1]
        asked = "SELECT COUNT(*) FROM visits WHERE amount >= ?"
        stream = survey.stream(asked, params=[2], **EXACT)
        assert stream.opened
        assert stream.step == 2


@pytest.mark.parametrize(
    ("terms", "gaussian"),
    [({"rho": "1/8"}, True), ({"epsilon": 1, "delta": "1e-7"}, True), ({"epsilon": 1, "delta": 0}, False)],
)
def test_prices_are_read_from_the_noise(terms: dict[str, Any], gaussian: bool) -> None:
    with opened(budget=dt.Budget(epsilon=5, delta="1e-6")) as survey:
        stream = survey.stream(COUNT, by="day", horizon=50, max_groups=2, max_rows=3, **terms)
        plan, loss = stream.plan, stream.plan.terms.loss()
        assert (plan.terms.gaussian, plan.terms.contributions, plan.terms.largest) == (gaussian, 2, 3)
        assert plan.charge.rho == loss.zcdp().rho
        assert stream.quote.refusal == ""
        stream.next()
        assert 0 <= survey.budget.spent.epsilon - plan.charge.epsilon < Fraction(1, 10**40)
        assert verify(survey.ledger.store).ok


def test_an_epsilon_takes_the_better_noise_in_a_catalog_with_delta() -> None:
    with opened(budget=dt.Budget(epsilon=5, delta="1e-6")) as survey:
        few, many = (survey.stream(COUNT, by="day", horizon=100, max_groups=k, epsilon=1).plan for k in (1, 50))
        assert (few.terms.gaussian, many.terms.gaussian) == (False, True)
        assert (few.charge.delta, many.charge.delta) == (0, Fraction(1, 10**7))
    with opened() as survey, pytest.raises(dt.ArgumentError, match="pure"):
        survey.stream(COUNT, by="day", horizon=100, rho=1)


def test_a_stream_is_of_one_analyst(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l") as survey:
        ada, bob = (survey.stream(COUNT, by="day", horizon=10, epsilon=1, analyst=name) for name in ("ada", "bob"))
        ada.next()
        assert (ada.step, bob.step, bob.opened) == (1, 0, False)
        bob.next()
        assert survey.budget.spent.epsilon == 2


def test_what_the_budget_does_not_allow_reads_nothing(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l") as survey:
        stream = survey.stream(COUNT, by="day", horizon=10, epsilon=21)
        seen = watched(survey)
        assert "does not allow" in str(stream.quote)
        with pytest.raises(dt.BudgetError, match="Charged: nothing"):
            stream.next()
        assert (seen, stream.opened, survey.budget.spent.epsilon) == ([], False, 0)


REFUSED = {
    "SELECT AVG(amount) FROM visits": "adds up COUNT or SUM",
    "SELECT COUNT(*), SUM(amount) FROM visits": "one COUNT or SUM",
    "SELECT COUNT(*) + 1 FROM visits": "one COUNT or SUM",
    "SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 5": "one COUNT or SUM",
    "SELECT amount, COUNT(*) FROM visits GROUP BY amount": "one key",
    "SELECT COUNT(*) FROM visits LIMIT 5": "one COUNT or SUM",
    "SELECT SUM(person) FROM visits": "person",
    "SELECT COUNT(*) FROM (SELECT person, MIN(day) AS day FROM visits GROUP BY person) AS v": "added rows can change",
    "SELECT COUNT(*) FROM visits WHERE person NOT IN (SELECT person FROM visits WHERE amount > 3)": "added rows can change",
    "SELECT COUNT(*) FROM (SELECT day, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day DESC) AS r FROM visits) AS v"
    " WHERE r = 1": "added rows can change",
    "SELECT COUNT(*) FROM nothing": "nothing",
    "COUNT(*)": "SELECT",
}


@pytest.mark.parametrize(("question", "words"), REFUSED.items())
def test_other_questions_are_refused_in_words(question: str, words: str) -> None:
    with opened() as survey, pytest.raises(dt.DitherError, match=f"(?s){words}.*Charged: nothing"):
        survey.stream(question, by="day", horizon=10, epsilon=1)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"by": "weekday"}, "weekday"),
        ({"by": "day +"}, "follows"),
        ({"by": "CAST(amount AS TEXT)"}, "days or whole numbers"),
        ({"horizon": 101}, "100 public values"),
        ({"horizon": 0}, "horizon"),
        ({"start": "soon"}, "start must be"),
        ({"start": day(95)}, "5 public values"),
        ({"by": "person"}, "the unit that is protected"),
        ({"epsilon": None}, "price"),
        ({"epsilon": -1}, "epsilon"),
        ({"rho": 1}, "pure"),
        ({"confidence": 2}, "confidence"),
        ({"max_rows": "auto"}, "max_rows"),
        ({"max_groups": 0}, "max_groups"),
    ],
)
def test_other_terms_are_refused_in_words(terms: dict[str, Any], words: str) -> None:
    with opened() as survey, pytest.raises(dt.DitherError, match=words):
        survey.stream(COUNT, **({"by": "day", "horizon": 10, "epsilon": 1} | terms))


def test_steps_that_are_none_are_refused_and_the_last_is_the_end() -> None:
    with opened() as survey:
        stream = survey.stream(COUNT, by="day", horizon=3, epsilon=1)
        for wrong in (day(3), "2025-12-31", "soon", 5, None.__class__):
            with pytest.raises(dt.ArgumentError, match="until must be one of the steps 2026-01-01 to 2026-01-03"):
                stream.advance(until=wrong)
        assert survey.budget.spent.epsilon == 0
        assert len(stream.advance(until=day(2))) == 3
        with pytest.raises(dt.ArgumentError, match="all of its 3 steps"):
            stream.next()
        assert len(stream.advance(until=day(2))) == 0


def test_answers_become_tables_pictures_and_receipts(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l") as survey:
        stream = survey.stream(COUNT, by="day", horizon=3, epsilon=1)
        with pytest.raises(dt.ArgumentError, match="nothing yet"):
            stream.plot(tmp_path / "x.png")
        answer = stream.advance(until=day(1))
        assert list(answer.to_pandas().columns) == ["day", "total", "margin"]
        assert answer.to_arrow().num_rows == len(answer) == 2
        assert stream.plot(tmp_path / "x.png").stat().st_size > 1000
        assert stream.receipt is not None
        assert answer.receipt is not None
        for receipt in (stream.receipt, answer.receipt):
            assert receipt.verify(survey.ledger.public_key)
            assert verify(survey.ledger.store, receipt=dt.Receipt.from_json(receipt.to_json())).ok
        assert (stream.receipt.body["loss"]["epsilon"], answer.receipt.body["loss"]["epsilon"]) == ("1", "0")
        assert answer.margins == stream.quote.margins[:2]
        assert "2 of 3 steps" in repr(stream)


def test_a_failing_engine_closes_the_catalog_and_the_stream_goes_on_after_it(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l", **BUDGET) as survey:
        stream, steps = exact(survey), survey.steps
        stream.next()
        position = survey.ledger.stream(stream._key)
        survey.steps = replace(steps, run=lambda *_: 1 / 0)  # type: ignore[arg-type,return-value]
        with pytest.raises(dt.EngineError, match="nothing more: the price of the stream"):
            stream.next()
        survey.steps = steps
        with pytest.raises(dt.DitherError, match="closed"):
            stream.next()
        assert values(stream.released()) == [1]
        assert survey.ledger.stream(stream._key) == position
        survey.reopen()
        assert values(stream.next()) == [1]
        assert survey.budget.spent.epsilon == 1000
        assert verify(survey.ledger.store).ok


def test_an_interrupt_says_that_nothing_more_is_charged() -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with opened([(1, 0, 1)]) as survey:
        stream, steps = survey.stream(COUNT, by="day", horizon=3, epsilon=1), survey.steps
        stream.next()
        survey.steps = replace(steps, run=stop)
        with pytest.raises(KeyboardInterrupt, match="nothing more"):
            stream.next()
        survey.steps = steps
        assert (len(stream.next()), stream.step) == (1, 2)


def test_several_who_continue_at_once_release_each_step_once(tmp_path: Path) -> None:
    with opened([(1, 0, 1)], tmp_path / "l", **BUDGET) as survey:
        got: list[Any] = []
        streams = [exact(survey) for _ in range(3)]
        threads = [threading.Thread(target=lambda each=each: got.extend(each.next().keys)) for each in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == [day(0), day(1), day(2)]
        assert survey.budget.spent.epsilon == 1000
        assert verify(survey.ledger.store).ok


def test_a_step_that_others_released_meanwhile_is_not_released_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of the ledger is old by the time of the reservation."""
    with opened([(1, 0, 1)], **BUDGET) as survey:
        stream = exact(survey)
        stream.next()
        found = survey.ledger.stream(stream._key)
        assert found is not None
        stream.next()
        seen = watched(survey)
        with pytest.raises(StreamMovedError, match="Charged: nothing"):
            stream._go(*found, 2, "")
        assert (seen, stream.step) == ([], 2)
        late = [found]
        monkeypatch.setattr(
            survey.ledger, "stream", lambda key: late.pop() if late else type(survey.ledger).stream(survey.ledger, key)
        )
        assert stream.advance(until=day(2)).keys == (day(2),)


def test_a_changed_catalog_goes_on_with_the_same_stream_and_changed_bounds_do_not(tmp_path: Path) -> None:
    rows: list[Visit] = [(1, 0, 1)]
    with opened(rows, tmp_path / "l", "a") as survey:
        survey.stream(COUNT, by="day", horizon=10, epsilon=1).next()
    with dt.open(catalog(rows, "b", table={"max_groups": 4}), ledger=tmp_path / "l") as survey:
        assert survey.stream(COUNT, by="day", horizon=10, epsilon=1, max_groups=3).step == 1
        for other in (
            {},
            {"max_rows": 1, "max_groups": 3},
            {"horizon": 11, "max_groups": 3},
            {"start": day(1), "max_groups": 3},
        ):
            assert not survey.stream(COUNT, **({"by": "day", "horizon": 10, "epsilon": 1} | other)).opened


def test_without_declared_bounds_a_start_is_enough() -> None:
    table = dt.Table(frame([(1, 0, 1), (2, 1, 5)]), unit="person", max_rows=1, columns={"day": dt.column(kind="date")})
    with dt.open(dt.Catalog(tables={"visits": table}, **BUDGET), ledger=":memory:") as survey:
        with pytest.raises(dt.ArgumentError, match="no public first value"):
            exact(survey)
        assert values(exact(survey, start=day(0), horizon=50).advance(until=day(1))) == [1, 2]
        months = exact(survey, by="DATE_TRUNC('month', day)", start="2026-01-01", horizon=30)
        assert (months.plan.steps[-1].isoformat(), values(months.next())) == ("2028-06-01", [2])
