"""What else is paid, what an answer and its receipt say, and that nothing in a ledger depends on rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator
from dither.exact import replay
from dither.ledger.ledger import Ledger
from dither.ledger.opening import view
from dither.ledger.receipts import Key
from dither.ledger.state import Identity, first_texts
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from journey.paid import COUNT, MEANS, Broken, kinds, opened, people

# --- other questions, other forms --------------------------------------------------------------------------------------


def test_what_is_public_is_answered_for_nothing_and_recorded() -> None:
    table = dt.Table(people(400), unit="person", max_rows=1, rows={"public": 400}, columns={"age": dt.between(0, 120)})
    survey = dt.open(dt.Catalog({"people": table}, dt.Budget(1), neighbours="replace"), ":memory:")
    engine = Broken(AssertionError())
    survey.engine = engine
    answer = survey.ask(COUNT, epsilon="0.1")
    assert answer["n"] == [400]
    assert engine.calls == 0
    assert survey.budget.spent.epsilon == 0
    assert kinds(survey.ledger) == ["opened", "catalog", "reserved", "committed"]
    assert verify(survey.ledger.store).problems == ()


def test_a_proposal_is_paid_and_given_again_like_an_answer(folder: Path) -> None:
    survey = opened(folder)
    first, second = (survey.suggest("people.age", epsilon="0.5") for _ in range(2))
    assert survey.budget.spent.epsilon == Fraction(1, 2)
    assert (first.low, first.high, first.max_rows) == (second.low, second.high, second.max_rows)
    assert "charged ε = 0.5" in str(first)
    assert "charged nothing, given again from entry 4" in str(second)
    assert kinds(survey.ledger)[2:] == ["reserved", "committed"]
    assert len(json.loads(next(e for e in survey.ledger.history() if e.number == 4).record.payload)["released"]) == 2  # type: ignore[union-attr]
    with pytest.raises(dt.BudgetError):
        survey.suggest("people.age", epsilon="0.6")


def test_a_receipt_says_what_was_asked_and_what_it_cost(folder: Path) -> None:
    survey = opened(folder, analyst="ana")
    answer = survey.ask(MEANS, epsilon="0.1", left_out=False)
    body = answer.receipt.body
    assert body["question"] == MEANS
    assert body["analyst"] == "ana"
    assert body["loss"]["epsilon"] == "1/10"
    assert body["unit"] == "one value of person"
    assert [each["mechanism"] for each in body["mechanisms"]] == ["Geometric"]
    assert answer.receipt.verify(survey.ledger.public_key)
    assert verify(view(folder / "survey.ledger").store, receipt=answer.receipt).problems == ()
    again = dt.Receipt.from_json(answer.receipt.to_json())
    assert again.verify(survey.ledger.public_key)


def test_an_answer_is_json_and_a_picture(folder: Path) -> None:
    survey = opened(folder)
    answer = survey.ask(MEANS, epsilon="0.2")
    found = json.loads(answer.to_json())
    assert found["rows"] == [list(row) for row in answer.rows]
    assert found["margins"]["n"] == answer.margins()["n"]
    assert found["price"] == {"epsilon": "1/5", "delta": "0"} == found["charged"]
    assert dt.Receipt.from_json(json.dumps(found["receipt"])) == answer.receipt
    again = json.loads(survey.ask(MEANS, epsilon="0.2").to_json())
    assert again["charged"]["epsilon"] == "0"
    assert again["replayed"] is True
    answer.plot(folder / "answer.png")
    assert (folder / "answer.png").stat().st_size > 5000
    assert len(answer.plot().axes) == 2
    with pytest.raises(dt.DitherError, match="cannot be written"):
        answer.plot(folder / "answer.spoon")


# --- nothing of the rows -----------------------------------------------------------------------------------------------

KEY = Key.new()
QUESTIONS = (
    (COUNT, "0.1"),
    (MEANS, "0.1"),
    ("SELECT town, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY town", "0.2"),
    ("SELECT SUM(age) AS s FROM people WHERE region = 'north'", "0.1"),
    (COUNT, "0.1"),
    ("SELECT SUM(person) AS s FROM people", "0.1"),
    (COUNT, "0.9"),
)


def frozen(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger whose key, nonces, tokens and clock are the same every time."""
    numbers = iter(range(10**6))
    monkeypatch.setattr("secrets.token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    first = first_texts(Identity("1" * 32, KEY.public), KEY)
    return Ledger(SQLite.memory(first), KEY, lambda: datetime(2026, 11, 15, tzinfo=UTC))


def written(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, leak: Callable[[Any], str] = lambda _: ""
) -> list[dict[str, Any]]:
    """Returns what the questions leave in a ledger, without the noisy answers and the hashes over them."""
    columns = {
        "person": dt.column(kind="int"),
        "age": dt.between(0, 120),
        "region": dt.values("north", "south", "east", "west"),
        "town": dt.column(kind="text"),
    }
    catalog = dt.Catalog({"people": dt.Table(frame, unit="person", max_rows=1, columns=columns)}, dt.Budget(1, "1e-3"))
    survey = dt.open(catalog, ":memory:")
    survey = Curator(survey.catalog, survey.engine, frozen(monkeypatch))
    for text, epsilon in QUESTIONS:
        with replay.stream(text.encode()), suppress(dt.DitherError):
            survey.ask(text + leak(frame), epsilon=epsilon)
    bodies = [json.loads(row.body) | {"row": (row.number, row.kind)} for row in survey.ledger.store.rows()]
    left_out = ("payload", "previous", "reserved_hash", "committed_hash")
    state, last = survey.ledger.store.state()
    state.pop("head")
    state.pop("seal")  # an HMAC over the head and what is compared here
    return [{name: value for name, value in body.items() if name not in left_out} for body in bodies] + [state, {"last": last}]


@pytest.mark.parametrize("size", [399, 1, 0])
def test_nothing_but_the_noisy_answer_depends_on_rows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole, other = (written(frame, monkeypatch) for frame in (people(), people()[:size]))
    assert len(whole) > 10
    assert whole == other


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a ledger that records the number of rows differs from its neighbour's."""
    one, other = (written(frame, monkeypatch, lambda f: f" -- {len(f)} rows") for frame in (people(), people()[:399]))
    assert one != other


def test_neighbours_with_the_same_integers_leave_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one person changes nothing that is asked, not even the hashes differ: the payload is all there is of the rows."""
    frame = people()
    frame.loc[0, "age"] = 30
    moved = frame.copy()
    moved.loc[0, "age"] = 31
    heads = []
    for each in (frame, moved):
        columns = {"person": dt.column(kind="int"), "age": dt.between(0, 120)}
        survey = dt.open(
            dt.Catalog({"people": dt.Table(each, unit="person", max_rows=1, columns=columns)}, dt.Budget(1)), ":memory:"
        )
        survey = Curator(survey.catalog, survey.engine, frozen(monkeypatch))
        with replay.stream(b"same"):
            survey.ask(COUNT, epsilon="0.1")
        heads.append([str(survey.ledger.head())])
        with replay.stream(b"same"):
            survey.ask("SELECT AVG(age) AS a FROM people", epsilon="0.1")
        heads[-1].append(str(survey.ledger.head()))
    assert heads[0][0] == heads[1][0]
    assert heads[0][1] != heads[1][1]  # and the answer that does depend on it does
