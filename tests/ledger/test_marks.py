"""A file that was replaced under an unchanged snapshot is noticed, by the curator alone, and nobody else learns anything."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import dither as dt
from dither.cli import app
from dither.engines.duckdb import contents
from dither.errors import DitherWarning
from dither.ledger.receipts import Key

CATALOG = 'snapshot = "2026-10"\n[budget]\nepsilon = 900\n[tables.visits]\nsource = "visits.csv"\nunit = "id"\nmax_rows = 1\n'
COUNT = "SELECT COUNT(*) AS n FROM visits"
MARKS = "catalog.ledger.key.data"


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def visits(folder: Path, rows: int) -> None:
    (folder / "visits.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(rows)), encoding="utf-8")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    visits(tmp_path, 1000)
    assert run("init").exit_code == 0
    return tmp_path


@pytest.fixture
def asked(shop: Path) -> Path:
    """A catalog about which one answer was given."""
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon=1)
    return shop


def told(**options: Any) -> list[str]:
    """What opening the catalog says to whoever opens it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dt.open("catalog.toml", **options).close()
    return [str(each.message) for each in caught if issubclass(each.category, DitherWarning)]


# --- the curator is told ----------------------------------------------------------------------------------------


def test_a_replaced_file_is_noticed(asked: Path) -> None:
    assert told() == []
    visits(asked, 1001)
    (said,) = told()
    assert 'The data of visits changed since answers were given under snapshot = "2026-10"' in said
    assert 'snapshot = "2026-11"' in said
    assert told() == [said]  # until something is done


def test_in_a_shell_it_is_a_note_beside_the_answer(asked: Path) -> None:
    visits(asked, 1001)
    done = run("ask", COUNT, "-e", "1")
    assert done.exit_code == 0
    assert "Warning: The data of visits changed" in " ".join(done.stderr.split())
    assert "Warning" not in done.stdout


def test_a_new_snapshot_is_the_remedy(asked: Path) -> None:
    visits(asked, 1001)
    (asked / "catalog.toml").write_text(CATALOG.replace("2026-10", "2026-11"), encoding="utf-8")
    assert told() == []
    with dt.open("catalog.toml") as survey:
        assert not survey.ask(COUNT, epsilon=1).replayed
    assert told() == []
    (asked / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    assert len(told()) == 1  # the old label still means the old data


def test_the_same_data_written_anew_is_no_change(asked: Path) -> None:
    os.utime(asked / "visits.csv", ns=(1, 1))
    assert told() == []
    data = (asked / "visits.csv").read_bytes()
    (asked / "visits.csv").unlink()
    (asked / "visits.csv").write_bytes(data)
    assert told() == []


def test_another_catalog_gives_no_old_answer_so_there_is_nothing_to_tell(asked: Path) -> None:
    visits(asked, 1001)
    (asked / "catalog.toml").write_text(CATALOG.replace("max_rows = 1", "max_rows = 2"), encoding="utf-8")
    assert told() == []
    with dt.open("catalog.toml") as survey:
        assert not survey.ask(COUNT, epsilon=1).replayed


def test_without_answers_nothing_was_promised(shop: Path) -> None:
    assert told() == []
    with dt.open("catalog.toml") as survey:
        survey.quote(COUNT, epsilon=1)
    assert not (shop / MARKS).exists()
    visits(shop, 7)
    assert told() == []


def test_an_answer_that_is_given_again_marks_nothing(asked: Path) -> None:
    """Its data may be older than the file: it must not become what the label stands for."""
    (asked / MARKS).unlink()
    visits(asked, 1001)
    with dt.open("catalog.toml") as survey:
        assert survey.ask(COUNT, epsilon=1).replayed
    assert not (asked / MARKS).exists()


def test_that_check_can_fail(asked: Path) -> None:
    """The twin: without the marks nobody would know."""
    (asked / MARKS).unlink()
    visits(asked, 1001)
    assert told() == []


def test_removing_the_marks_accepts_the_data(asked: Path) -> None:
    visits(asked, 1001)
    (asked / MARKS).unlink()
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon=2)
    assert told() == []
    visits(asked, 1002)
    assert len(told()) == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 2}', '{"format": 1, "marks": 7}', '{"format": 1, "marks": {"x": 7}}']
)
def test_a_damaged_file_of_marks_stops_nothing(asked: Path, text: str) -> None:
    (asked / MARKS).write_text(text, encoding="utf-8")
    visits(asked, 1001)
    assert told() == []
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon=3)
    assert told() == []


# --- other sources and other ledgers ----------------------------------------------------------------------------


def framed(rows: int) -> dt.Catalog:
    table = dt.Table(pd.DataFrame({"id": np.arange(rows), "x": ["a", "b"] * (rows // 2)}), unit="id")
    return dt.Catalog({"t": table}, dt.Budget(900), snapshot="1")


def test_frames_are_compared_too(tmp_path: Path) -> None:
    place = tmp_path / "survey.ledger"
    for _ in range(2):
        with dt.open(framed(100), ledger=place, make=True) as survey:
            survey.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    with pytest.warns(DitherWarning, match="The data of t changed"):
        dt.open(framed(102), ledger=place).close()


def test_chunks_of_a_frame_do_not_count() -> None:
    whole = pa.table({"x": list(range(1000)), "y": ["a"] * 1000})
    parts = pa.concat_tables([whole.slice(0, 10), whole.slice(10)])
    other = pa.table({"x": [*range(999), 7], "y": ["a"] * 1000})
    digests = [fed(contents.Contents(frame=each)) for each in (whole, parts, other)]
    assert digests[0] == digests[1] != digests[2]


def fed(one: contents.Contents) -> str:
    made = hashlib.sha256()
    one.feed(made.update)
    return made.hexdigest()


def test_large_files_are_compared_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "BLOCK", 8)
    monkeypatch.setattr(contents, "BLOCKS", 4)
    file = tmp_path / "large"
    data = bytearray(range(100))
    file.write_bytes(data)
    read: list[bytes] = []
    contents.Contents((str(file),)).feed(read.append)
    blocks = [bytes(data[start : start + 8]) for start in (0, 30, 61, 92)]
    assert read[1:] == blocks  # both ends are among them
    before = fed(contents.Contents((str(file),)))
    for place, noticed in ((0, True), (99, True), (62, True), (20, False)):  # the last one lies between two blocks
        changed = bytearray(data)
        changed[place] ^= 1
        file.write_bytes(changed)
        assert (fed(contents.Contents((str(file),))) != before) == noticed
    file.write_bytes(bytes(data) + b"x")
    assert fed(contents.Contents((str(file),))) != before


def test_a_ledger_in_memory_has_no_marks(shop: Path) -> None:
    with dt.open("catalog.toml", ledger=":memory:") as survey:
        survey.ask(COUNT, epsilon=1)
    assert not list(shop.glob("*.data"))


def test_marks_are_beside_the_key_wherever_it_is(shop: Path) -> None:
    keys = shop / "keys"
    keys.mkdir()
    (shop / "catalog.ledger.key").rename(keys / "k")
    with dt.open("catalog.toml", key=keys / "k") as survey:
        survey.ask(COUNT, epsilon=1)
    assert (keys / "k.data").exists()
    assert (keys / "k.data").stat().st_mode & 0o777 == 0o600
    visits(shop, 3)
    assert len(told(key=keys / "k")) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_stops_no_question(shop: Path) -> None:
    keys = shop / "keys"
    keys.mkdir()
    (shop / "catalog.ledger.key").rename(keys / "k")
    keys.chmod(0o500)
    try:
        with dt.open("catalog.toml", key=keys / "k") as survey:
            survey.ask(COUNT, epsilon=1)
    finally:
        keys.chmod(0o700)
    assert not (keys / "k.data").exists()


def test_marks_that_are_a_link_are_not_followed(shop: Path) -> None:
    target = shop / "target"
    target.write_text("kept", encoding="utf-8")
    (shop / MARKS).symlink_to(target)
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon=1)
    assert target.read_text(encoding="utf-8") == "kept"


# --- nobody else learns anything --------------------------------------------------------------------------------


def test_an_analyst_is_told_nothing_and_sees_no_difference(asked: Path) -> None:
    """A refusal or a note that depends on contents would say, exactly and for free, whether a row has changed."""
    seen = []
    for rows in (1000, 1001):
        visits(asked, rows)
        done = run("ask", COUNT, "-e", "1", "-a", "ana")
        seen.append((done.exit_code, done.stdout, done.stderr))
        assert told(analyst="ana") == []
    assert seen[0] == seen[1]


def marks_in(folder: Path) -> list[str]:
    read = json.loads((folder / MARKS).read_text(encoding="utf-8"))
    return [mark for tables in read["marks"].values() for each in tables.values() for mark in each.values()]


def test_no_mark_is_in_the_ledger_or_in_a_receipt(asked: Path) -> None:
    with dt.open("catalog.toml") as survey:
        receipt = survey.ask(COUNT, epsilon=1).receipt.to_json()
        history = "".join(entry.body for entry in survey.ledger.history())
    ledger = (asked / "catalog.ledger").read_bytes().decode("latin-1")
    marks = marks_in(asked)
    assert len(marks) == 2
    for mark in marks:
        assert len(mark) == 64
        assert all(mark not in text for text in (receipt, history, ledger))


def keyed(secret: bytes) -> Callable[[], Any]:
    return lambda: hmac.new(secret, digestmod="sha256")


def guesses(folder: Path, hashes: list[Callable[[], Any]]) -> Iterator[str]:
    """What an attacker computes who knows the data and everything public: plain and keyed digests of the file."""
    data = (folder / "visits.csv").read_bytes()
    place = json.loads(next(iter(json.loads((folder / MARKS).read_text(encoding="utf-8"))["marks"])))
    size = f"file {len(data)}\n".encode()
    head = json.dumps([1, "data", *place, "visits"]).encode() + b"\n"
    for message in (data, size + data, head + size + data):
        for make in (hashlib.sha256, *hashes):
            made = make()
            made.update(message)
            yield made.hexdigest()


def test_without_the_key_a_mark_confirms_no_guess_of_the_data(asked: Path) -> None:
    with dt.open("catalog.toml") as survey:
        public = bytes.fromhex(survey.ledger.public_key)
    assert not set(guesses(asked, [keyed(public), keyed(b""), Key.new().marker])) & set(marks_in(asked))


def test_that_an_attacker_with_the_key_could_confirm_it(asked: Path) -> None:
    """The twin: the guesses above are of the right form."""
    assert set(guesses(asked, [Key.read(asked / "catalog.ledger.key").marker])) & set(marks_in(asked))


def test_equal_data_has_equal_marks_nowhere_else(asked: Path) -> None:
    """Two labels, tables or ledgers with the same data have different marks."""
    first = marks_in(asked)
    (asked / "catalog.toml").write_text(CATALOG.replace("2026-10", "2026-11"), encoding="utf-8")
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon=1)
    assert len(set(marks_in(asked))) == 4
    assert set(first) < set(marks_in(asked))


def lose(folder: Path, *, marks: bool) -> None:
    """Loses the ledger and the marks, of which a backup may have a copy. The key is kept elsewhere."""
    assert run("backup", "copy").exit_code == 0
    for name in ("catalog.ledger", MARKS, *(() if marks else ("copy.data",))):
        (folder / name).unlink()


def test_replaced_data_is_noticed_after_a_restore(asked: Path) -> None:
    lose(asked, marks=True)
    assert (asked / "copy.data").stat().st_mode & 0o777 == 0o600
    done = run("restore", "copy", "--unchecked")
    assert "no marks of the data" not in done.stderr
    assert told() == []
    visits(asked, 1001)
    assert len(told()) == 1


def test_that_without_the_marks_of_a_backup_it_is_not_noticed_and_that_is_said(asked: Path) -> None:
    lose(asked, marks=False)
    done = run("restore", "copy", "--unchecked")
    assert "There are no marks of the data." in " ".join(done.stderr.split())
    visits(asked, 1001)
    assert told() == []


def test_marks_beside_the_key_come_before_those_of_a_backup(asked: Path) -> None:
    assert run("backup", "copy").exit_code == 0
    (asked / MARKS).unlink()
    visits(asked, 1001)
    with dt.open("catalog.toml") as survey:
        survey.ask("SELECT COUNT(DISTINCT id) AS n FROM visits", epsilon=1)
    (asked / "catalog.ledger").unlink()
    assert run("restore", "copy", "--unchecked").exit_code == 0
    assert told() == []


def test_a_backup_replaces_no_file_beside_it(asked: Path) -> None:
    (asked / "copy.data").write_text("mine", encoding="utf-8")
    assert run("backup", "copy").exit_code == 2
    assert not (asked / "copy").exists()


def test_no_output_replaces_the_marks(asked: Path) -> None:
    before = (asked / MARKS).read_bytes()
    done = run("ask", COUNT, "-e", "1", "--out", MARKS, "--format", "csv", "--force")
    assert done.exit_code != 0
    assert (asked / MARKS).read_bytes() == before
