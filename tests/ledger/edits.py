"""A ledger with every kind of entry, and what an attacker can make of its rows."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Receipt, entry_message
from dither.ledger.records import ENGINE, hash_of
from dither.ledger.state import sealed_text
from dither.ledger.stores.base import Row
from ledger.asking import RHO_MAX, Fake, abandoned, asked, declaration, gaussian, request, reserved


def story(ledger: Ledger) -> Receipt:
    """Every kind of entry but `restored`, and a reservation that is left open. The receipt is of entry 10."""
    terms: dict[str, Any] = {"per_analyst": Fraction(1, 2), "per_query": Fraction(10), "analysts": ("ada", "bob")}
    ledger.register(declaration(delta="1e-6", **terms))
    asked(ledger, 1)
    ledger.cancel(reserved(ledger, 2, "0.3", analyst="bob"))
    for analyst in ("bob", "bob", "ada"):  # one entry in all
        ledger.reserve(request(1, analyst=analyst))
    ledger.register(declaration(delta="1e-6", **terms | {"catalog_hash": "c2"}))
    receipt = asked(ledger, 3, gaussian(RHO_MAX / 10), catalog_hash="c2")
    broken = reserved(ledger, 6, "0.01", catalog_hash="c2")
    broken.touch()
    ledger.give_up(broken, ENGINE)
    ledger.reopen()
    abandoned(ledger, 7, "0.01", catalog_hash="c2")
    reserved(ledger, 4, gaussian(RHO_MAX / 10, Fraction(1, 10**8)), analyst="bob", catalog_hash="c2")
    asked(ledger, 5, "0.01", catalog_hash="c2", tables=("people", "visits"))
    return receipt


def canonical(found: Any) -> str:
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def rechained(rows: list[Row], key: Key | None = None) -> list[Row]:
    """All numbers and hashes made again, as an attacker with the whole file would; signatures only with a key."""
    done: list[Row] = []
    for row in rows:
        previous = done[-1].hash if done else "0" * 64
        body = canonical(json.loads(row.body) | {"previous": previous, "number": len(done) + 1})
        made = row._replace(number=len(done) + 1, body=body, hash=hash_of(body))
        done.append(made._replace(signature=key.sign(entry_message(made.hash))) if key and row.signature else made)
    return done


def ended(fake: Fake, rows: list[Row], key: Key | None = None) -> Fake:
    """With a head for these rows; sealed only with a key."""
    head = {"number": len(rows), "hash": rows[-1].hash, "time": json.loads(rows[-1].body)["time"]}
    texts = fake.texts | {"head": canonical(head)}
    if key is not None:
        texts["seal"] = key.seal(sealed_text(json.loads(texts["ledger"])["ledger"], texts))
    return Fake(rows, texts)
