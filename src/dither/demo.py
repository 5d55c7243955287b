"""Runs the demo on made-up data: a hospital answers questions until its budget ends, and its ledger is verified.

The patients come from a fixed generator. Every step is a command of the command line, run as it is printed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, closing, contextmanager, redirect_stderr
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

import dither as dt

Command = Callable[[Sequence[str]], int]  # runs one command line, returns its exit code

WARDS = ("births", "bones", "children", "hearts")
PATIENTS = 20_000

CATALOG = """\
snapshot = "2026-11"

[budget]
epsilon = 1.0            # the budget of all analysts together

[tables.patients]
source = "patients.parquet"
unit = "patient"         # who is protected: one patient, wherever their rows are
max_rows = 1
[tables.patients.columns]
ward     = { values = ["births", "bones", "children", "hearts"] }
weight   = { between = [0, 200] }
diabetic = { values = [false, true] }
income   = {}            # no bounds: it can be filtered by, not added up

[tables.visits]
source = "visits.parquet"
unit = { column = "patient", references = "patients.patient" }
max_rows = 5
max_groups = 1
[tables.visits.columns]
nights   = { between = [0, 60] }
"""

BY_WARD = "SELECT ward, COUNT(*) AS patients, AVG(weight) AS kg FROM patients GROUP BY ward"
NIGHTS = "SELECT MEDIAN(nights) AS nights FROM visits v JOIN patients p ON v.patient = p.patient WHERE p.ward = 'hearts'"
EVERYBODY = "SELECT COUNT(*) AS n FROM patients"


def run(console: Console, command: Command, folder: Path | None = None) -> None:
    """Runs the demo; with a folder, leaves the hospital in it."""
    place = folder or Path(tempfile.mkdtemp(prefix="dither-demo-"))
    try:
        with chdir(place), redirect_stderr(sys.stdout), _clean_environment():
            hospital(Path())
            _run_steps(console, command)
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
    if folder is not None:
        console.print(Text(f"The hospital stays in {folder}: ask it something."))


@contextmanager
def _clean_environment() -> Iterator[None]:
    """Hides the DITHER_ variables of this shell: the demo must not reach a real ledger."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("DITHER_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def hospital(folder: Path) -> None:
    """Writes invented patients and their visits as Parquet files, and the catalog that declares them."""
    dice = np.random.default_rng(2026)  # for inventing people, never for noise
    patients = {
        "patient": np.arange(PATIENTS),
        "ward": dice.choice(WARDS, size=PATIENTS, p=[0.15, 0.3, 0.2, 0.35]),
        "weight": np.clip(dice.normal(78, 17, PATIENTS).round(1), 2, 260),
        "diabetic": dice.random(PATIENTS) < 0.12,
        "income": dice.lognormal(10.4, 0.6, PATIENTS).round(2),
    }
    visits = {"patient": dice.integers(0, PATIENTS, 3 * PATIENTS), "nights": dice.geometric(0.25, 3 * PATIENTS)}
    pq.write_table(pa.table(patients), folder / "patients.parquet")
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    (folder / "catalog.toml").write_text(CATALOG, encoding="utf-8")


def _run_steps(console: Console, command: Command) -> None:
    def say(text: str) -> None:
        console.print(f"\n{text}", highlight=False)

    def step(text: str, *words: str) -> None:
        say(f"[bold]{text}[/bold]")
        console.print(Text(f"$ dither {' '.join(_quoted(word) for word in words)}\n", style="cyan"), soft_wrap=True)
        if code := command(words):
            console.print(Text(f"(exit code {code})", style="dim"))

    say(f"[bold]A made-up hospital: {PATIENTS:,} patients, and a budget of ε = 1 for all analysts together.[/bold]")
    step("The curator declares the data in catalog.toml. Check it. This reads no row.", "check")
    step("Make the ledger, once, with a key that signs its entries.", "init")
    step("Get the price of a question. A quote is free.", "quote", BY_WARD, "--epsilon", "0.4")
    step("Ask. The ledger records the price before any row is read.", "ask", BY_WARD, "--epsilon", "0.4")
    step("Ask the same again: the same answer, free.", "ask", BY_WARD, "--epsilon", "0.4")
    _copy("catalog.ledger", "old.ledger")
    step("Ask across two tables, and keep a receipt.", "ask", NIGHTS, "--epsilon", "0.3", "--receipt", "receipt.json")
    step("Ask for a sum without bounds: it is refused.", "ask", "SELECT SUM(income) FROM patients", "--epsilon", "0.1")
    step("Name the margin you want instead of the price, and get CSV.", "ask", EVERYBODY, "--margin", "40", "--format", "csv")
    step("See what is left.", "budget")
    step("Ask for more than that: it is refused, and costs nothing.", "ask", EVERYBODY, "--epsilon", "0.5")
    step("See who asked what.", "history")
    step("Verify the ledger: separate code checks the chain, every sum and every signature.", "verify")
    _tamper("catalog.ledger", "edited.ledger")
    step("Make a charge smaller in a copy of the ledger: verify notices.", "verify", "--ledger", "edited.ledger")
    step("Put an old copy back: the receipt shows it.", "verify", "--ledger", "old.ledger", "--receipt", "receipt.json")
    _proof(console)


def _copy(ledger: str, copy: str) -> None:
    """Copies a ledger, which is one file."""
    shutil.copy(ledger, copy)


def _tamper(ledger: str, copy: str) -> None:
    """Makes a charge smaller in a copy of the ledger, as anyone with a database tool could."""
    _copy(ledger, copy)
    with closing(sqlite3.connect(copy)) as database:
        database.executescript("DROP TRIGGER entries_stay; UPDATE entries SET body = replace(body, '\"2/5\"', '\"1/5\"');")


def _proof(console: Console) -> None:
    noise = dt.Geometric(epsilon="1/5", sensitivity=1)
    result = "holds at every output" if dt.verify(noise, [(128, 129), (128, 127)]).holds else "DOES NOT HOLD"
    console.print(
        f"\n[bold]Proved, not sampled.[/bold] One patient more or less makes no count at ε = 0.2 more than "
        f"e^0.2 times as likely: {result}.\n",
        highlight=False,
    )


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
