"""The text of each kind of entry never changes: kinds.txt holds it, and the ledger reads it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dither.errors import LedgerError
from dither.ledger.records import (
    KINDS,
    START,
    Advanced,
    Approved,
    Cancelled,
    CancelledApproved,
    Closed,
    Committed,
    Declared,
    Denied,
    Entry,
    Failed,
    Lapsed,
    Opened,
    Policy,
    Record,
    Reopened,
    Replayed,
    Requested,
    Reserved,
    Restored,
    Rotated,
    hash_of,
    parse,
    question_digest,
    replay_key,
    token_of,
)
from dither.ledger.stores.base import Row
from dither.ledger.verify import entries as verify_entries
from dither.privacy.filters import Caps, Charge

GOLDEN = Path(__file__).with_name("kinds.txt")
CHARGE = Charge(Fraction(1, 10), Fraction(1, 10**9), Fraction(1, 200), Fraction(0))
CAPS = Caps(Fraction(1), Fraction(1, 2000000), Fraction(1, 4000000), Fraction(1, 4000000), Fraction(1, 64))
RECORDS: list[Record] = [
    Opened("0" * 32, "1" * 64, CAPS),
    Declared(
        catalog="c1",
        text='{"tables":{}}',
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        per_analyst=Fraction(1, 4),
        per_query=None,
        least_epsilon=Fraction(1, 10_000),
        analysts=("ada", "bob"),
        neighbours="add or remove one person",
        snapshot="2026-11",
        units={"people": "person_id"},
    ),
    Reserved(
        question="SELECT COUNT(*) FROM people WHERE name = 'Zoë'",
        digest="2" * 64,
        plan="plan",
        catalog="c1",
        snapshot="2026-11",
        analyst="ada",
        loss=CHARGE,
        rule="sum",
        tables=("people",),
        unit="person_id",
        neighbours="add or remove one person",
        mechanisms=({"noise": "geometric", "sensitivity": 1, "epsilon": "1/10"},),
        fresh=False,
        token="3" * 64,
    ),
    Committed(3, "4" * 64, "2" * 64, "5" * 64, '[["north",41]]'),
    Cancelled(3, "4" * 64, "5" * 64),
    Failed(3, "4" * 64, "5" * 64, "engine"),
    Lapsed(3, "4" * 64),
    Replayed(4, "6" * 64, "2" * 64, "bob", Charge(Fraction(1, 10), Fraction(0))),
    Reopened(7),
    Restored(9, "12:" + "7" * 64),
    Advanced(3, "4" * 64, "2" * 64, "5" * 64, '{"sums":[41]}', "8" * 64, 7, 4, "9" * 64),
    Policy(Fraction(1, 10), ("people", "visits")),
    Requested("SELECT COUNT(*) FROM people", "2" * 64, "c1", "2026-11", "ada", CHARGE, ("people",)),
    Approved(13, "a" * 64, "cora", "for the report", "2026-11-22T12:00:00.000000Z"),
    Denied(13, "a" * 64, "cora", "too dear"),
    Closed("cora", "the audit begins"),
    Rotated("0" * 32, "1" * 64, "b" * 64, "c" * 64, "cora", "once a year"),
    CancelledApproved(3, "4" * 64, "5" * 64, 13),
]


def entries() -> list[Entry]:
    time = "2026-11-15T12:00:00.000000Z"
    return [Entry(i, START, f"{i:032x}", time, record) for i, record in enumerate(RECORDS, start=1)]


def golden() -> list[tuple[str, str]]:
    lines = [line for line in GOLDEN.read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    return list(zip(lines[::2], lines[1::2], strict=True))


def row(body: str) -> Row:
    found = json.loads(body)
    return Row(found["number"], found["kind"], "", body, hash_of(body), "")


def test_every_kind_has_its_text() -> None:
    assert [type(record) for record in RECORDS] == list(KINDS.values())
    assert [(entry.body, entry.hash) for entry in entries()] == golden()


def test_every_text_is_read_back() -> None:
    for (body, hash), entry in zip(golden(), entries(), strict=True):
        assert parse(row(body)) == entry
        assert parse(row(body)).hash == hash


def test_verification_reads_the_same_kinds() -> None:
    assert set(verify_entries.SHAPES) == set(KINDS)
    for body, _ in golden():
        assert verify_entries.entry(row(body)) == json.loads(body)


@pytest.mark.parametrize("reader", [parse, verify_entries.entry])
@pytest.mark.parametrize("body", [body for body, _ in golden()])
def test_no_other_text_is_read(reader, body: str) -> None:
    """Twin: the texts are not read by their looks. Each change below is one that JSON itself would not mind."""
    found = json.loads(body)
    changed = [found | {"kind": kind} for kind in ("reserved/2", "paid/1", "", found["kind"].upper())]
    changed += [found | {"more": 1}, found | {"number": True}, found | {"number": str(found["number"])}]
    changed += [{name: value for name, value in found.items() if name != missing} for missing in found]
    changed += [found | {name: 1.5} for name in found]
    if "loss" in found:
        changed += [found | {"loss": found["loss"] | {"epsilon": text}} for text in ("2/20", "0.1", "-1/10", "1/0", " 1", "١")]
    texts = [json.dumps(each, sort_keys=True, separators=(",", ":")) for each in changed]
    texts += [json.dumps(found), body + " ", body[:-1], body.replace("{", '{"time":"",', 1), "[]", "", "null", "1"]
    good = row(body)
    for text in texts:
        with pytest.raises((LedgerError, verify_entries.EntryError)):
            reader(good._replace(body=text, hash=hash_of(text)))


def test_digests_are_for_ever() -> None:
    assert question_digest("plan", "c1", "2026-11") == "f395ee01a8333b8125dd841108eafa89cbf33fd3384a7b8bb8508b4bd85c05b9"
    assert replay_key(4, "bob") == "11a3f9fc1b3a707061554dd48ef64a69ee790c468836ef1b807f75c18a97d868"
    assert token_of("ab") == "ca77845dfb80866907e23248ac9d3ebcce50c9de8c6ac09e57a89b93a9133eb5"
    assert hash_of("{}") == "a920fec92b2f96c0ac0ac71ee9e982f1037d32a64bc18a22d50e33d4f83f78eb"
    assert len({token_of("{}"), hash_of("{}")}) == 2  # one purpose, one hash
