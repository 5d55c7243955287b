"""Files of secret states: encrypted, authenticated, written once, read once.

    dither running sum 1 \n   salt (32 bytes)   nonce (12)   AES-256-GCM of the state        under HKDF(key, salt)

The first line is authenticated with the rest. Each file has a key of its own, derived from the curator's with a fresh salt, so
no nonce is used twice under one key. What is in the file, and whether it was changed, only the holder of the key can tell.

Reading takes the file away first: renaming is atomic, so of two readers one finds it. If the key does not fit, the file is put
back. If the process ends in between, the file is left as NAME.taken-…, and nothing was released from it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dither.errors import ArgumentError, DitherError
from dither.ledger.files import draft_of, has_one_name, publish, remove_stale_drafts
from dither.ledger.receipts import STREAM_USE, Key
from dither.process import PLAIN, sync_folder

HEAD = b"dither running sum 1\n"
USE = STREAM_USE
_SALT, _NONCE = 32, 12


def place(path: str | PathLike[str]) -> Path:
    """Returns the path of a file."""
    try:
        return Path(path)
    except TypeError:
        raise ArgumentError(f"path must name a file, and it is a {type(path).__name__}.", fix="name a file.") from None


def secret(key: bytes | str | PathLike[str]) -> bytes:
    """Returns the secret that files are sealed under: the bytes given, or one derived from the curator's key file."""
    if isinstance(key, bytes):
        if len(key) < 32:
            raise ArgumentError("key must have at least 32 bytes.", fix="make one: secrets.token_bytes(32).")
        return key
    if not isinstance(key, (str, PathLike)):
        raise ArgumentError(f"key must be bytes or a key file, and it is a {type(key).__name__}.", fix="name the key file.")
    return Key.read(Path(key)).derive(USE)


def seal(state: bytes, key: bytes, context: bytes = b"") -> bytes:
    """Returns the state encrypted and authenticated. `context`: what it is bound to; nothing else unseals it."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    return HEAD + salt + nonce + _cipher(key, salt).encrypt(nonce, state, HEAD + context)


def unseal(sealed: bytes, key: bytes, context: bytes = b"") -> bytes:
    """Returns the state. Refuses what this key did not seal, or not in this context, or what was changed since."""
    body = sealed[len(HEAD) :]
    salt, nonce, rest = body[:_SALT], body[_SALT : _SALT + _NONCE], body[_SALT + _NONCE :]
    if sealed.startswith(HEAD) and len(nonce) == _NONCE:
        with suppress(InvalidTag):
            return _cipher(key, salt).decrypt(nonce, rest, HEAD + context)
    raise DitherError(
        "This is no running sum that was saved with this key, or it was changed.", fix="use the key it was saved with."
    )


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=salt, info=HEAD).derive(key))


def write(path: Path, sealed: bytes) -> Path:
    """Writes a new file, readable by its owner only, and syncs it. Never overwrites one."""
    remove_stale_drafts(path)
    draft = draft_of(path)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600), "wb") as out:
            out.write(sealed)
            out.flush()
            os.fsync(out.fileno())
        publish(draft, path)
    except FileExistsError:
        raise DitherError(f"{path.name} exists already, and may be a state to continue from.", fix="name a new file.") from None
    except (OSError, ValueError):
        raise DitherError(f"{path.name} cannot be written.", fix="name a file in a folder that you may write to.") from None
    finally:
        with suppress(OSError, ValueError):
            draft.unlink()
    return path


@contextmanager
def taken(path: Path) -> Iterator[bytes]:
    """Takes a file away and gives its content. Puts it back if reading it fails; otherwise it is gone for good."""
    name = path.name
    try:
        real = Path(os.path.realpath(path))
        aside = real.parent / f"{real.name}.taken-{secrets.token_hex(8)}"
        _take(real, aside)
    except FileNotFoundError:
        raise DitherError(
            f"{name} is not there. A saved running sum is loaded once.", fix="name the file that was saved last."
        ) from None
    except (OSError, ValueError):
        raise DitherError(
            f"{name} cannot be loaded.", fix="name a file that was saved, in a folder that you may write to."
        ) from None
    try:
        yield aside.read_bytes()
    except BaseException:
        with suppress(OSError):
            publish(aside, real)
            aside.unlink()
        raise
    try:
        aside.unlink()
        sync_folder(real.parent)
    except OSError:
        raise DitherError(f"{name} cannot be removed, so it is not loaded.", fix="see to its folder.") from None


def _take(path: Path, aside: Path) -> None:
    """Renames a file. Refuses what is no plain file, and a file that has another name, by which it could be loaded again."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("not a file")
    if not has_one_name(path):
        raise DitherError(f"{path.name} has a second name, by which it could be loaded again.", fix="remove the other name.")
    os.rename(path, aside)
