"""Someone who can write the database without the key can stop a ledger, but not raise its budget: on every store."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dither.errors import DitherError, LedgerError
from dither.ledger import state
from dither.ledger.ledger import Ledger
from dither.ledger.opening import memory
from dither.ledger.receipts import Key
from dither.ledger.records import ENGINE, replay_key
from dither.ledger.rules import StoredAnswer
from dither.ledger.stores.base import Store
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from ledger.asking import KEY, Clock, advanced, asked, declaration, identity, opened_stream, request, reserved

NEW, NEWER = Key.new(), Key.new()
CHANGED = "changed by someone without its key"


def put(store: Store, key: str, text: str) -> None:
    with store.transaction() as inside:
        inside.put(key, text)


def execute(store: Store, statement: str) -> None:
    """Edits the store as someone who has the database but not the key."""
    if isinstance(store, SQLite):
        if "entries" in statement:
            store._connected().execute("DROP TRIGGER IF EXISTS entries_stay")
        store._connected().execute(statement)
        return
    assert isinstance(store, Postgres)
    schema = f'"{store._address.schema}"'
    link = store._connected()[0].link
    if "entries" in statement:
        link.execute(f"ALTER TABLE {schema}.entries DISABLE TRIGGER ALL".encode())
    for table in ("state", "entries"):
        statement = statement.replace(f" {table} ", f" {schema}.{table} ")
    link.execute(statement.encode())


def refuses(ledger: Ledger, match: str = CHANGED) -> None:
    """Every way to write."""
    attempts: list[Callable[[], object]] = [
        lambda: ledger.reserve(request("new", "0.01")),
        lambda: ledger.register(declaration(catalog_hash="c9")),
    ]
    for attempt in attempts:
        with pytest.raises(LedgerError, match=match):
            attempt()


def texts(ledger: Ledger) -> dict[str, str]:
    return ledger.store.state()[0]


def broken(ledger: Ledger) -> None:
    """A question that the engine fails on: the catalog is closed."""
    held = reserved(ledger, "broken", "0.01")
    held.touch()
    ledger.give_up(held, ENGINE)


@pytest.mark.parametrize("key", [*state.STATE_KEYS])
def test_what_is_taken_away_stops_the_ledger(ledger: Ledger, clock: Clock, key: str) -> None:
    asked(ledger, 1, "0.8")
    opened_stream(ledger)
    ledger.set_policy(Fraction(9))
    ledger.rotate(NEW, "cora")
    broken(ledger)
    execute(ledger.store, f"DELETE FROM state WHERE key = '{key}'")
    if key == "keys":  # then the first key seems to be in force, once what was handed over is gone too
        execute(ledger.store, "DELETE FROM state WHERE key = 'secrets'")
    refuses(Ledger(ledger.store, KEY if key == "keys" else NEW, clock))
    assert not verify(ledger.store).ok


@pytest.mark.parametrize("key", [*state.STATE_KEYS])
def test_what_is_put_back_alone_stops_the_ledger(ledger: Ledger, clock: Clock, key: str) -> None:
    asked(ledger, 1, "0.1")
    stream = opened_stream(ledger, epsilon="0.01")
    ledger.set_policy(Fraction(9))
    ledger.rotate(NEW, "cora")
    old = texts(ledger)
    ledger.rotate(NEWER, "cora")
    ledger.set_policy(Fraction(8))
    advanced(ledger, stream, 0, 1)
    ledger.register(declaration(catalog_hash="c2"))
    asked(ledger, 2, "0.8", analyst="bob", catalog_hash="c2", tables=("visits",))
    forged = {"caps": old["caps"].replace('"1"', '"2"'), "leases": '{"9":["","","1.x",1]}', "fuse": '{"closed":0,"dead":0}'}
    if old.get(key) != texts(ledger).get(key):
        forged = {key: old[key]}
    put(ledger.store, key, forged[key])
    if key == "keys":
        put(ledger.store, "secrets", old["secrets"])
    refuses(Ledger(ledger.store, NEW if key == "keys" else NEWER, clock))
    assert not verify(ledger.store).ok


def test_a_closed_catalog_is_not_opened_by_an_edit(ledger: Ledger, clock: Clock) -> None:
    broken(ledger)
    put(ledger.store, "fuse", '{"closed":0,"dead":0}')
    refuses(Ledger(ledger.store, KEY, clock))
    assert not verify(ledger.store).ok


def test_an_emptied_ledger_does_not_pass_for_a_new_one(ledger: Ledger, clock: Clock) -> None:
    """Removes all entries and state, except the ledger's identity."""
    asked(ledger, 1, "0.9")
    schema = "" if isinstance(ledger.store, SQLite) else f'"{ledger.store._address.schema}".'  # type: ignore[attr-defined]
    link: Any = ledger.store._connected()  # type: ignore[attr-defined]
    run = link.execute if isinstance(ledger.store, SQLite) else lambda text: link[0].link.execute(text.encode())
    if schema:
        run(f"ALTER TABLE {schema}entries DISABLE TRIGGER ALL")
    else:
        guard = link.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_last'").fetchone()[0]
        run("DROP TRIGGER entries_last")
    run(f"DELETE FROM {schema}entries")
    run(f"DELETE FROM {schema}state WHERE key NOT IN ('', 'ledger')")
    run(f"ALTER TABLE {schema}entries ENABLE TRIGGER ALL") if schema else run(guard)
    assert any("not signed" in each for each in verify(ledger.store).problems)
    refuses(Ledger(ledger.store, KEY, clock))


def test_a_new_ledger_verifies(empty: Ledger) -> None:
    """The twin: nothing was ever asked."""
    assert verify(empty.store).ok


def test_the_signature_alone_is_enough_for_the_ledger_to_go_on(ledger: Ledger) -> None:
    """A damaged MAC stops nothing: the signature shows that nothing is wrong."""
    asked(ledger, 1)
    signature, mac = texts(ledger)["seal"].split()
    put(ledger.store, "seal", f"{signature} {'0' * len(mac)}")
    assert verify(ledger.store).ok
    asked(ledger, 2)


def test_a_spoilt_signature_is_found_with_the_public_key_alone(ledger: Ledger) -> None:
    asked(ledger, 1)
    signature, mac = texts(ledger)["seal"].split()
    put(ledger.store, "seal", f"{'0' if signature[0] != '0' else '1'}{signature[1:]} {mac}")
    assert [each for each in verify(ledger.store).problems if "not signed with the ledger's key" in each]
    asked(ledger, 2)  # the holder of the key knows its own MAC, and signs again
    assert verify(ledger.store).ok


def test_a_question_on_its_way_is_not_settled_on_changed_sums(ledger: Ledger) -> None:
    for settle in (lambda held: ledger.commit(held, "42"), ledger.cancel):
        held = reserved(ledger, str(settle))
        kept = texts(ledger)["total"]
        put(ledger.store, "total", kept.replace('"rho":', '"rho":1'))
        with pytest.raises(LedgerError, match=CHANGED):
            settle(held)
        put(ledger.store, "total", kept)
    asked(ledger, "all right again")


@pytest.mark.parametrize("names", [("analyst:ada",), ("analyst:ada", "roll"), ("analyst:ada", "roll", "rolls")])
def test_a_quota_is_not_got_back_by_taking_it_away_or_putting_it_back(ledger: Ledger, clock: Clock, names: tuple[str]) -> None:
    ledger.register(declaration(catalog_hash="c2", per_analyst=Fraction(1, 2)))
    asked(ledger, 1, "0.2", catalog_hash="c2")
    old = texts(ledger)
    asked(ledger, 2, "0.2", catalog_hash="c2")
    now = texts(ledger)
    for name in names:
        key = state.keys_of("ada")[1] if name == "roll" else name
        assert old[key] != now[key]
        put(ledger.store, key, old[key])
    with pytest.raises(LedgerError, match=CHANGED):
        ledger.reserve(request(3, "0.2", catalog_hash="c2"))
    for name in names:
        key = state.keys_of("ada")[1] if name == "roll" else name
        execute(ledger.store, f"DELETE FROM state WHERE key = '{key}'")
    with pytest.raises(LedgerError, match=CHANGED):
        ledger.reserve(request(3, "0.2", catalog_hash="c2"))
    assert not verify(ledger.store).ok
    for key, text in now.items():
        put(ledger.store, key, text)
    asked(ledger, 3, "0.1", catalog_hash="c2")
    assert verify(ledger.store).ok


def test_one_ledgers_seal_is_not_anothers(ledger: Ledger) -> None:
    """Two ledgers with one key: a seal of one does not fit the other."""
    other = memory()
    assert other._key is not None
    assert other._key.seal("a") != KEY.seal("a") != KEY.seal("b")
    same = Ledger(SQLite.memory(identity("8")), KEY)
    same.register(declaration())
    for key, text in texts(ledger).items():
        if key != "ledger":
            put(same.store, key, text)
    refuses(Ledger(same.store, KEY))
    other.close()
    same.close()


@pytest.mark.slow
def test_many_analysts_share_rolls_and_none_is_mixed_up(ledger: Ledger) -> None:
    names = [f"analyst {number}" for number in range(3 * state.GROUPS)]
    for name in names:
        asked(ledger, name, "0.001", analyst=name)
    groups = json.loads(texts(ledger)["rolls"])
    assert len(groups) > state.GROUPS / 2
    for name in names[:10]:
        asked(ledger, f"{name} again", "0.001", analyst=name)
    assert verify(ledger.store).ok


GARBAGE = ["", "{", "[]", "null", "1", '{"number":1}', '{"a":1,"a":1}', "[" * 100_000, '"é"', '{"epsilon":"x"}']


@pytest.mark.slow
@pytest.mark.parametrize("key", [*state.STATE_KEYS, "analyst:ada", "ledger"])
def test_garbage_is_told_as_what_it_is(ledger: Ledger, clock: Clock, key: str) -> None:
    """Reading a damaged ledger raises LedgerError, never another exception."""
    asked(ledger, 1)
    for text in GARBAGE:
        put(ledger.store, key, text)
        assert not verify(ledger.store).ok
        attempts: list[Callable[[], object]] = [lambda: Ledger(ledger.store, KEY, clock).reserve(request(2))]
        if key != "analyst:ada":  # which nobody else needs
            attempts.append(lambda: Ledger(ledger.store, KEY, clock).register(declaration(catalog_hash="c2")))
            attempts.append(lambda: Ledger(ledger.store, KEY, clock).reserve(request(1, analyst="bob")))
        for attempt in attempts:
            with pytest.raises(LedgerError):
                attempt()
        for look in (ledger.balance, ledger.head, lambda: ledger.quota("ada")):
            try:
                look()
            except DitherError:
                continue


# --- what rows are found by is not signed -------------------------------------------------------------------------


def test_the_answer_to_another_question_is_not_shown(ledger: Ledger) -> None:
    asked(ledger, 1, payload="one")
    asked(ledger, 2, payload="two")
    execute(ledger.store, f"UPDATE entries SET question = '{request(1).digest}' WHERE number = 6")
    with pytest.raises(LedgerError, match="Entry 6 of the ledger was changed"):
        ledger.reserve(request(1))


def test_another_analysts_payment_is_not_taken_for_ones_own(ledger: Ledger) -> None:
    asked(ledger, 1)
    kept = ledger.reserve(request(1, analyst="bob"))
    assert isinstance(kept, StoredAnswer)
    execute(ledger.store, f"UPDATE entries SET question = '{replay_key(4, 'eve')}' WHERE number = 5")
    with pytest.raises(LedgerError, match="Entry 5 of the ledger was changed"):
        ledger.reserve(request(1, analyst="eve"))


# --- what no ledger writes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO state VALUES ('café', 'x')",
        "INSERT INTO state VALUES ('\\x', 'x')",
        "INSERT INTO state VALUES ('\\q', 'x')",
        "INSERT INTO state VALUES ('analyst:\\x61da', 'x')",  # another spelling of a key that is there
        "INSERT INTO state VALUES ('\\U00110000', 'x')",
        "INSERT INTO entries VALUES (-9223372036854775808, 'x', '', 'x', 'x', 'x')",
        "INSERT INTO entries VALUES (9223372036854775807, 'x', '', 'x', 'x', 'x')",
    ],
)
def test_what_somebody_else_put_there_is_told(ledger: Ledger, statement: str) -> None:
    asked(ledger, 1)
    assert verify(ledger.store).ok
    execute(ledger.store, statement)
    assert verify(ledger.store).problems != ()
