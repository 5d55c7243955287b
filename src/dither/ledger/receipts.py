"""Signs entries and receipts with the curator's key, so that nobody else can write a ledger that verifies.

The key is Ed25519. The private key is a file beside the ledger, readable by its owner only. The public key is in the ledger
and may be given to anyone.

The key can be rotated: an entry that both keys sign says that another one signs from there on (Keys). What was signed before
stays as it is, and is checked against the key that was in force at its place.

A receipt is for the analyst: the question and its price, tied to one place in one ledger by the curator's signature. It names
two entries. A ledger that lacks them, such as a copy from before the answer, is not the ledger that issued the receipt.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dither.errors import Blank, Fix, LedgerError
from dither.ledger.files import draft_of, publish, remove_stale_drafts
from dither.ledger.records import (
    Advanced,
    Committed,
    Entry,
    Reserved,
    Rotated,
    canonical,
    digest,
    hash_of,
    load_json,
    parse,
    plain,
)
from dither.ledger.stores.base import Row
from dither.process import PLAIN

STREAM_USE = "running sums 1"  # the use of the secret that states of streams are encrypted under
_MARK_USE = "data marks 1"
_NONCE = 12


class Key:
    """The curator's private key."""

    def __init__(self, private: Ed25519PrivateKey, handed: Mapping[str, bytes] | None = None) -> None:
        self._private = private
        self.public = private.public_key().public_bytes(form.Encoding.Raw, form.PublicFormat.Raw).hex()
        raw = private.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, form.NoEncryption())
        self._sealing = HKDF(SHA256(), 32, salt=None, info=b"dither ledger seal 2").derive(raw)
        self._handed = dict(handed or {})  # secrets of the key before it, by their use
        self._marking = self._handed.get(_MARK_USE) or HKDF(SHA256(), 32, salt=None, info=b"dither data mark 1").derive(raw)

    @classmethod
    def new(cls) -> Key:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def create(cls, path: Path) -> Key:
        """Creates a key file, synced before the key is used. Returns the existing key if there is one."""
        made = cls.new()
        text = made._private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        remove_stale_drafts(path)
        draft = draft_of(path)
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600), "wb") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            publish(draft, path)
        except FileExistsError:
            return cls.read(path)
        except OSError:
            raise LedgerError(
                f"The key file {path.name} cannot be made.", fix="give this user write access to its folder."
            ) from None
        finally:
            with suppress(OSError):
                draft.unlink()
        return made

    @classmethod
    def read(cls, path: Path) -> Key:
        try:
            with path.open("rb") as file:
                text, mode = file.read(), os.fstat(file.fileno()).st_mode
            private = form.load_pem_private_key(text, password=None)
        except FileNotFoundError:
            raise LedgerError(
                f"The ledger's key file {path.name} is missing.",
                fix=Fix(
                    "put the curator's key file beside the ledger, or name it: {key}; without it nothing can be signed.",
                    key=Blank("FILE"),
                ),
            ) from None
        except OSError:
            raise LedgerError(f"The key file {path.name} cannot be read.", fix="run as the user who owns it.") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise LedgerError(f"{path.name} is no key of a ledger.", fix="name the file that was made with the ledger.")
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise LedgerError(
                f"The key file {path.name} is open to other users of this machine: anyone who has it can write the ledger.",
                fix=f"chmod 600 {path.name}",
            )
        return cls(private)

    def sign(self, message: str) -> str:
        return self._private.sign(message.encode("ascii")).hex()

    def seal(self, text: str) -> str:
        """Returns a signature of the text, for anyone to check, and a MAC, which the key's holder checks 30 times faster."""
        return f"{self.sign(state_message(text))} {self._mac(text)}"

    def is_sealed(self, text: str, seal: str) -> bool:
        """Returns whether this key sealed the text. If the MAC is damaged, a valid signature is enough."""
        signature, _, mac = seal.partition(" ")
        right = hmac.compare_digest(mac.encode("utf-8", "replace"), self._mac(text).encode("ascii"))
        return right or is_signed(self.public, state_message(text), signature)

    def marker(self) -> hmac.HMAC:
        """Returns a new HMAC for a mark of the data (marks.py), under a key of its own."""
        return hmac.new(self._marking, digestmod="sha256")

    def derive(self, use: str) -> bytes:
        """Returns a secret of its own for another use of the curator's key, such as sealing the states of running sums."""
        if use in self._handed:
            return self._handed[use]
        raw = self._private.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, form.NoEncryption())
        return HKDF(SHA256(), 32, salt=None, info=b"dither derived key 1\n" + use.encode("ascii")).derive(raw)

    def hand_over(self, new: Key, ledger: str) -> str:
        """Returns the secrets that stored data depends on, encrypted for the next key: of streams' states, and of marks."""
        kept = {STREAM_USE: self.derive(STREAM_USE), _MARK_USE: self._marking}
        text = canonical({use: secret.hex() for use, secret in kept.items()})
        nonce = secrets.token_bytes(_NONCE)
        return (nonce + new._wrapping().encrypt(nonce, text.encode("ascii"), ledger.encode("ascii"))).hex()

    def with_handed(self, text: str, ledger: str) -> Key:
        """Returns this key with the secrets that the key before it handed over."""
        try:
            sealed = bytes.fromhex(text)
            found = load_json(
                self._wrapping().decrypt(sealed[:_NONCE], sealed[_NONCE:], ledger.encode("ascii")).decode("ascii")
            )
            return Key(self._private, {str(use): bytes.fromhex(secret) for use, secret in found.items()})
        except (InvalidTag, ValueError, TypeError, AttributeError):
            raise LedgerError(
                "The secrets that the ledger's key before this one handed over were changed.", fix="run `dither verify`."
            ) from None

    def _wrapping(self) -> AESGCM:
        raw = self._private.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, form.NoEncryption())
        return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"dither ledger secrets 1").derive(raw))

    def _mac(self, text: str) -> str:
        return hashlib.blake2b(text.encode("ascii"), key=self._sealing, digest_size=32).hexdigest()

    def __repr__(self) -> str:
        return f"Key(public {self.public})"


def is_signed(public: str, message: str, signature: str) -> bool:
    """Returns whether the private key of `public` signed the message."""
    try:
        given = bytes.fromhex(signature)
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(given, message.encode("ascii"))
    except (InvalidSignature, ValueError):
        return False
    return given.hex() == signature  # only the canonical spelling


def state_message(text: str) -> str:
    """Returns the text that is signed for the stored sums. Only the latest signature is stored."""
    return f"dither ledger state 1 signature\n{text}"


def entry_message(hash: str) -> str:
    """Returns the text that is signed for a replayed entry: its hash, which covers all entries before it."""
    return f"dither ledger entry 1 signature\n{hash}"


def rotation_message(hash: str) -> str:
    """Returns the text that both keys sign for a rotation: the hash of its entry, which covers all entries before it."""
    return f"dither ledger rotation 1 signature\n{hash}"


def secrets_digest(text: str) -> str:
    """Returns the digest of handed-over secrets. It tells nothing of them: each text has a nonce of its own."""
    return digest("ledger secrets 1", text)


@dataclass(frozen=True)
class Keys:
    """The public keys of a ledger: the one it was made with, and one more from each rotation on.

    The text under the key `keys` lists the rotations, each with its entry and its new key: [[57, "…"]]. `terms` has the first
    key, from entry 1 on, before them.
    """

    ledger: str
    terms: tuple[tuple[int, str], ...]

    @classmethod
    def parse(cls, text: str | None, ledger: str, first: str) -> Keys:
        """Reads the stored text. Only a seal, or the entries themselves (`follow`), prove that it is right."""
        try:
            rotations = [] if text is None else load_json(text)
            if all(type(number) is int and isinstance(key, str) for number, key in rotations):
                made = cls(ledger, ((1, first), *((number, key) for number, key in rotations)))
                if text is None or made.text() == text:
                    return made
        except (ValueError, TypeError):
            pass
        raise LedgerError("The ledger's keys cannot be read.", fix="run `dither verify`.")

    @classmethod
    def follow(cls, ledger: str, first: str, rotations: Iterable[tuple[str, str]]) -> Keys:
        """Returns the keys to which these rotations lead. Refuses one that is not signed by the key before it and by its own.

        `rotations`: the body and the signatures of each rotation's entry, in order."""
        made = cls(ledger, ((1, first),))
        for body, signatures in rotations:
            made = made._followed(body, signatures)
        return made

    def _followed(self, body: str, signatures: str) -> Keys:
        refusal = LedgerError(
            "A rotation of the ledger's key is not signed by the key before it and by the new one.", fix="run `dither verify`."
        )
        try:
            fields = load_json(body)
            entry = parse(Row(fields["number"], fields["kind"], "", body, hash_of(body), signatures))
        except (ValueError, TypeError, KeyError, LedgerError):
            raise refusal from None
        record, message = entry.record, rotation_message(entry.hash)
        if not isinstance(record, Rotated) or (record.ledger, record.old) != (self.ledger, self.in_force):
            raise refusal
        old, _, new = signatures.partition(" ")
        known = record.new in [key for _, key in self.terms]
        if (
            known
            or entry.number <= self.terms[-1][0]
            or not (is_signed(record.old, message, old) and is_signed(record.new, message, new))
        ):
            raise refusal
        return self.rotated(entry.number, record.new)

    def text(self) -> str:
        return canonical([list(term) for term in self.terms[1:]])

    @property
    def in_force(self) -> str:
        """The key that signs now."""
        return self.terms[-1][1]

    def at(self, number: int) -> str:
        """Returns the key that was in force at this entry."""
        return next((key for start, key in reversed(self.terms) if start <= number), self.terms[0][1])

    def since(self, number: int) -> tuple[str, ...]:
        """Returns the keys that were in force at this entry or later."""
        return (self.at(number), *(key for start, key in self.terms if start > number))

    def rotated(self, number: int, new: str) -> Keys:
        return Keys(self.ledger, (*self.terms, (number, new)))

    def signed(self, receipt: Receipt) -> bool:
        """Returns whether a receipt is signed by the key that was in force at its entry; a free one, by one since then."""
        newest = max(int(place["number"]) for place in receipt.answers)
        if receipt.derived:
            return any(receipt.verify(key) for key in self.since(newest))
        return receipt.verify(self.at(newest))


FIELDS = {"receipt", "ledger", "question", "catalog", "snapshot", "unit", "neighbours", "analyst", "mechanisms", "loss", "rule"}
FIELDS |= {"time", "reserved", "entry"}
DERIVED = {
    "receipt",
    "ledger",
    "question",
    "catalog",
    "snapshot",
    "unit",
    "neighbours",
    "analyst",
    "time",
    "made_of",
    "numbers",
}


@dataclass(frozen=True)
class Receipt:
    """The signed facts of one answer.

    Receipt 1 is of a charged answer: `body["entry"]` is the committed entry, whose hash covers the answer too. Receipt 2 is of
    a free answer: `body["made_of"]` are the committed entries of the answers that it was computed from, and `body["numbers"]`
    is the digest of their numbers as they were used.
    """

    body: Mapping[str, Any]
    signature: str

    @property
    def derived(self) -> bool:
        """Whether it is of a free answer."""
        return "made_of" in self.body

    @property
    def answers(self) -> tuple[Mapping[str, Any], ...]:
        """The committed entries that it names: of the answer, or of those that a free answer was made of."""
        return tuple(self.body["made_of"]) if self.derived else (self.body["entry"],)

    @property
    def places(self) -> tuple[Mapping[str, Any], ...]:
        """All entries that it names."""
        return self.answers if self.derived else (self.body["reserved"], self.body["entry"])

    def verify(self, public_key: str) -> bool:
        """Returns whether this key signed the receipt. `dither verify --receipt` checks that a ledger has its entries."""
        return is_signed(public_key, message(self.body), self.signature)

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        return {"body": plain(self.body, "receipt"), "signature": self.signature}

    def to_json(self) -> str:
        return json.dumps(self.as_data(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        try:
            fields = load_json(text)
            body, signature = fields["body"], fields["signature"]
            shapes = {1: FIELDS, 2: DERIVED}
            right = set(fields) == {"body", "signature"} and set(body) == shapes[body["receipt"]]
            if right and isinstance(signature, str):
                made, places = cls(body, signature), cls(body, signature).places
                message(body)
                if places and all(map(_is_place, places)):
                    return made
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise LedgerError("This is no receipt of dither.", fix="name the file that was saved with the answer.")


def _is_place(value: Any) -> bool:
    return set(value) == {"number", "hash"} and type(value["number"]) is int and isinstance(value["hash"], str)


def message(body: Mapping[str, Any]) -> str:
    """Returns the text that is signed for a receipt."""
    return f"dither receipt {body['receipt']}\n{canonical(body)}"


def body_of(ledger: str, reserved: Entry, reserved_hash: str, number: int, hash: str) -> dict[str, Any]:
    """Returns a receipt's body, from the reservation and the place of the committed entry."""
    record = reserved.record
    if not isinstance(record, Reserved):
        raise LedgerError(f"Entry {reserved.number} is no reservation.", fix="run `dither verify`.")
    return {
        "receipt": 1,
        "ledger": ledger,
        "question": record.question,
        "catalog": record.catalog,
        "snapshot": record.snapshot,
        "unit": record.unit,
        "neighbours": record.neighbours,
        "analyst": record.analyst,
        "mechanisms": record.encoded["mechanisms"],
        "loss": record.encoded["loss"],
        "rule": record.rule,
        "time": reserved.time,
        "reserved": {"number": reserved.number, "hash": reserved_hash},
        "entry": {"number": number, "hash": hash},
    }


def issue(key: Key, ledger: str, reserved: Entry, reserved_hash: str, number: int, hash: str) -> Receipt:
    body = body_of(ledger, reserved, reserved_hash, number, hash)
    return Receipt(body, key.sign(message(body)))


def issue_derived(
    key: Key, ledger: str, facts: Mapping[str, str], made_of: Sequence[Receipt], numbers: str, time: str
) -> Receipt:
    """Signs the receipt of a free answer. `facts`: its question, catalog, snapshot, unit, neighbours and analyst; `made_of`:
    the receipts of the answers that it was made of; `numbers`: their noisy numbers as they were used, encoded."""
    places = [dict(receipt.body["entry"]) for receipt in made_of]
    body = {"receipt": 2, "ledger": ledger, **facts, "time": time, "made_of": places}
    body |= {"numbers": digest("derived numbers 1", numbers)}
    return Receipt(body, key.sign(message(body)))


def stored_receipt(ledger: str, reserved: Entry, committed: Entry, signature: str) -> Receipt:
    """Returns the receipt of a stored answer, as it was issued."""
    if not isinstance(committed.record, Committed | Advanced):
        raise LedgerError(f"Entry {committed.number} is no answer.", fix="run `dither verify`.")
    return Receipt(body_of(ledger, reserved, reserved.hash, committed.number, committed.hash), signature)
