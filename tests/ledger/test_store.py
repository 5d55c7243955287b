"""What every store promises, on every store."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

from dither.errors import LedgerError
from dither.ledger.stores.base import Row, Store
from ledger.asking import IDENTITY


def row(number: int, question: str = "", body: str = "{}") -> Row:
    return Row(number, "reserved/1", question, body, f"{number:064x}", "")


def fill(store: Store, numbers: range, question: str = "") -> None:
    with store.transaction() as inside:
        for number in numbers:
            inside.append(row(number, question))


def test_a_new_store_has_its_first_texts_and_no_rows(store: Store) -> None:
    assert store.state() == (IDENTITY, 0)
    assert list(store.rows()) == []
    assert store.get("ledger") == IDENTITY["ledger"]
    assert store.get("head") is None
    assert store.entry(1) is None
    assert store.latest("a") is None


def test_what_is_written_is_read_back_inside_and_outside(store: Store) -> None:
    written = Row(1, "committed/1", "abc", '{"text":"\\u0000\\ud800"}', "f" * 64, "0" * 128)
    with store.transaction("head", "total") as inside:
        assert inside.get("head") is None
        inside.put("head", "1")
        inside.put("head", "2")
        inside.append(written)
        assert inside.get("head") == "2"
        assert inside.entry(1) == inside.latest("abc") == written
    assert store.get("head") == "2"
    assert store.entry(1) == store.latest("abc") == written
    assert list(store.rows()) == [written]
    assert store.state() == (IDENTITY | {"head": "2"}, 1)


@pytest.mark.parametrize("name", ["analyst:Ada Lovelace", "analyst:名前", "analyst:o'neil; --", 'analyst:"%s"', "analyst:a\\b"])
def test_any_printable_name_is_a_key(store: Store, name: str) -> None:
    with store.transaction(name) as inside:
        assert inside.get(name) is None
        inside.put(name, name)
    with store.transaction(name) as inside:
        assert inside.get(name) == name
    assert store.state()[0][name] == name


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    def fails() -> None:
        with store.transaction() as inside:
            inside.append(row(1))
            inside.put("head", "1")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert store.state() == (IDENTITY, 0)
    fill(store, range(1, 2))  # and the store can still be written
    assert store.state()[1] == 1


def test_a_number_is_used_once(store: Store) -> None:
    fill(store, range(1, 3))

    def fails() -> None:
        with store.transaction() as inside:
            inside.put("head", "3")
            inside.append(row(2, "other"))

    with pytest.raises(LedgerError):
        fails()
    assert store.get("head") is None
    assert [each.question for each in store.rows()] == ["", ""]


def test_rows_come_in_order_from_any_start_to_any_stop(store: Store) -> None:
    fill(store, range(1, 700))
    assert [each.number for each in store.rows()] == list(range(1, 700))
    assert [each.number for each in store.rows(690)] == list(range(690, 700))
    assert [each.number for each in store.rows(5, 7)] == [5, 6, 7]
    assert list(store.rows(700)) == []


def test_a_walk_ends_where_it_began_to_end(store: Store) -> None:
    fill(store, range(1, 4))
    walk = store.rows()
    first = next(walk)
    fill(store, range(4, 6))  # a reader that stands still holds nobody up
    assert [first.number, *(each.number for each in walk)] == [1, 2, 3]


def test_the_latest_row_of_a_question_is_found(store: Store) -> None:
    with store.transaction() as inside:
        for number, question in enumerate(("a", "b", "a", "", "b", ""), start=1):
            inside.append(row(number, question))
        found = inside.latest("a")
    assert found is not None
    assert found.number == 3
    assert [found.number for found in (store.latest("b"),) if found] == [5]
    assert store.latest("") is None


def test_transactions_do_not_nest(store: Store) -> None:
    with store.transaction() as outer:
        with pytest.raises(LedgerError), store.transaction():
            pass
        outer.put("head", "1")
    assert store.get("head") == "1"


def test_threads_take_turns(store: Store) -> None:
    def work() -> None:
        for _ in range(10):
            with store.transaction("count") as inside:
                inside.put("count", str(int(inside.get("count") or "0") + 1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("count") == "80"


def test_a_store_is_not_copied(store: Store) -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="copied"):
            attempt(store)


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(LedgerError, match="closed"):
        store.get("head")
    with pytest.raises(LedgerError, match="closed"), store.transaction():
        pass
