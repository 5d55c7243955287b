"""The beginning of a connection: TLS, the startup message, and the login.

A client that sends anything before the encryption it asked for is closed: those bytes would count as if they were encrypted.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from dither.errors import DitherError
from dither.server.accounts import Accounts, Who
from dither.server.wire import scram
from dither.server.wire.asking import RefusedError
from dither.server.wire.protocol import (
    CANCEL,
    GSS,
    LONGEST_START,
    SSL,
    Body,
    ProtocolError,
    authentication,
    message,
    startup,
)

LONGEST_PROOF = 2048


@dataclass(frozen=True)
class Encryption:
    """The server's certificate: for TLS, and the hash of it that a login can be bound to (tls-server-end-point)."""

    context: ssl.SSLContext
    binding: bytes

    @classmethod
    def load(cls, certificate: str, key: str) -> Encryption:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        parsed = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
        used = parsed.signature_hash_algorithm
        strong = hashes.SHA256() if used is None or used.name in ("md5", "sha1") else used
        return cls(context, parsed.fingerprint(strong))


@dataclass(frozen=True)
class Cancel:
    """A request to cancel what another connection runs."""

    key: tuple[int, int]


@dataclass(frozen=True)
class Opened:
    """Who connected, and what the startup message says."""

    who: Who
    parameters: dict[str, str]


async def open_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, accounts: Accounts, encryption: Encryption | None, address: str
) -> Opened | Cancel | None:
    """Returns who connected; None for a client that goes away without asking."""
    found = await _first(reader, writer, encryption)
    if found is None or isinstance(found, Cancel):
        return found
    parameters, encrypted = found
    if encryption is not None and not encrypted:
        raise RefusedError("This server speaks TLS only.", "28000", hint="connect with sslmode=require.", severity="FATAL")
    name = parameters.get("user", "")
    if parameters.get("replication", "off").lower() not in ("off", "false", "no", "0"):
        raise RefusedError("This server does not replicate.", "0A000", severity="FATAL")
    who = await _log_in(reader, writer, accounts, name, address, encryption.binding if encryption is not None else None)
    return Opened(who, parameters)


async def _first(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, encryption: Encryption | None
) -> tuple[dict[str, str], bool] | Cancel | None:
    encrypted = False
    for _ in range(4):  # GSS, TLS, another version, the startup itself
        size, code = struct.unpack("!ii", await reader.readexactly(8))
        if not 8 <= size <= LONGEST_START:
            return None
        body = await reader.readexactly(size - 8)
        if code == CANCEL and len(body) >= 8:
            return Cancel(struct.unpack("!ii", body[:8]))
        if code in (SSL, GSS):
            if code == GSS or encryption is None or encrypted:
                writer.write(b"N")
                continue
            if await _early(reader, writer):
                return None
            writer.write(b"S")
            await writer.drain()
            await writer.start_tls(encryption.context)
            encrypted = True
        elif code >> 16 == 3:
            parameters = startup(body)
            unknown = [name for name in parameters if name.startswith("_pq_.")]
            if code & 0xFFFF or unknown:  # a newer minor version: 3.0 is what is spoken here
                names = b"".join(name.encode() + b"\0" for name in unknown)
                writer.write(message(b"v", struct.pack("!ii", 3 << 16, len(unknown)) + names))
            return parameters, encrypted
        else:
            return None
    return None


async def _early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Returns whether bytes came before the encryption. No more are read until it begins."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    try:
        async with asyncio.timeout(0):
            return bool(await reader.read(1))
    except TimeoutError:
        return False


async def _log_in(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    accounts: Accounts,
    name: str,
    address: str,
    binding: bytes | None,
) -> Who:
    offered = [scram.BOUND, scram.PLAIN] if binding is not None else [scram.PLAIN]
    writer.write(authentication(10, b"".join(each.encode() + b"\0" for each in offered) + b"\0"))
    told = Body(await _proof(reader))
    try:
        exchange = scram.Exchange(told.text(), accounts.salt(name), binding)
        size = told.long()
        writer.write(authentication(11, exchange.first(told.take(size))))
        final = await _proof(reader)
        signed: list[bytes] = []

        def prove(known: object) -> int | None:
            found = exchange.final(final, known)  # type: ignore[arg-type]
            if found is None:
                return None
            signed.append(found[1])
            return found[0]

        who = await asyncio.to_thread(accounts.log_in_by_proof, name, address, prove)
    except scram.ScramError:
        raise ProtocolError("the login is not as SCRAM has it") from None
    except DitherError as error:
        code = "28P01" if getattr(error, "status", 0) == 401 else "28000"
        hint = "The password is a token, which the curator makes: dither people token NAME." if code == "28P01" else error.fix
        raise RefusedError(error.what, code, hint=str(hint), severity="FATAL") from None
    writer.write(authentication(12, signed[0]) + authentication(0))
    return who


async def _proof(reader: asyncio.StreamReader) -> bytes:
    kind, size = struct.unpack("!ci", await reader.readexactly(5))
    if kind != b"p" or not 4 <= size <= LONGEST_PROOF:
        raise ProtocolError("a login was expected")
    return await reader.readexactly(size - 4)
