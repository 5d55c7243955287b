"""People, tokens, sessions and projects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dither.errors import AccessError, ArgumentError, BudgetError
from dither.server.accounts import TRIES, Accounts, Who
from dither.server.store import ServiceStore


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(tmp_path: Path, clock: Clock) -> Iterator[Accounts]:
    with closing(ServiceStore(tmp_path / "x.people")) as store:
        made = Accounts(store, clock)
        for name, role in {"cora": "curator", "ada": "analyst", "otto": "auditor"}.items():
            made.add(name, role)
        yield made


def test_a_token_proves_who_asks_until_it_is_revoked(accounts: Accounts) -> None:
    ident, secret = accounts.make_token("ada")
    assert accounts.by_token(secret) == Who("ada", "analyst", frozenset({"ask", "replay"}), None, ident)
    accounts.revoke(ident)
    assert accounts.by_token(secret) is None
    with pytest.raises(ArgumentError, match="no token"):
        accounts.revoke(ident)


def test_a_token_expires(accounts: Accounts, clock: Clock) -> None:
    _, secret = accounts.make_token("ada", days=1)
    assert accounts.by_token(secret) is not None
    clock.now += 86_400
    assert accounts.by_token(secret) is None


def test_no_secret_is_in_the_file(accounts: Accounts, tmp_path: Path) -> None:
    _, secret = accounts.make_token("ada")
    accounts.set_password("ada", "correct horse battery")
    session = accounts.log_in("ada", "correct horse battery", "a", 60)
    code = accounts.make_code("ada")
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for each in (secret, "correct horse battery", session, code):
        assert each.encode() not in content
        assert each.removeprefix("dth_").removeprefix("dthl_").encode() not in content
    assert (tmp_path / "x.people").stat().st_mode & 0o077 == 0


def test_a_token_has_at_most_the_scopes_of_its_role(accounts: Accounts) -> None:
    for name, scope in (("ada", "audit"), ("ada", "curate"), ("otto", "ask"), ("otto", "replay")):
        with pytest.raises(ArgumentError, match="cannot have the scope"):
            accounts.make_token(name, [scope])


def test_scopes_that_were_written_into_the_file_do_not_exceed_the_role(accounts: Accounts, tmp_path: Path) -> None:
    ident, secret = accounts.make_token("ada", ["replay"])
    with closing(sqlite3.connect(tmp_path / "x.people")) as edit, edit:
        edit.execute("UPDATE tokens SET scopes = 'replay audit curate' WHERE id = ?", (ident,))
    who = accounts.by_token(secret)
    assert who is not None
    assert who.scopes == {"replay"}


def test_a_removed_person_has_no_way_in(accounts: Accounts) -> None:
    _, secret = accounts.make_token("ada")
    accounts.set_password("ada", "correct horse battery")
    session, code = accounts.log_in("ada", "correct horse battery", "a", 60), accounts.make_code("ada")
    accounts.remove("ada")
    assert accounts.by_token(secret) is None
    assert accounts.by_session(session) is None
    for log_in in (
        lambda: accounts.log_in("ada", "correct horse battery", "a", 60),
        lambda: accounts.log_in_by_code(code, "a", 60),
        lambda: accounts.log_in_by_token(secret, "a", 60),
    ):
        with pytest.raises(AccessError):
            log_in()
    with pytest.raises(ArgumentError, match="already"):
        accounts.add("ada", "analyst")  # a name in the ledger stays one person


def test_a_wrong_login_has_one_text_and_the_same_work(accounts: Accounts) -> None:
    """Whether a name exists shows neither in the text nor in what is computed: argon2 runs each time."""
    accounts.set_password("ada", "correct horse battery")
    calls: list[str] = []
    real = accounts._hasher

    class Counting:
        def verify(self, stored: str, password: str) -> bool:
            calls.append(stored)
            return real.verify(stored, password)

    accounts.__dict__["_nobody"] = real.hash("nobody")
    accounts.__dict__["_hasher"] = Counting()
    texts = set()
    for name, password in (("ada", "wrong"), ("nobody", "wrong"), ("otto", "no password set"), ("ada", "x" * 5000)):
        with pytest.raises(AccessError) as error:
            accounts.log_in(name, password, f"address of {name}", 60)
        texts.add((str(error.value), error.value.status))
    assert len(texts) == 1
    assert len(calls) == 4


def test_failed_logins_are_limited_by_name_and_by_address(accounts: Accounts, clock: Clock) -> None:
    accounts.set_password("ada", "correct horse battery")
    for i in range(TRIES):
        with pytest.raises(AccessError, match="not right"):
            accounts.log_in("ada", "wrong", f"address {i}", 60)
    with pytest.raises(AccessError, match="Too many") as error:
        accounts.log_in("ada", "correct horse battery", "a new address", 60)
    assert error.value.status == 429
    clock.now += 121
    assert accounts.log_in("ada", "correct horse battery", "a new address", 60)
    for i in range(TRIES):
        with pytest.raises(AccessError, match="not right"):
            accounts.log_in(f"name {i}", "wrong", "one address", 60)
    with pytest.raises(AccessError, match="Too many"):
        accounts.log_in("cora", "wrong", "one address", 60)


def test_every_login_is_a_new_session_which_ends(accounts: Accounts, clock: Clock) -> None:
    accounts.set_password("ada", "correct horse battery")
    one, two = (accounts.log_in("ada", "correct horse battery", "a", 60) for _ in range(2))
    assert one != two
    accounts.log_out(one)
    assert accounts.by_session(one) is None
    assert accounts.by_session(two) == Who("ada", "analyst", frozenset({"ask", "replay"}))
    clock.now += 60
    assert accounts.by_session(two) is None


def test_a_new_password_ends_old_sessions(accounts: Accounts) -> None:
    accounts.set_password("ada", "correct horse battery")
    session = accounts.log_in("ada", "correct horse battery", "a", 60)
    accounts.set_password("ada", "another horse battery")
    assert accounts.by_session(session) is None


def test_a_code_works_once_and_not_for_long(accounts: Accounts, clock: Clock) -> None:
    code = accounts.make_code("ada")
    assert accounts.log_in_by_code(code, "a", 60)
    with pytest.raises(AccessError):
        accounts.log_in_by_code(code, "a", 60)
    late = accounts.make_code("ada")
    clock.now += 601
    with pytest.raises(AccessError):
        accounts.log_in_by_code(late, "b", 60)


def test_a_narrow_token_cannot_become_a_session(accounts: Accounts) -> None:
    """Twin: a whole one can."""
    _, narrow = accounts.make_token("ada", ["replay"])
    with pytest.raises(AccessError, match="fewer rights"):
        accounts.log_in_by_token(narrow, "a", 60)
    _, whole = accounts.make_token("ada")
    assert accounts.log_in_by_token(whole, "a", 60)


def test_a_project_has_a_quota_of_its_own(accounts: Accounts) -> None:
    accounts.set_project("hearts", Fraction(1, 2), ["ada"])
    _, secret = accounts.make_token("ada", project="hearts")
    who = accounts.by_token(secret)
    assert who is not None
    held = accounts.hold(who, Fraction(2, 5))
    with pytest.raises(BudgetError, match="project hearts"):
        accounts.hold(who, Fraction(1, 5))
    accounts.settle(held, None)  # nothing was charged
    accounts.settle(accounts.hold(who, Fraction(1, 2)), 7)
    assert accounts.spent("hearts") == Fraction(1, 2)
    with pytest.raises(ArgumentError, match="no member"):
        accounts.make_token("cora", project="hearts")


@pytest.mark.parametrize("name", ["", " ada", "a\nb", "x" * 201, "a\x00b"])
def test_names_are_those_of_the_ledger(accounts: Accounts, name: str) -> None:
    with pytest.raises(ArgumentError):
        accounts.add(name, "analyst")


def test_a_file_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.people")) as made:
        made.execute("PRAGMA user_version = 99")
    with pytest.raises(Exception, match="newer dither"):
        ServiceStore(tmp_path / "x.people")
