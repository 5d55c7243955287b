"""Wrong requests by the million: what may stand in a request (`Requests`), and clients that send it fast (`fuzz`).

Most requests are whole: each route with each method, by each kind of login, with bodies that are wrong deep inside. They are
sent many at a time on connections that stay open. The others are broken in their framing, and each has a connection of its own.

A request that took longer than a second is suspected, and tried again alone: on a busy machine any request may take that long.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher

from server.serving import BY_WARD, COUNT

# --- what a request is made of ----------------------------------------------------------------------------------

IDS = (
    *("1", "2", "3", "5", "8", "0", "-", "-1", "1.0", "0x1", "9" * 18, "9" * 19, "9" * 5000, "q" * 99, "q" + "0" * 24),
    *(
        "%00",
        "%F0",
        "%D9%A3",
        "..%2F..%2Fetc",
        "1%0d%0aSet-Cookie:%20a=b",
        "%E2%80%AE",
        "1;2",
        "1?2",
        "{id}",
        "%7Bid%7D",
        "null",
    ),
)
SEARCHES = (
    *("limit=x", "limit=0", "limit=5", "limit=" + "9" * 40, "limit=1&limit=2", "before=0", "before=3", "before=-1"),
    *("everyone=1",),
    *("at=1", "at=%F0", "at=" + "9" * 18, "at=", "=", "&&&", "%", "%zz", "a[]=1", "token=dth_x"),
    *("next=//evil.example", "q=" + "x" * 9000),
    *("code=x&state=y", "state=x&state=y", "question=SELECT+1", "column=people.income", "ask=1", "#", "\x7f"),
)  # fmt: skip
NUMBERS = (
    *(
        "0",
        "-0",
        "-1",
        "1",
        "0.5",
        "1e-5",
        "0.0001",
        "0.001",
        "1e999999999",
        "-1e999999999",
        "1e-999999999",
        "1e400",
        "1" * 400,
    ),
    *("9007199254740993", "0.1e1000000000000000000", "NaN", "Infinity", "-Infinity", "1_000", "0x10", "01", "+1", "1.", ".5"),
    *('"1/0"', '"0/1"', '"1/3"', '"1e999999999"', '"1e-999999999"', '"1/1e999999999"', '"NaN"', '"inf"', '"-0.1"', '" 0.1 "'),
    *('"\u0661/\u0663"', '"' + "9" * 5000 + '"', '"1/' + "9" * 5000 + '"', '"0.' + "0" * 5000 + '1"', '"1e"', '""', '"auto"'),
)
TEXTS = (
    *(
        '""',
        '"\\u0000"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\u202e"',
        '"\ufeff"',
        '"e\u0301"',
        '"\U0001f9ee"',
        '"\\""',
        '"\\\\"',
    ),
    *('"' + "x" * 70000 + '"', '"' + "\u00e9" * 300 + '"', '"\\/"', '"\\x"', '"unended', "'single'", '"\x01"', '"\\u00"'),
    *('"<script>alert(1)</script>"', '"%s%n"', '"{{7*7}}"', '"../../etc/passwd"', '"http://127.0.0.1:1/"', '"null"'),
)
SHAPES = (
    *("null", "true", "false", "[]", "{}", "[null]", "[[[[]]]]", "[" * 500 + "]" * 500),
    *('{"a":' * 500 + "1" + "}" * 500, "[" * 9999),
    *('{"date":"2026-01-31"}', '{"date":"0000-00-00"}', '{"decimal":"1e999999999"}', '{"decimal":"sNaN"}', '{"timestamp":1}'),
    *("[" + "1," * 2000 + "1]", '["' + 'a","' * 150 + '"]', '{"":""}', '{"a":1,"a":2}', "[1e400]", '{"date":"9999-12-31"}'),
)  # fmt: skip
QUESTIONS = (
    *(
        COUNT,
        BY_WARD,
        COUNT,
        BY_WARD,
        "SELECT AVG(age) AS a FROM people",
        "SELECT ward, SUM(age) AS s FROM people GROUP BY ward",
    ),
    *("SELECT COUNT(*) AS n FROM people WHERE age > :a", "SELECT MEDIAN(age) AS m FROM people", "SELECT * FROM people"),
    *("SELECT ward, COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 60 GROUP BY ward HAVING n > 5 ORDER BY n DESC LIMIT 3",),
    *("WITH p AS (SELECT person, age FROM people) SELECT COUNT(DISTINCT person) AS n FROM p WHERE age IN (1, 2, 3)",),
    *("SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS k, COUNT(*) AS n FROM people GROUP BY 1",),
)
WORDS = (
    *("SELECT", "FROM", "GROUP BY", "(", ")", "((((((((", ",", ";", "*", "'", '"', "--", "/*", "*/", "$1", ":a"),
    *("?", "\\", "\x00", "`"),
    *("1e999999999", "1" * 300, "-1", "0.0000001", "NULL", "people", "age", "income", "nobody", "COUNT(*)"),
    *("SUM(income)", "AVG(age)"),
    *("JOIN people AS q ON TRUE", "UNION ALL SELECT 1", "INTERVAL '1e99' DAY", "CAST(age AS", "x'00'", "U&'\\0000'", "$$a$$"),
    *("pg_sleep(9)", "read_csv('/etc/passwd')", "ATTACH 'x'", "PRAGMA version", "COPY", "OVER ()"),
    *("LIMIT 999999999999", "\u202e", "\ud7ff"),
    *("repeat('x', 999999999)", "range(999999999)", "CUBE (ward, age)", "age ^ age ^ age", "LIKE '%a%a%a%a%a%'"),
    *("REGEXP '(a+)+$'",),
)  # fmt: skip
HEADERS = (
    *("X: y", "Expect: 100-continue", "Prefer: wait=0", "Prefer: respond-async", "Prefer: wait=" + "9" * 99),
    *("Cookie: dither=x",),
    *("Range: bytes=0-1", "Origin: null", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"),
    *("Accept: \xff", "Accept: */*;q=x"),
    *("Idempotency-Key: k", "Idempotency-Key: " + "k" * 300, "Idempotency-Key:", "Idempotency-Key: a\r\nIdempotency-Key: b"),
    *("X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: gopher", "Forwarded: for=_x"),
    *("X-HTTP-Method-Override: DELETE", "Host: evil"),
    *("Cookie: " + "a=b; " * 500, "Cookie: =;=;;", "Cookie: dither=" + "x" * 9000, "If-None-Match: *", "If-Modified-Since: x"),
    *("Accept-Encoding: gzip", "Content-Encoding: gzip", "Upgrade: websocket\r\nConnection: upgrade"),
    *("TE: trailers", "Via: \t"),
    *("Authorization: Basic YTpi", "Authorization: Bearer", "Authorization: Bearer " + "d" * 5000, "User-Agent:"),
    *("Accept-Language: zz",),
)  # fmt: skip
NO_HTTP = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET /\r\n", b"\r\n" * 50, b"\x00" * 99)
FIRST_LINES = (b"GET", b"GET /", b"GET / HTTP/9.9", b"GET  / HTTP/1.1", b"/ HTTP/1.1", b"GET http://a@b:c/ HTTP/1.1")
HEADER_LINES = (b" folded: x", b"no colon", b": none", b"a b: c", b"a\x00: b", b"a: \x00", b"\xff: b")
ENDING = ("/v1/logout", "/v1/tokens/revoke")  # a valid login would end there
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "get", "PROPFIND", "M" * 30)
TYPES = ("application/json", "application/json; charset=utf-16", "text/plain", "multipart/form-data; boundary=x", "", "a" * 900)
FIELDS: Mapping[str, Mapping[str, str]] = {
    "/v1/login": {"name": '"ada"', "password": '"x"', "token": '"dth_x"', "code": '"dthl_x"'},
    "/v1/tokens": {"name": '"ada"', "password": '"x"', "days": "1", "label": '"l"'},
    "/v1/tokens/revoke": {},
    "/v1/logout": {},
    "/v1/suggest": {"column": '"people.income"', "epsilon": '"0.0001"', "delta": "null", "by": "null", "fresh": "false"},
    "/v1/approvals/{id}": {"decision": '"approve"', "words": '"w"', "days": "7"},
}
TERMS: Mapping[str, str] = {
    "epsilon": '"0.0001"',
    "delta": "null",
    "margin": "null",
    "of": "null",
    "params": "null",
    "confidence": '"0.95"',
    "assume_rows": "100",
    "max_rows": "1",
    "max_groups": "1",
    "left_out": "null",
    "weights": "null",
    "sample": "null",
    "fresh": "false",
    "free": "false",
    "payload": "true",
}


@dataclass(frozen=True)
class Wrong:
    """A request. `whole`: its end can be told, so that the connection can go on after it."""

    sent: bytes
    method: str
    whole: bool


@dataclass(frozen=True)
class Requests:
    """Makes wrong requests. `routes`: methods and paths; `logins`: header lines, each of another login or of none."""

    routes: Sequence[tuple[str, str]]
    logins: Sequence[str]
    dice: random.Random

    def make(self) -> Wrong:
        """Returns a request that is wrong in a random way, mostly deep inside."""
        pick, chance = self.dice.choice, self.dice.random
        method, path = pick(self.routes)
        slow = path in ("/v1/verify", "/console/verify", "/metrics", "/audit") or path.startswith("/static")
        if slow and chance() < 0.9:
            method, path = pick((("POST", "/v1/ask"), ("POST", "/v1/quote"), ("POST", "/console/quote")))
        body = self._body(path) if method == "POST" else b""
        if chance() < 0.1:
            method, body = pick(METHODS), pick((b"", body, self._body(path)))
        target = path.replace("{id}", pick(IDS)).replace("{path:path}", pick(("app.css", "../x", "%2e%2e/x", "a\\b")))
        target += "?" + pick(SEARCHES) if chance() < 0.15 else ""
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [pick(self.logins)] if chance() < 0.9 and path not in ENDING else []
        lines += [f"Content-Type: {TYPES[0] if chance() < 0.93 else pick(TYPES)}"]
        lines += [pick(HEADERS)] if chance() < 0.3 else []
        if chance() < 0.1:
            lines, body = [*lines, "Transfer-Encoding: chunked"], self._chunked(body)
        else:
            lines += [f"Content-Length: {len(body)}"]
        head = "\r\n".join(each for each in lines if each).encode("latin-1", "replace")
        made = head + b"\r\n\r\n" + body
        return Wrong(made, method, True) if chance() < 0.85 else Wrong(self._broken(head, body), method, False)

    def _chunked(self, body: bytes) -> bytes:
        """Returns a body in chunks of odd sizes, with extensions and trailers."""
        made = b""
        while body:
            size = self.dice.choice((1, 2, 7, 100, 5000))
            extension = b";a=b" if self.dice.random() < 0.05 else b""
            made += b"%x%s\r\n%s\r\n" % (len(body[:size]), extension, body[:size])
            body = body[size:]
        return made + self.dice.choice((b"0\r\n\r\n", b"000\r\n\r\n", b"0\r\nA: b\r\n\r\n"))

    # --- bodies -------------------------------------------------------------------------------------------------

    def _body(self, path: str) -> bytes:
        """Returns a JSON object for a form, with a few of its fields wrong; or no JSON at all."""
        pick, chance = self.dice.choice, self.dice.random
        if chance() < 0.05:
            return pick(
                (b"", b"{}", b"[]", b"null", b'{"question":', b"\xff\xfe{\x00}\x00", b"[" * 9999, self.dice.randbytes(200))
            )
        fields = dict(FIELDS.get(path, ()))
        if path not in FIELDS:
            names = self.dice.sample(sorted(TERMS), self.dice.randrange(4))
            fields = {"question": self._question(), "epsilon": '"0.0001"'} | {name: TERMS[name] for name in names}
        for name in [*fields, *(("x", "__proto__") if chance() < 0.05 else ())]:
            if chance() < 0.2:
                fields[name] = pick(pick((NUMBERS, TEXTS, SHAPES)))
            elif chance() < 0.03:
                fields.pop(name, None)
        text = "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"
        if chance() < 0.02:
            text = text[:-1] + "," + text[1:]  # every name twice
        made = text.encode("utf-8", "replace")
        return made if chance() < 0.98 else text.encode("utf-16")

    def _question(self) -> str:
        pick, chance = self.dice.choice, self.dice.random
        if chance() < 0.5:
            return json.dumps(pick(QUESTIONS))
        if chance() < 0.1:
            return json.dumps([self._sql() for _ in range(self.dice.choice((0, 1, 2, 3, 101)))])
        if chance() < 0.2:
            return json.dumps(pick((list, ";\n".join))(self.dice.sample(QUESTIONS, 2)))  # a list at one price
        return json.dumps(self._sql(), ensure_ascii=chance() < 0.5)

    def _sql(self) -> str:
        """Returns a question with words left out, doubled, moved or put in."""
        words = self.dice.choice(QUESTIONS).split(" ")
        for _ in range(self.dice.randrange(1, 4)):
            place = self.dice.randrange(len(words))
            words[place : place + self.dice.randrange(2)] = [self.dice.choice((*WORDS, *words))]
        return " ".join(words) if self.dice.random() < 0.98 else " ".join(words) * self.dice.choice((20, 500))

    # --- framing ------------------------------------------------------------------------------------------------

    def _broken(self, head: bytes, body: bytes) -> bytes:
        """Returns a request whose head or framing is wrong."""
        pick, dice = self.dice.choice, self.dice
        first, _, rest = head.partition(b"\r\n")
        ways = (
            lambda: head[: dice.randrange(len(head))],
            lambda: head + b"\r\n\r\n" + body[: len(body) // 2],
            lambda: self._flipped(head + b"\r\n\r\n" + body),
            lambda: head.replace(b"\r\n", b"\n") + b"\n\n" + body,
            lambda: head.replace(b"\r\n", b"\r") + b"\r\r" + body,
            lambda: dice.randbytes(dice.randrange(300)),
            lambda: pick(NO_HTTP),
            lambda: pick(FIRST_LINES) + b"\r\n" + rest + b"\r\n\r\n",
            lambda: first + b"\r\n" + pick(HEADER_LINES) + b"\r\n" + rest + b"\r\n\r\n" + body,
            lambda: first + b"\r\n" + b"X: y\r\n" * pick((50, 1000, 3000)) + rest + b"\r\n\r\n" + body,
            lambda: first + b"\r\nX: " + b"y" * pick((15000, 17000, 70000)) + b"\r\n" + rest + b"\r\n\r\n" + body,
            lambda: first + b"\r\nHost: a\r\nHost: b\r\n" + rest + b"\r\n\r\n",
            lambda: first.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + rest + b"\r\n\r\n" + body,
            lambda: self._length(head, body),
            lambda: self._chunks(head),
        )
        return pick(ways)()

    def _flipped(self, sent: bytes) -> bytes:
        place = self.dice.randrange(len(sent))
        return sent[:place] + self.dice.randbytes(self.dice.randrange(1, 9)) + sent[place + self.dice.randrange(9) :]

    def _length(self, head: bytes, body: bytes) -> bytes:
        wrong = (
            b"-1",
            b"+5",
            b"0x5",
            b"5, 5",
            b"5,6",
            b"1e1",
            b"",
            b" ",
            b"9" * 18,
            b"9" * 40,
            b"5\r\nContent-Length: 6",
            b"\xb2",
        )
        kept = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-l", b"transfer")))
        more = b"\r\nTransfer-Encoding: chunked" if self.dice.random() < 0.3 else b""
        return kept + b"\r\nContent-Length: " + self.dice.choice(wrong) + more + b"\r\n\r\n" + body

    def _chunks(self, head: bytes) -> bytes:
        coding = (
            b"chunked",
            b"chunked, chunked",
            b"identity",
            b"gzip, chunked",
            b"\x0bchunked",
            b"Chunked",
            b"chunked\r\nX:y",
            b"x",
        )
        bodies = (
            *(b"zz\r\nab\r\n0\r\n\r\n", b"f" * 16 + b"\r\nab", b"f" * 17 + b"\r\nab", b"-1\r\na\r\n", b"2\r\nabc\r\n0\r\n\r\n"),
            *(
                b"2;" + b"e" * 20000 + b"\r\nab\r\n0\r\n\r\n",
                b"0\r\n" + b"T: x\r\n" * 3000 + b"\r\n",
                b"0\r\n",
                b"2\nab\n0\n\n",
            ),
            *(b"1\r\n{\r\n" * 300, b"0x2\r\nab\r\n0\r\n\r\n", b" 2\r\nab\r\n0\r\n\r\n", b"2 \r\n{}\r\n0\r\n\r\n", b"1\r\n"),
        )
        kept = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-l", b"transfer")))
        return kept + b"\r\nTransfer-Encoding: " + self.dice.choice(coding) + b"\r\n\r\n" + self.dice.choice(bodies)


# --- clients that send them -------------------------------------------------------------------------------------

Cpu = Callable[[], float]
SLOW = 1.0  # seconds: a request that took longer is tried again alone
SILENCE = 0.5  # seconds: what is broken and has no answer by then is given up
HANG = 60.0  # seconds in which a connection must be answered or closed
TRIES = 5


@dataclass
class Found:
    """What came back: how many requests had which status; none: the connection was closed. `slow`: those that took long;
    `faults`: those that the server failed at, with what it told."""

    statuses: Counter[str] = field(default_factory=Counter)
    slow: list[Wrong] = field(default_factory=list)
    faults: list[tuple[bytes, bytes]] = field(default_factory=list)

    def note(self, wrong: Wrong, head: bytes, body: bytes, seconds: float) -> None:
        told = head + body
        signs = (b"Traceback", b'File "', b'"code": "server"')
        if any(sign in told for sign in signs) or not (head.startswith(b"HTTP/1.1 ") or not head):
            self.faults.append((wrong.sent[:3000], told[:3000]))
        self.statuses[head[9:12].decode("latin-1")] += 1
        if seconds > SLOW and wrong.whole:
            self.slow.append(wrong)


async def receive(reader: asyncio.StreamReader, method: str) -> tuple[bytes, bytes]:
    """Returns the head and the body of the next response, without those that only say to go on."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 100"):
            break
    lower = head.lower()
    if method == "HEAD" or head[9:12] in (b"204", b"304"):
        return head, b""
    place = lower.find(b"\r\ncontent-length:")
    if place >= 0:
        return head, await reader.readexactly(int(lower[place + 17 : lower.index(b"\r\n", place + 2)]))
    if b"\r\ntransfer-encoding: chunked" not in lower:
        return head, await reader.read()
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return head, body


async def send_whole(port: int, batch: Sequence[Wrong], found: Found) -> None:
    """Sends whole requests at once on connections that stay open, and reads their responses in order."""
    left = list(batch)
    while left:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"".join(wrong.sent for wrong in left))
            while left:
                began = time.monotonic()
                async with asyncio.timeout(HANG):
                    head, body = await receive(reader, left[0].method)
                found.note(left.pop(0), head, body, time.monotonic() - began)
                if b"\r\nconnection: close" in head.lower():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            found.note(left.pop(0), b"", b"", 0.0)  # closed without a word; the others are sent again
        finally:
            writer.close()


async def send_broken(port: int, wrong: Wrong, found: Found) -> None:
    """Sends a broken request on a connection of its own, and reads until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told = b""
    try:
        writer.write(wrong.sent)
        with suppress(ConnectionError):
            try:
                async with asyncio.timeout(SILENCE):
                    while part := await reader.read(65536):
                        told += part
            except TimeoutError:
                writer.write_eof()
                async with asyncio.timeout(HANG):
                    while part := await reader.read(65536):
                        told += part
    finally:
        writer.close()
    found.note(wrong, told, b"", 0.0)


def fuzz(port: int, requests: Requests, number: int, *, cpu: Cpu = time.process_time, at_once: int = 16) -> Found:
    """Sends so many wrong requests, and tries those again that took long. `cpu`: the seconds that the server has computed."""
    found, left = Found(), number

    async def client() -> None:
        nonlocal left
        while left > 0:
            made = [requests.make() for _ in range(min(left, requests.dice.randrange(1, 25)))]
            left -= len(made)
            await send_whole(port, [wrong for wrong in made if wrong.whole], found)
            await asyncio.gather(*(send_broken(port, wrong, found) for wrong in made if not wrong.whole))

    async def clients() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(client())

    asyncio.run(clients())
    assert not found.faults, (len(found.faults), found.faults[:20])
    for wrong in found.slow:
        assert not hangs(port, wrong, cpu), wrong.sent[:3000]
    return found


def hangs(port: int, wrong: Wrong, cpu: Cpu) -> bool:
    """Returns whether a request takes more than a second although nothing else is asked.

    It does if the server computes for so long, or if it takes so long on a machine that is quiet: requests before and after
    are answered at once, and a login's own work takes this process no longer than it should. On a machine that is busy with
    other things only what is computed counts.
    """
    control = Wrong(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", "GET", True)
    for _ in range(TRIES):
        before, (seconds, computed), after = (_timed(port, each, cpu) for each in (control, wrong, control))
        if seconds < SLOW:
            return False
        if computed > SLOW or (max(before[0], after[0]) < SLOW / 20 and login_work() < SLOW / 2):
            return True
    return False


def login_work() -> float:
    """Returns the seconds that this process takes for what the most expensive request does, a login with a password: it hashes
    and writes to the disk."""
    began = time.monotonic()
    PasswordHasher().hash("a password of nobody")
    with tempfile.TemporaryFile() as out:
        out.write(b"x")
        out.flush()
        os.fsync(out.fileno())
    return time.monotonic() - began


def _timed(port: int, wrong: Wrong, cpu: Cpu) -> tuple[float, float]:
    """Returns how long a request took, and how long the server computed meanwhile."""
    began, computed = time.monotonic(), cpu()
    asyncio.run(send_whole(port, [wrong], Found()))
    return time.monotonic() - began, cpu() - computed


def cpu_of(pids: Sequence[int]) -> Cpu:
    """Returns a function that tells the seconds that processes have computed so far."""

    def read() -> float:
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    return read


def routes_of(app: Any) -> list[tuple[str, str]]:
    """Returns the methods and paths of an application: a new route is fuzzed unasked."""
    return [(method, route.path) for route in app.routes for method in sorted(route.methods) if method != "HEAD"]
