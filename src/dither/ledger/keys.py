"""The curator's key: signs entries and receipts, so that nobody else can write a ledger that verifies.

Ed25519. The private half is a file beside the ledger, readable by its owner only; the public half is in the ledger and may
be given to anyone.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dither.errors import Blank, Fix, LedgerError
from dither.ledger.files import draft_of, publish, sweep


class Key:
    """The private half."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes(form.Encoding.Raw, form.PublicFormat.Raw).hex()
        raw = private.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, form.NoEncryption())
        self._sealing = HKDF(SHA256(), 32, salt=None, info=b"dither ledger seal 2").derive(raw)

    @classmethod
    def new(cls) -> Key:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def create(cls, path: Path) -> Key:
        """A new key in a new file, on the disk whole before it is used; a key that is there already is kept and returned."""
        made = cls.new()
        text = made._private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        sweep(path)
        draft = draft_of(path)
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
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
                f"The key file {path.name} is open to other users of this machine, and who has it can write the ledger.",
                fix=f"chmod 600 {path.name}",
            )
        return cls(private)

    def sign(self, message: str) -> str:
        return self._private.sign(message.encode("ascii")).hex()

    def seal(self, text: str) -> str:
        """A signature of the text, which anyone can check, and a MAC, which the key's holder checks thirty times faster."""
        return f"{self.sign(state_message(text))} {self._mac(text)}"

    def sealed(self, text: str, seal: str) -> bool:
        """Whether the key's holder sealed this text. A spoilt MAC does no harm while the signature is right."""
        signature, _, mac = seal.partition(" ")
        right = hmac.compare_digest(mac.encode("utf-8", "replace"), self._mac(text).encode("ascii"))
        return right or signed(self.public, state_message(text), signature)

    def _mac(self, text: str) -> str:
        return hashlib.blake2b(text.encode("ascii"), key=self._sealing, digest_size=32).hexdigest()

    def __repr__(self) -> str:
        return f"Key(public {self.public})"


def signed(public: str, message: str, signature: str) -> bool:
    """Whether the signature of the message was made with the private half of `public`."""
    try:
        given = bytes.fromhex(signature)
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(given, message.encode("ascii"))
    except (InvalidSignature, ValueError):
        return False
    return given.hex() == signature  # one spelling only


def state_message(text: str) -> str:
    """What is signed of the sums beside the entries: the latest only, so an old one is nowhere to be found."""
    return f"dither ledger state 1 signature\n{text}"


def entry_message(hash: str) -> str:
    """What is signed of an entry that is not a receipt's: its hash, which covers all entries before it."""
    return f"dither ledger entry 1 signature\n{hash}"
