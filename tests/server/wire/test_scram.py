"""Logins: a token is proved, never sent; names that do not exist look like those that do."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import psycopg
import pytest

from dither.errors import AccessError
from dither.server.wire.scram import BOUND, PLAIN, Exchange, ScramError, salt_of, verifier
from server.serving import Service, make
from server.wire.talking import Raw, Wire, fields, wired

FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"


def test_a_verifier_is_as_in_rfc_7677() -> None:
    """The example of RFC 7677: password pencil, 4096 rounds; the client's proof is the one printed there."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    exchange = Exchange(PLAIN, salt)
    exchange.first(FIRST)
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange._nonce = nonce
    exchange._reply = b"r=%b,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096" % nonce
    final = b"c=biws,r=%b,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=" % nonce
    known = verifier("pencil", salt)
    assert exchange.final(final, [known]) == (0, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert exchange.final(final, [verifier("other", salt), known]) == (1, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert exchange.final(final, [verifier("pencil2", salt)]) is None
    assert exchange.final(final.replace(b"c=biws", b"c=eSws"), [known]) is None
    assert exchange.final(final.replace(b"p=dHzb", b"p=aHzb"), [known]) is None


@pytest.mark.parametrize(
    ("mechanism", "binding", "first"),
    [
        ("SCRAM-SHA-1", None, FIRST),
        (BOUND, None, b"p=tls-server-end-point" + FIRST[1:]),
        (BOUND, b"hash", FIRST),  # the client asked for binding and does not bind
        (PLAIN, b"hash", b"y" + FIRST[1:]),  # somebody took the offer of binding away
        (PLAIN, None, b"p=tls-server-end-point" + FIRST[1:]),
        (PLAIN, None, b""),
        (PLAIN, None, b"n,,n=,r="),
        (PLAIN, None, b"n,b,n=,r=aaaaaaaaaaaa"),
    ],
)
def test_an_exchange_that_is_not_right_is_refused(mechanism: str, binding: bytes | None, first: bytes) -> None:
    with pytest.raises(ScramError):
        Exchange(mechanism, b"salt", binding).first(first)


def test_salts_depend_on_the_name_and_the_service_alone() -> None:
    assert salt_of(b"a", "ada") == salt_of(b"a", "ada")
    assert len({salt_of(b"a", "ada"), salt_of(b"b", "ada"), salt_of(b"a", "ben")}) == 3


def test_what_is_stored_is_not_enough_to_log_in(tmp_path: Path) -> None:
    service: Service = make(tmp_path)
    with service.accounts() as accounts:
        ((ident, known),) = accounts.verifiers("ada")
        assert accounts.by_token_id(ident) == accounts.by_token(service.tokens["ada"])
        for secret in (known.stored, known.server):
            assert service.tokens["ada"].encode() not in secret
            assert accounts.by_token(secret.hex()) is None
        assert accounts.verifiers("nobody") == []
        with pytest.raises(AccessError, match="not right"):
            accounts.log_in_by_proof("nobody", "here", lambda known: None if len(known) == 1 else 0)
        assert accounts.log_in_by_proof("ada", "here", lambda known: 0).name == "ada"


def test_failed_logins_keep_no_owner_out(tmp_path: Path) -> None:
    with make(tmp_path).accounts() as accounts:
        for _ in range(20):
            with pytest.raises(AccessError):
                accounts.log_in_by_proof("ada", "here", lambda known: None)
        try:
            who = accounts.log_in_by_proof("ada", "here", lambda known: 0)
        except AccessError as error:
            raise AssertionError("a right proof is turned away") from error
        assert who.name == "ada"


def first_reply(wire: Wire, name: str) -> bytes:
    with Raw(wire.port) as raw:
        raw.start(user=name)
        raw.receive()
        first = b"n,,n=,r=" + b"x" * 20
        raw.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        _, body = raw.receive()
        return body[4:].split(b",", 1)[1]


@pytest.mark.slow
def test_a_name_that_does_not_exist_looks_like_one_that_does(wire: Wire) -> None:
    for name in ("ada", "nobody"):
        assert first_reply(wire, name) == first_reply(wire, name)  # the same salt and rounds each time
        assert len(first_reply(wire, name)) == len(first_reply(wire, "cora"))
    for name in ("ada", "nobody", "otto", "", "a\x01b"):
        with Raw(wire.port) as raw:
            found = raw.log_in(name, "dth_" + "y" * 43)
            told = fields(found[-1][1])
            assert (told["M"], told["C"]) in (("This login is not right.", "28P01"), ("Too many failed logins.", "28000"))


@pytest.mark.slow
def test_guessing_is_slowed_down_and_keeps_no_owner_out(tmp_path: Path) -> None:
    with wired(tmp_path) as wire:
        told = []
        for _ in range(12):
            with pytest.raises(psycopg.OperationalError) as refused:
                wire.connect("ada", token="dth_" + "z" * 43)
            told.append("Too many failed logins" in str(refused.value))
        assert told == [False] * 10 + [True] * 2
        with wire.connect("ada") as link:  # a token cannot be guessed, so the right one is let in
            assert link.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.slow
def test_an_auditor_has_nothing_to_do_here(wire: Wire) -> None:
    with pytest.raises(psycopg.OperationalError, match="may not read answers"):
        wire.connect("otto")
