"""People, tokens, sessions and projects: who may do what.

    token     dth_ and 256 random bits. Stored as SHA-256, which is enough for that many bits
    password  for people who log in to the console. Stored as argon2id
    session   256 random bits in a cookie, a new one for every login. Stored as SHA-256
    code      a login that works once, within ten minutes, such as the link that `dither serve --demo` prints

A token is also the password of the PostgreSQL protocol: what checks its proof is stored beside its hash (`wire/scram.py`).

A token has scopes, at most those of its person's role. `ask` may spend; `replay` shows stored answers and can never spend;
`audit` reads the whole ledger; `curate` decides on approvals. Every request looks its token up, so a revocation holds at once,
in all worker processes. Failed logins count per name and address: ten in a minute, then they are refused unseen.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from dither.errors import AccessError, ArgumentError, BudgetError, Fix, Shell
from dither.exact.numbers import show_about
from dither.ledger.records import analyst_name
from dither.server.store import ServiceStore
from dither.server.wire.scram import Verifier, salt_of, verifier

ROLES: dict[str, tuple[str, ...]] = {
    "analyst": ("ask", "replay"),
    "auditor": ("audit",),
    "curator": ("ask", "replay", "audit", "curate"),
}
SCOPES = ("ask", "replay", "audit", "curate")
CODE_SECONDS = 600.0
TRIES = 10  # failed logins in a minute, for one name and for one address
LONGEST_PASSWORD, SHORTEST_PASSWORD = 1024, 12
_TOKEN = re.compile(r"dth_[A-Za-z0-9_-]{43}", re.ASCII)
_PROJECT = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Who:
    """Who asks, proved by a token or a session, and what they may do."""

    name: str
    role: str
    scopes: frozenset[str]
    project: str | None = None
    token: str | None = None  # its id; None: a session

    def may(self, scope: str) -> bool:
        return scope in self.scopes or (scope == "replay" and "ask" in self.scopes)

    def require(self, scope: str) -> None:
        """Refuses if the scope is missing."""
        if not self.may(scope):
            raise AccessError(
                f"This login may not {_WORDS[scope]}.",
                status=403,
                fix=f"use a token with the scope {scope}; the curator makes it.",
            )


_WORDS = {
    "ask": "spend from the budget",
    "replay": "read answers",
    "audit": "read the whole ledger",
    "curate": "decide on questions",
}


def hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


class Accounts:
    """The people who may ask, and how they prove it."""

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._hashing = threading.BoundedSemaphore(2)  # argon2 is meant to be expensive

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return PasswordHasher()

    @cached_property
    def _nobody(self) -> str:
        """A hash for names that do not exist, so that they take as long as others."""
        return self._hasher.hash(secrets.token_urlsafe(32))

    # --- people -------------------------------------------------------------------------------------------------

    def add(self, name: str, role: str) -> str:
        """Adds a person. Returns the name as the ledger writes it."""
        name = analyst_name(name)
        if role not in ROLES:
            raise ArgumentError(f"{role} is no role.", fix=f"take one of: {', '.join(ROLES)}.")
        try:
            self._store.write("INSERT INTO people VALUES (?, ?, NULL, 1, ?)", name, role, self._clock(), durable=True)
        except sqlite3.IntegrityError:
            raise ArgumentError(f"{name} is there already.", fix="choose another name.") from None
        return name

    def people(self) -> list[dict[str, Any]]:
        rows = self._store.read(
            "SELECT p.name, p.role, p.active, p.password IS NOT NULL, "
            "(SELECT count(*) FROM tokens t WHERE t.person = p.name AND t.revoked IS NULL) FROM people p ORDER BY p.name"
        )
        return [
            {"name": name, "role": role, "active": bool(active), "password": bool(password), "tokens": tokens}
            for name, role, active, password, tokens in rows
        ]

    def remove(self, name: str) -> None:
        """Ends a person's access: no token, session or password works again. What they asked stays in the ledger."""
        self._person(name)
        with self._store.transaction(durable=True) as inside:
            inside.execute("UPDATE people SET active = 0, password = NULL WHERE name = ?", (name,))
            inside.execute("UPDATE tokens SET revoked = ? WHERE person = ? AND revoked IS NULL", (self._clock(), name))
            inside.execute("DELETE FROM sessions WHERE person = ?", (name,))
            inside.execute("DELETE FROM codes WHERE person = ?", (name,))

    def _person(self, name: str) -> tuple[str, str | None]:
        """Returns role and password hash of an active person."""
        rows = self._store.read("SELECT role, password FROM people WHERE name = ? AND active = 1", name)
        if not rows:
            raise ArgumentError(f"There is nobody named {name}.", fix=Fix("see {it}.", it=Shell("dither people list")))
        role, password = rows[0]
        return role, password

    def set_password(self, name: str, password: str) -> None:
        """Sets a password, and ends all sessions of the person."""
        self._person(name)
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise ArgumentError(
                f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.", fix="choose a longer one: four words."
            )
        with self._hashing:
            made = self._hasher.hash(password)
        with self._store.transaction(durable=True) as inside:
            inside.execute("UPDATE people SET password = ? WHERE name = ?", (made, name))
            inside.execute("DELETE FROM sessions WHERE person = ?", (name,))

    # --- tokens -------------------------------------------------------------------------------------------------

    def make_token(
        self,
        name: str,
        scopes: Sequence[str] | None = None,
        *,
        days: float | None = None,
        project: str | None = None,
        label: str = "",
    ) -> tuple[str, str]:
        """Returns the id of a new token, and the token itself, which is stored nowhere."""
        role, _ = self._person(name)
        wanted = tuple(scopes) if scopes else ROLES[role]
        for scope in wanted:
            if scope not in ROLES[role]:
                raise ArgumentError(f"A {role} cannot have the scope {scope}.", fix=f"take some of: {', '.join(ROLES[role])}.")
        if project is not None and not self._store.read(
            "SELECT 1 FROM members WHERE project = ? AND person = ?", project, name
        ):
            fix = Fix("add them: {it}.", it=Shell(f"dither people project {project} --member {name}"))
            raise ArgumentError(f"{name} is no member of a project {project}.", fix=fix)
        secret, ident, now = _new_secret("dth_"), secrets.token_hex(6), self._clock()
        expires = None if days is None else now + 86400 * days
        row = (ident, hashed(secret), name, " ".join(wanted), project, label[:200], now, expires)
        checked = verifier(secret, self.salt(name))
        with self._store.transaction(durable=True) as inside:
            inside.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", row)
            inside.execute("INSERT INTO verifiers VALUES (?, ?, ?)", (ident, checked.stored, checked.server))
        return ident, secret

    def tokens(self, name: str | None = None) -> list[dict[str, Any]]:
        """Lists tokens without their secrets: nobody can read those again."""
        rows = self._store.read(
            "SELECT id, person, scopes, project, label, expires, revoked FROM tokens WHERE ?1 IS NULL OR person = ?1 "
            "ORDER BY created",
            name,
        )
        names = ("id", "person", "scopes", "project", "label", "expires", "revoked")
        return [dict(zip(names, row, strict=True)) | {"scopes": row[2].split()} for row in rows]

    def revoke(self, ident: str) -> None:
        """Ends a token, at once and for ever."""
        changed = self._store.write(
            "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", self._clock(), ident, durable=True
        )
        if not changed:
            raise ArgumentError(f"There is no token {ident} to revoke.", fix=Fix("see {it}.", it=Shell("dither people tokens")))

    def by_token(self, secret: str) -> Who | None:
        """Returns whose token this is; None if it is none, expired or revoked."""
        return self._who("t.hash = ?", hashed(secret)) if _TOKEN.fullmatch(secret) else None

    def _who(self, condition: str, value: bytes | str) -> Who | None:
        rows = self._store.read(
            "SELECT t.id, t.scopes, t.project, t.expires, p.name, p.role FROM tokens t JOIN people p ON p.name = t.person "
            f"WHERE {condition} AND t.revoked IS NULL AND p.active = 1",
            value,
        )
        if not rows or (rows[0][3] is not None and rows[0][3] <= self._clock()):
            return None
        ident, scopes, project, _, name, role = rows[0]
        return Who(name, role, frozenset(scopes.split()) & frozenset(ROLES[role]), project, ident)

    def check_still(self, who: Who) -> None:
        """Refuses somebody who was removed, or whose token was revoked, since they were recognised."""
        active = "SELECT 1 FROM people WHERE name = ? AND active = 1"
        if not (self._store.read(active, who.name) if who.token is None else self.by_token_id(who.token)):
            raise AccessError("This login has ended.", status=401, fix="log in again.")

    # --- tokens as passwords of the PostgreSQL protocol ---------------------------------------------------------

    @cached_property
    def wire_secret(self) -> bytes:
        """A secret of this service, made when it is first needed."""
        self._store.write("INSERT OR IGNORE INTO secrets VALUES ('wire', ?)", secrets.token_bytes(32), durable=True)
        return bytes(self._store.read("SELECT value FROM secrets WHERE name = 'wire'")[0][0])

    def salt(self, name: str) -> bytes:
        """Returns the salt of a person's tokens. A name that does not exist has one too."""
        return salt_of(self.wire_secret, name)

    def verifiers(self, name: str) -> list[tuple[str, Verifier]]:
        """Returns the ids of a person's tokens with what checks them."""
        rows = self._store.read(
            "SELECT v.token, v.stored, v.server FROM verifiers v JOIN tokens t ON t.id = v.token "
            "WHERE t.person = ? AND t.revoked IS NULL",
            name,
        )
        return [(ident, Verifier(stored, server)) for ident, stored, server in rows]

    def by_token_id(self, ident: str) -> Who | None:
        """Returns whose token this is, as `by_token` does. For a connection that proved at its start that it has the token."""
        return self._who("t.id = ?", ident)

    def log_in_by_proof(self, name: str, address: str, prove: Callable[[Sequence[Verifier]], int | None]) -> Who:
        """Returns who logs in. `prove` says which of the verifiers a proof fits; every failure has the same text.

        A right proof always logs in, however many wrong ones came before: nobody guesses a token, and otherwise whoever knows a
        name could keep its owner out.
        """
        known = self.verifiers(name) or [("", Verifier(secrets.token_bytes(32), b""))]  # nobody: the same work, in vain
        place = prove([each for _, each in known])
        who = None if place is None else self.by_token_id(known[place][0])
        if who is None:
            buckets = self._buckets(name, address)
            self._check_tries(buckets)
            self._count_failure(buckets)
            raise _wrong_login()
        return who

    # --- sessions -----------------------------------------------------------------------------------------------

    def log_in(self, name: str, password: str, address: str, seconds: float) -> str:
        """Returns a new session. Every failure has the same text and takes the same work."""
        self._check_password(name, password, address)
        return self._session(name, seconds)

    def exchange(self, name: str, password: str, address: str, days: float, label: str) -> tuple[str, str, str]:
        """Returns the name, and the id and secret of a new token, for a password."""
        self._check_password(name, password, address)
        return (name, *self.make_token(name, days=days, label=label))

    def _check_password(self, name: str, password: str, address: str) -> None:
        buckets = self._buckets(name, address)
        self._check_tries(buckets)
        rows = self._store.read("SELECT password FROM people WHERE name = ? AND active = 1", name)
        stored = rows[0][0] if rows else None
        right = self._matches(stored or self._nobody, password[: LONGEST_PASSWORD + 1])
        if not right or stored is None or len(password) > LONGEST_PASSWORD:
            self._count_failure(buckets)
            raise _wrong_login()

    def _matches(self, stored: str, password: str) -> bool:
        with self._hashing:
            try:
                return self._hasher.verify(stored, password)
            except (VerificationError, InvalidHashError):
                return False

    def log_in_by_token(self, secret: str, address: str, seconds: float) -> str:
        """Returns a new session for a token of all its person's scopes: a session must not be more than what it came from."""
        buckets = self._buckets("", address)
        self._check_tries(buckets)
        who = self.by_token(secret)
        if who is None:
            self._count_failure(buckets)
            raise _wrong_login()
        if who.scopes != frozenset(ROLES[who.role]) or who.project is not None:
            raise AccessError(
                "This token has fewer rights than a session would have.",
                status=403,
                fix="log in with a password, or a whole token.",
            )
        return self._session(who.name, seconds)

    def make_code(self, name: str) -> str:
        """Returns a code with which this person can log in once."""
        self._person(name)
        code = _new_secret("dthl_")
        self._store.write("INSERT INTO codes VALUES (?, ?, ?)", hashed(code), name, self._clock() + CODE_SECONDS)
        return code

    def log_in_by_code(self, code: str, address: str, seconds: float) -> str:
        buckets = self._buckets("", address)
        self._check_tries(buckets)
        with self._store.transaction() as inside:
            row = inside.execute("SELECT person, expires FROM codes WHERE hash = ?", (hashed(code),)).fetchone()
            inside.execute("DELETE FROM codes WHERE hash = ? OR expires <= ?", (hashed(code), self._clock()))
        if row is None or row[1] <= self._clock():
            self._count_failure(buckets)
            raise AccessError(
                "This link was used already, or is older than ten minutes.", status=401, fix="ask for another: it works once."
            )
        self._person(row[0])
        return self._session(row[0], seconds)

    def has(self, name: str) -> bool:
        """Returns whether there is, or was, a person of this name."""
        return bool(self._store.read("SELECT 1 FROM people WHERE name = ?", name))

    def log_in_proved(self, name: str, seconds: float) -> str:
        """Returns a new session for a name that another login has proved. Refuses a name without an account."""
        if not self._store.read("SELECT 1 FROM people WHERE name = ? AND active = 1", name):
            raise AccessError(
                "You have no account here.", status=403, fix="ask the curator to add you, by the name you have there."
            )
        return self._session(name, seconds)

    def _session(self, name: str, seconds: float) -> str:
        secret, now = secrets.token_urlsafe(32), self._clock()
        with self._store.transaction() as inside:
            inside.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            inside.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (hashed(secret), name, now, now + seconds))
        return secret

    def by_session(self, secret: str) -> Who | None:
        rows = self._store.read(
            "SELECT p.name, p.role, s.expires FROM sessions s JOIN people p ON p.name = s.person "
            "WHERE s.hash = ? AND p.active = 1",
            hashed(secret),
        )
        if not rows or rows[0][2] <= self._clock():
            return None
        name, role, _ = rows[0]
        return Who(name, role, frozenset(ROLES[role]))

    def log_out(self, secret: str) -> None:
        self._store.write("DELETE FROM sessions WHERE hash = ?", hashed(secret))

    # --- failed logins ------------------------------------------------------------------------------------------

    def _buckets(self, name: str, address: str) -> list[bytes]:
        return [hashed(f"address {address}"), *([hashed(f"name {name}")] if name else [])]

    def _check_tries(self, buckets: Sequence[bytes]) -> None:
        minute = int(self._clock() // 60)
        for bucket in buckets:
            rows = self._store.read("SELECT sum(count) FROM failures WHERE bucket = ? AND minute >= ?", bucket, minute - 1)
            if (rows[0][0] or 0) >= TRIES:
                raise AccessError("Too many failed logins.", status=429, fix="wait two minutes, then try again.")

    def _count_failure(self, buckets: Sequence[bytes]) -> None:
        minute = int(self._clock() // 60)
        with self._store.transaction() as inside:
            inside.execute("DELETE FROM failures WHERE minute < ?", (minute - 1,))
            for bucket in buckets:
                inside.execute(
                    "INSERT INTO failures VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1", (bucket, minute)
                )

    # --- projects -----------------------------------------------------------------------------------------------

    def set_project(self, name: str, quota: Fraction | None, members: Sequence[str] = ()) -> None:
        """Makes a project, or changes its quota, and adds members."""
        if not _PROJECT.fullmatch(name):
            raise ArgumentError(
                "A project's name has 1 to 64 letters, digits, dots and dashes.", fix="write it as in heart-2026."
            )
        for member in members:
            self._person(member)
        with self._store.transaction(durable=True) as inside:
            text = None if quota is None else str(quota)
            inside.execute(
                "INSERT INTO projects VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET quota = COALESCE(excluded.quota, quota)",
                (name, text),
            )
            inside.executemany("INSERT OR IGNORE INTO members VALUES (?, ?)", [(name, member) for member in members])

    def projects(self) -> list[dict[str, Any]]:
        """Lists projects with their quotas, what they spent, and their members."""
        found = []
        for name, quota in self._store.read("SELECT name, quota FROM projects ORDER BY name"):
            members = [row[0] for row in self._store.read("SELECT person FROM members WHERE project = ? ORDER BY 1", name)]
            found.append({"name": name, "quota": quota, "spent": str(self.spent(name)), "members": members})
        return found

    def spent(self, project: str) -> Fraction:
        rows = self._store.read("SELECT epsilon FROM spent WHERE project = ?", project)
        return sum((Fraction(each) for (each,) in rows), Fraction(0))

    def hold(self, who: Who, epsilon: Fraction) -> int | None:
        """Counts a price in the quota of a project before its question is asked. Returns what to `settle`; None without one.

        A process that dies in between leaves it counted: a quota may end early, never late.
        """
        if who.project is None:
            return None
        with self._store.transaction() as inside:
            row = inside.execute("SELECT quota FROM projects WHERE name = ?", (who.project,)).fetchone()
            each = inside.execute("SELECT epsilon FROM spent WHERE project = ?", (who.project,)).fetchall()
            used = sum((Fraction(text) for (text,) in each), Fraction(0))
            if row is not None and row[0] is not None and used + epsilon > Fraction(row[0]):
                left = show_about(max(Fraction(row[0]) - used, Fraction(0)), up=False)
                raise BudgetError(f"The quota of the project {who.project} does not allow this question: left ε = {left}.")
            values = (who.project, who.name, str(epsilon))
            return inside.execute("INSERT INTO spent (project, person, epsilon) VALUES (?, ?, ?)", values).lastrowid

    def settle(self, held: int | None, entry: int | None) -> None:
        """Ends what `hold` began: with the entry that was charged, or with None if nothing was."""
        if held is None:
            return
        if entry is None:
            self._store.write("DELETE FROM spent WHERE id = ?", held)
        else:
            self._store.write("UPDATE spent SET entry = ? WHERE id = ?", entry, held)


def _wrong_login() -> AccessError:
    return AccessError("This login is not right.", status=401, fix="check name and password, or ask the curator.")
