"""Messages that no client sends: right ones in the wrong order and state, and wrong ones.

`burst` is for a connection that has logged in, `opening` for one that begins. Both draw from a `random.Random`, so a seed
repeats them.
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dither.server.wire.protocol import message
from server.serving import BY_WARD, COUNT

Message = tuple[bytes, bytes]  # its kind and its body
QUESTIONS = [
    BY_WARD,
    COUNT,
    "SELECT COUNT(*) FROM people WHERE ward = $1",
    "SELECT ward, AVG(age) AS a FROM people WHERE age > $2 AND ward = $1 GROUP BY ward",
    "SELECT n FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) AS q WHERE n > 0 ORDER BY 1 LIMIT 1",
    'SELECT "public"."people"."ward" FROM "public"."people" GROUP BY 1',
    "SELECT SUM(income) FROM people",
    "SELECT * FROM people",
    "SELECT COUNT(*) FROM people LIMIT 0",
    "SELECT COUNT(*) FROM people WHERE 0 = 1",
    "WITH q AS (SELECT * FROM people) SELECT COUNT(*) FROM q",
    "TABLE people",
]
FOR_TWIN = [
    "SELECT 1",
    "SELECT $1::int",
    "SELECT repeat('x', 5000)",
    "SELECT generate_series(1, 300)",
    "SELECT relname FROM pg_class WHERE relname = $1",
    "SELECT 1 / 0",
    "VALUES (1), (2)",
    "SELECT * FROM pg_sleep(5)",
    "SHOW ALL",
    "SELECT current_setting('search_path')",
]
STATES = [
    "BEGIN", "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "START TRANSACTION READ WRITE",
    "BEGIN; BEGIN", "DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE a", "RESET ALL", "CLOSE ALL", "LISTEN x", "UNLISTEN *",
]  # fmt: skip
SETTINGS = [
    "epsilon", "delta", "margin", "of", "confidence", "assume_rows", "max_rows", "max_groups", "left_out", "sample", "fresh",
    "free", "margins", "analyst", "budget", "x", "",
]  # fmt: skip
VALUES = [
    "0.1",
    "0",
    "-1",
    "1e999999999",
    "1/3",
    "1/0",
    "'0.1'",
    "on",
    "off",
    "auto",
    "default",
    "NaN",
    "9" * 400,
    "''",
    "$1",
    "é",
]
CURSORS = [
    "DECLARE c CURSOR FOR {}", "DECLARE c BINARY CURSOR WITH HOLD FOR {}", "DECLARE C SCROLL CURSOR FOR {}", "FETCH 1 FROM c",
    "FETCH ALL FROM c", "FETCH BACKWARD 1 FROM c", "FETCH c", "MOVE 1 FROM c", "MOVE ALL IN c", "CLOSE c", "FETCH 0 c",
    'FETCH 1 FROM "c"', "FETCH 99999999999999 FROM c", "DECLARE", "FETCH", "CLOSE",
]  # fmt: skip
COPIES = [
    "COPY ({}) TO STDOUT", "COPY ({}) TO STDOUT WITH (FORMAT binary)", "COPY ({}) TO STDOUT (FORMAT csv, HEADER)",
    "COPY people TO STDOUT", "COPY people FROM STDIN", "COPY ({}) TO PROGRAM 'x'", "COPY (", "COPY pg_class TO STDOUT",
    "COPY x FROM STDIN",
]  # fmt: skip
PIECES = [
    "'", '"', "$$", "$a$", "/*", "*/", "--", "(", ")", ";", ",", "\0", "\x01", "é", "\U0001f600", "E'\\'", "U&'\\0041'",
    "SELECT", "FROM people", "WHERE", "GROUP BY CUBE (ward, age)", "UNION", "LIMIT 0", "$1", "$99999", "$1001", "::int",
    "1e400", "9" * 500, "NULL", "\r", "\u2028",
]  # fmt: skip
NAMES = [b"", b"a", b"b", b"c", b"dither_types", b"\xff", "é".encode()]
COUNTS = [-32768, -1, 0, 1, 2, 3, 1000, 1001, 32767]
SIZES = [-(1 << 31), -2, -1, 0, 1, 4, 1 << 20, (1 << 31) - 1]
OIDS = [0, 16, 20, 21, 23, 25, 700, 701, 1082, 1114, 1184, 1700, 705, 2950, 1, (1 << 32) - 1]


@dataclass(frozen=True)
class Burst:
    """Some messages as bytes, and how many they are. `torn`: lengths may be wrong, so nobody knows where they end."""

    data: bytes
    number: int
    torn: bool


# --- statements -------------------------------------------------------------------------------------------------


def statement(chance: random.Random) -> str:
    """Returns a statement: mostly a right one, sometimes with pieces put in."""
    kind = chance.random()
    question = chance.choice(QUESTIONS)
    if kind < 0.25:
        found = question
    elif kind < 0.45:
        found = chance.choice(FOR_TWIN)
    elif kind < 0.6:
        found = chance.choice(STATES)
    elif kind < 0.75:
        verb = chance.choice(["SET", "SET LOCAL", "SET SESSION", "SHOW", "RESET"])
        value = f" {chance.choice(['=', 'TO'])} {chance.choice(VALUES)}" if verb.startswith("SET") else ""
        found = f"{verb} dither.{chance.choice(SETTINGS)}{value}"
    elif kind < 0.85:
        found = chance.choice(CURSORS).format(question)
    elif kind < 0.92:
        found = chance.choice(COPIES).format(question)
    else:
        found = f"EXPLAIN {chance.choice(['', 'ANALYZE ', '(FORMAT json) ', '(ANALYZE) '])}{question}"
    if chance.random() < 0.05:
        found = "; ".join(statement(chance) for _ in range(chance.randrange(1, 4)))
    return spliced(found, chance) if chance.random() < 0.2 else found


def spliced(text: str, chance: random.Random) -> str:
    """Puts pieces into a text, or cuts some out."""
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(text) + 1)
        if chance.random() < 0.3:
            text = text[:place] + text[place + chance.randrange(1, 9) :]
        else:
            text = text[:place] + chance.choice(PIECES) * chance.choice([1, 1, 1, 40]) + text[place:]
    return text


# --- messages of a connection -----------------------------------------------------------------------------------


def query(text: str) -> Message:
    return b"Q", text.encode() + b"\0"


def parse(name: bytes, text: str, oids: Sequence[int] = ()) -> Message:
    return b"P", name + b"\0" + text.encode() + b"\0" + struct.pack(f"!h{len(oids)}I", len(oids), *oids)


def bind(portal: bytes, name: bytes, chance: random.Random) -> Message:
    """Binds some values, in formats of all kinds."""
    cells = [chance.choice([None, b"", b"north", b"30", b"\xff\xfe", b"\0\0\0\1", b"1e9999", b"x" * 3000]) for _ in range(3)]
    cells = cells[: chance.randrange(4)]
    coded = [chance.choice([0, 0, 1, 2, -1]) for _ in range(chance.randrange(3))]
    results = [chance.choice([0, 0, 1, 7]) for _ in range(chance.randrange(3))]
    values = b"".join(struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells)
    body = portal + b"\0" + name + b"\0" + struct.pack(f"!h{len(coded)}h", len(coded), *coded)
    return b"B", body + struct.pack("!h", len(cells)) + values + struct.pack(f"!h{len(results)}h", len(results), *results)


def execute(portal: bytes, most: int = 0) -> Message:
    return b"E", portal + b"\0" + struct.pack("!i", most)


def one(chance: random.Random) -> list[Message]:
    """A message as clients send it, whatever came before."""
    name = chance.choice(NAMES)
    made: list[Callable[[], Message]] = [
        lambda: query(statement(chance)),
        lambda: parse(name, statement(chance), [chance.choice(OIDS) for _ in range(chance.randrange(3))]),
        lambda: bind(name, chance.choice(NAMES), chance),
        lambda: (b"D", chance.choice([b"S", b"P", b"?", b""]) + name + b"\0"),
        lambda: execute(name, chance.choice([0, 1, -1, 1000, -(1 << 31), (1 << 31) - 1])),
        lambda: (b"C", chance.choice([b"S", b"P", b"?"]) + name + b"\0"),
        lambda: (b"S", b""),
        lambda: (b"H", b""),
        lambda: (chance.choice([b"d", b"c", b"f"]), chance.randbytes(chance.randrange(20))),
    ]
    return [chance.choice(made)()]


def statement_life(chance: random.Random) -> list[Message]:
    """A statement is prepared, bound, described, executed and closed: in this order, or not."""
    text = chance.choice(QUESTIONS + FOR_TWIN + CURSORS[:1]).format(COUNT)
    steps = [
        parse(b"a", text),
        bind(b"p", b"a", chance),
        (b"D", b"Sa\0"),
        (b"D", b"Pp\0"),
        execute(b"p", chance.choice([0, 1])),
        execute(b"p", 1),
        (b"C", b"Pp\0"),
        (b"C", b"Sa\0"),
        (b"S", b""),
    ]
    if chance.random() < 0.5:
        chance.shuffle(steps)
    again = [chance.choice(steps) for _ in range(chance.randrange(4))]  # of what is closed by now
    return [*steps, *again, (b"S", b"")]


def cursor_life(chance: random.Random) -> list[Message]:
    """Transactions, cursors and copies, simple and prepared, in any order."""
    found: list[Message] = []
    for _ in range(chance.randrange(3, 9)):
        text = chance.choice(STATES[:10] + CURSORS + COPIES).format(chance.choice(QUESTIONS + FOR_TWIN))
        if chance.random() < 0.6:
            found.append(query(text))
        else:
            found += [parse(b"", text), (b"B", b"\0\0\0\0\0\0\0\0"), (b"D", b"P\0"), execute(b""), (b"S", b"")]
        if chance.random() < 0.2:
            found.append((chance.choice([b"d", b"c", b"f"]), b"x\0"))
    return found


def huge_counts(chance: random.Random) -> list[Message]:
    """Lists that say they have more parts, or fewer, than they have; and values of any length."""
    count, size = chance.choice(COUNTS), chance.choice(SIZES)
    listed = struct.pack("!h", count) + chance.randbytes(chance.choice([0, 2, 4, 40]))
    return [
        chance.choice(
            [
                (b"P", b"a\0SELECT $1\0" + listed),
                (b"P", b"a\0" + BY_WARD.encode() + b"\0" + struct.pack("!h", 1000) + struct.pack("!I", 25) * 1000),
                (b"B", b"\0a\0" + listed),
                (b"B", b"\0a\0\0\0" + listed),
                (b"B", b"\0a\0\0\0" + struct.pack("!hi", 1, size) + b"north\0\0"),
                (b"B", b"\0a\0\0\0\0\0" + listed),
                parse(b"a", "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(f"${i}" for i in range(1, 1003)) + ")"),
                parse(b"a", "SELECT " + "(" * chance.choice([50, 500, 5000]) + "1"),
                query("SELECT " + "-" * 3000 + " 1 FROM people"),
                query("SELECT COUNT(*) FROM people WHERE " + "NOT " * chance.choice([50, 500, 3000]) + "age > 1"),
                query("SELECT COUNT(*) FROM people WHERE age IN (" + "1, " * 2000 + "1)"),
                query("; " * chance.choice([10, 3000])),
                (b"Q", b"x" * 70_000 + b"\0"),
            ]
        )
    ]


def broken_texts(chance: random.Random) -> list[Message]:
    """Texts that are not UTF-8, hold a NUL, or do not end."""
    text = statement(chance).encode()
    place = chance.randrange(len(text) + 1)
    body = text[:place] + chance.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0", b"\xf5\x80\x80\x80"]) + text[place:]
    return [chance.choice([(b"Q", body + b"\0"), (b"Q", text), (b"P", b"a\0" + body + b"\0\0\0"), (b"P", text), (b"D", body)])]


_KINDS = (one, one, one, statement_life, statement_life, cursor_life, cursor_life, huge_counts, broken_texts)


def burst(chance: random.Random, most: int = 30) -> Burst:
    """Returns messages for a connection that has logged in: at least one, at most about `most`."""
    found: list[Message] = []
    for _ in range(chance.randrange(1, 8)):
        found += chance.choice(_KINDS)(chance)
        if chance.random() < 0.3:
            found.append((b"S", b""))
        if len(found) > most:
            break
    if chance.random() < 0.15:
        place = chance.randrange(len(found))
        found[place] = found[place][0], mutated(found[place][1], chance)
    sent = b"".join(message(*each) for each in found)
    torn = chance.random() < 0.03
    return Burst(_torn(sent, chance) if torn else sent, len(found), torn)


def _torn(sent: bytes, chance: random.Random) -> bytes:
    """Breaks the frame of messages: wrong lengths, kinds, or what belongs to the beginning of a connection."""
    strange = [
        b"Q" + struct.pack("!i", chance.choice(SIZES)) + b"SELECT 1\0",
        message(bytes([chance.randrange(256)]), chance.randbytes(5)),
        message(b"p", b"SCRAM-SHA-256\0"),
        struct.pack("!ii", 8, 80877103),
        struct.pack("!iiii", 16, 80877102, 1, 2),
        struct.pack("!ii", 17, 3 << 16) + b"user\0ada\0\0",
        message(b"F", b"\0\0\0\1\0\0"),
    ]
    return mutated(sent, chance) if chance.random() < 0.5 else sent + chance.choice(strange)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Changes, cuts or repeats some bytes."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        if not found:
            break
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[place] = chance.randrange(256)
            case 1:
                del found[place : place + chance.randrange(1, 5)]
            case 2:
                found[place:place] = chance.randbytes(chance.randrange(1, 5))
            case _:
                found[place : place + 2] = struct.pack("!h", chance.choice([-1, 0, 1, 32767, -32768]))
    return bytes(found)


# --- the beginning of a connection ------------------------------------------------------------------------------

SSL, GSS, CANCEL = 80877103, 80877104, 80877102


def request(code: int, body: bytes = b"", size: int | None = None) -> bytes:
    return struct.pack("!iI", len(body) + 8 if size is None else size, code & 0xFFFFFFFF) + body


def opening(chance: random.Random) -> list[bytes]:
    """Returns what a client sends before it has logged in, piece by piece; the server answers between them."""
    begun = [request(code) for code in chance.choices([SSL, GSS], k=chance.choice([0, 0, 1, 2, 2, 5]))]
    if chance.random() < 0.2:
        key = struct.pack("!ii", chance.choice(SIZES), chance.choice(SIZES))
        return [*begun, request(CANCEL, chance.choice([key, key[:3], b"", key * 40]))]
    name = chance.choice([b"ada", b"nobody", b"", b"\xff", b"x" * 300, "é".encode()])
    more = chance.choice(
        [b"", b"options\0-c dither.epsilon=1e999\0", b"_pq_.x\0y\0", b"replication\0database\0", b"user\0ben\0"]
    )
    code = chance.choice([3 << 16] * 6 + [(3 << 16) + 2, 2 << 16, 0, chance.randrange(1 << 32)])
    body = b"user\0" + name + b"\0database\0survey\0" + more + b"\0"
    start = request(code, body, chance.choice([None] * 6 + SIZES + [9999, 10_001]))
    if chance.random() < 0.2:
        return [*begun, mutated(start, chance)]
    return [*begun, start, *login(chance)]


def login(chance: random.Random) -> list[bytes]:
    """Messages of SCRAM: whole ones with a wrong proof, and cut ones."""
    nonce = chance.choice([b"abcdefghijklmnop", b"short", b"\xff" * 20, b"x" * 300, b""])
    header = chance.choice([b"n,,", b"y,,", b"p=tls-server-end-point,,", b"n,a=x,", b",,", b"n"])
    first = header + b"n=,r=" + nonce
    told_size = chance.choice([len(first)] * 5 + SIZES)
    kind = chance.choice([b"SCRAM-SHA-256"] * 4 + [b"SCRAM-SHA-256-PLUS", b"PLAIN", b"", b"\xff"])
    told = kind + b"\0" + struct.pack("!i", told_size) + first
    proof = chance.choice(
        [base64.b64encode(chance.randbytes(32)), b"", b"!", b"=" * 9, base64.b64encode(chance.randbytes(900))]
    )
    final = b"c=biws,r=" + nonce + chance.choice([b"", b"more", b"," * 500]) + chance.choice([b",p=", b",", b"p="]) + proof
    cut = chance.randrange(len(told)) if chance.random() < 0.3 else len(told)
    return [message(chance.choice([b"p"] * 9 + [b"Q"]), told[:cut]), message(b"p", final[: chance.choice([5, 50, 5000])])]
