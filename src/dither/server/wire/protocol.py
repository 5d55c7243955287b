"""Bytes of the PostgreSQL protocol, version 3: messages, values as text and as binary. Knows nothing of dither.

A message is a letter, a length and a body. `Body` reads one; the functions of this file write them. Every length that a client
sends is checked before it is used, and what does not fit is a `ProtocolError`.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

SSL, GSS, CANCEL = 80877103, 80877104, 80877102  # codes of a first message that is no startup
BOOL, INT8, INT2, INT4, TEXT, FLOAT4, FLOAT8, DATE, TIMESTAMP, NUMERIC = 16, 20, 21, 23, 25, 700, 701, 1082, 1114, 1700
UNKNOWN, BPCHAR, VARCHAR, NAME, TIMESTAMPTZ = 705, 1042, 1043, 19, 1184
TEXTS = (TEXT, UNKNOWN, BPCHAR, VARCHAR, NAME)
LONGEST_START = 10_000  # bytes of a startup message, as in PostgreSQL

_SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8}
_PACKED = {INT8: "!q", INT2: "!h", INT4: "!i", FLOAT4: "!f", FLOAT8: "!d"}
_EPOCH = datetime.datetime(2000, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


class ProtocolError(Exception):
    """A message is not as the protocol has it."""


@dataclass(frozen=True)
class Column:
    """A column of a result: its name and its type."""

    name: str
    oid: int


# --- reading ----------------------------------------------------------------------------------------------------


class Body:
    """Reads the body of a message from its start to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ProtocolError("a message ends too early")
        found = self._data[self._at : end]
        self._at = end
        return found

    def short(self) -> int:
        return int(struct.unpack("!h", self.take(2))[0])

    def long(self) -> int:
        return int(struct.unpack("!i", self.take(4))[0])

    def word(self) -> bytes:
        """Returns the bytes up to the next zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text does not end")
        found = self._data[self._at : end]
        self._at = end + 1
        return found

    def text(self) -> str:
        return decoded(self.word())

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def shorts(self) -> tuple[int, ...]:
        """Returns a list of 16-bit numbers, which begins with its length."""
        number = self.short()
        return struct.unpack(f"!{number}h", self.take(2 * number)) if number >= 0 else self._refuse()

    def ints(self) -> tuple[int, ...]:
        number = self.short()
        return struct.unpack(f"!{number}I", self.take(4 * number)) if number >= 0 else self._refuse()

    def cells(self) -> list[bytes | None]:
        """Returns a list of values, each with its length; None for NULL."""
        number = self.short()
        found: list[bytes | None] = []
        for _ in range(number):
            size = self.long()
            found.append(None if size == -1 else self.take(size))
        return found

    def end(self) -> None:
        if self._at != len(self._data):
            raise ProtocolError("a message is too long")

    def _refuse(self) -> tuple[int, ...]:
        raise ProtocolError("a list has less than no parts")


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a text is not UTF-8") from None


def startup(body: bytes) -> dict[str, str]:
    """Returns the parameters of a startup message."""
    reading, found = Body(body), {}
    while name := reading.text():
        found[name] = reading.text()
    reading.end()
    return found


# --- writing ----------------------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def word(text: str) -> bytes:
    """Returns a text with its end. It cannot hold the character of code 0."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def fields(kind: bytes, told: Mapping[str, str]) -> bytes:
    """Returns an error (E) or a notice (N)."""
    return message(kind, b"".join(name.encode() + word(text) for name, text in told.items() if text) + b"\0")


def notice(what: str, detail: str = "") -> bytes:
    return fields(b"N", {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": what, "D": detail})


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def complete(tag: str) -> bytes:
    return message(b"C", word(tag))


def authentication(code: int, more: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", code) + more)


def format_of(formats: Sequence[int], place: int) -> int:
    """Returns the format of a column or parameter: one for each, one for all, or text."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def description(columns: Sequence[Column], formats: Sequence[int] = ()) -> bytes:
    """Returns a RowDescription."""
    parts = [struct.pack("!h", len(columns))]
    for place, column in enumerate(columns):
        size = _SIZES.get(column.oid, -1)
        parts += [word(column.name), struct.pack("!IhIhih", 0, 0, column.oid, size, -1, format_of(formats, place))]
    return message(b"T", b"".join(parts))


def counted(oids: Sequence[int]) -> bytes:
    """Returns a list of types, which begins with its length."""
    return struct.pack(f"!h{len(oids)}I", len(oids), *oids)


def parameters(oids: Sequence[int]) -> bytes:
    return message(b"t", counted(oids))


def row(values: Sequence[Any], columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """Returns a DataRow."""
    return message(b"D", _row(values, columns, formats))


def _row(values: Sequence[Any], columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    parts = [struct.pack("!h", len(values))]
    for place, (value, column) in enumerate(zip(values, columns, strict=True)):
        cell = binary(value, column.oid) if format_of(formats, place) else text(value)
        parts.append(struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell)
    return b"".join(parts)


def copied(rows: Sequence[Sequence[Any]], columns: Sequence[Column], style: str, header: bool) -> bytes:
    """Returns the messages of COPY … TO STDOUT in the format binary, text or csv."""
    number, coded = len(columns), int(style == "binary")
    opened = message(b"H", struct.pack("!bh", coded, number) + struct.pack("!h", coded) * number)
    if style == "binary":
        parts = [_row(each, columns, (1,)) for each in rows] + [struct.pack("!h", -1)]
        parts[0] = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0) + parts[0]  # in one message with the first row: ADBC
    else:
        line = _csv if style == "csv" else _tabbed
        named = [line([column.name.encode() for column in columns])] if header else []
        parts = named + [line([text(value) for value in each]) for each in rows]
    return opened + b"".join(message(b"d", part) for part in parts) + message(b"c")


def _csv(cells: Sequence[bytes | None]) -> bytes:
    quoted = [b"" if cell is None else _in_quotes(cell) for cell in cells]
    return b",".join(quoted) + b"\n"


def _in_quotes(cell: bytes) -> bytes:
    plain = cell and not any(sign in cell for sign in (b",", b'"', b"\n", b"\r")) and cell != rb"\."
    return cell if plain else b'"' + cell.replace(b'"', b'""') + b'"'


def _tabbed(cells: Sequence[bytes | None]) -> bytes:
    signs = ((b"\\", b"\\\\"), (b"\t", b"\\t"), (b"\n", b"\\n"), (b"\r", b"\\r"))
    shown = [b"\\N" if cell is None else cell for cell in cells]
    for sign, code in signs:
        shown = [each if cell is None else each.replace(sign, code) for each, cell in zip(shown, cells, strict=True)]
    return b"\t".join(shown) + b"\n"


# --- values -----------------------------------------------------------------------------------------------------


def text(value: Any) -> bytes | None:
    """Returns a value as PostgreSQL writes it.

    >>> [text(each) for each in (None, True, 3, 0.5, float("inf"), datetime.date(2026, 1, 2), "é")]
    [None, b't', b'3', b'0.5', b'Infinity', b'2026-01-02', b'\\xc3\\xa9']
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float) and not math.isfinite(value):
        return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").encode()
    return value.isoformat().encode() if isinstance(value, datetime.date) else str(value).encode("utf-8", "replace")


def binary(value: Any, oid: int) -> bytes | None:
    """Returns a value in the binary format of its type."""
    if value is None:
        return None
    if oid == BOOL:
        return b"\1" if value else b"\0"
    if oid in _PACKED:
        return struct.pack(_PACKED[oid], value)
    if oid == NUMERIC:
        return _numeric(int(value))
    if oid == DATE:
        return struct.pack("!i", (value - _EPOCH.date()).days)
    if oid == TIMESTAMP:
        return struct.pack("!q", (value - _EPOCH) // _MICROSECOND)
    return text(value)


def _numeric(value: int) -> bytes:
    """Returns a whole number as numeric: digits of base 10,000, the largest first."""
    digits, rest = [], abs(value)
    while rest:
        rest, digit = divmod(rest, 10_000)
        digits.append(digit)
    sign = 0x4000 if value < 0 else 0
    return struct.pack(f"!hhHh{len(digits)}h", len(digits), len(digits) - 1, sign, 0, *reversed(digits))


def parameter(data: bytes | None, coded: int, oid: int) -> Any:
    """Returns the value of a parameter: None, a bool, a number, a text, a date or a timestamp."""
    if data is None:
        return None
    if coded not in (0, 1):
        raise ProtocolError("a parameter has an unknown format")
    try:
        return _from_binary(data, oid) if coded else _from_text(decoded(data), oid)
    except (struct.error, ValueError, OverflowError, InvalidOperation):
        raise ProtocolError("a parameter does not have the format of its type") from None


def _from_binary(data: bytes, oid: int) -> Any:
    if oid in _PACKED:
        return struct.unpack(_PACKED[oid], data)[0]
    if oid == BOOL:
        return data == b"\1"
    if oid == DATE:
        return _EPOCH.date() + datetime.timedelta(days=struct.unpack("!i", data)[0])
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        return _EPOCH + struct.unpack("!q", data)[0] * _MICROSECOND
    if oid == NUMERIC:
        return _from_numeric(data)
    if oid in TEXTS or oid == 0:
        return decoded(data)
    raise ProtocolError("a parameter has a type that is not known here")


def _from_numeric(data: bytes) -> Decimal:
    number, weight, sign, _ = struct.unpack("!hhHh", data[:8])
    digits = struct.unpack(f"!{number}h", data[8:])
    if sign not in (0, 0x4000) or not -100 <= weight <= 100 or number > 100 or not all(0 <= each < 10_000 for each in digits):
        raise ValueError
    whole = "".join(f"{digit:04}" for digit in digits) or "0"
    return Decimal((int(bool(sign)), tuple(map(int, whole)), 4 * (weight - number + 1) if digits else 0))


def _from_text(told: str, oid: int) -> Any:
    readers: dict[int, Callable[[str], Any]] = {
        BOOL: _bool,
        **dict.fromkeys((INT2, INT4, INT8), int),
        **dict.fromkeys((FLOAT4, FLOAT8, NUMERIC), _decimal),
        DATE: datetime.date.fromisoformat,
        **dict.fromkeys((TIMESTAMP, TIMESTAMPTZ), _moment),
    }
    return readers[oid](told.strip()) if oid in readers else told


def _decimal(told: str) -> Decimal | int:
    value = Decimal(told)
    if not value.is_finite() or len(told) > 60:
        raise ValueError
    return value


def _bool(told: str) -> bool:
    known = {"t": True, "true": True, "1": True, "on": True, "f": False, "false": False, "0": False, "off": False}
    if told.lower() not in known:
        raise ValueError
    return known[told.lower()]


def _moment(told: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(told)
    return found.replace(tzinfo=None) if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)
