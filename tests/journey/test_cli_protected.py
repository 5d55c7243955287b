"""Outputs never replace a file unasked, and never the books or the data: not by force, and not under another name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.cli import output
from dither.cli.app import outputs_of
from dither.cli.output import Outputs
from dither.errors import ArgumentError
from journey.hospital import BY_WARD, COUNT, built, run
from journey.preloaded import ROOT, command

CATALOG = """\
[budget]
epsilon = 1
[tables.comma]
source = "people.csv"
unit = "who"
max_rows = 1
[tables.parts]
source = "parts/*.parquet"
unit = "who"
max_rows = 1
[tables.folder]
source = "folder"
unit = "who"
max_rows = 1
[tables.held]
source = "people.duckdb#people"
unit = "who"
max_rows = 1
[tables.linked]
source = "linked.csv"
unit = "who"
max_rows = 1
"""
COUNTED = "SELECT COUNT(*) AS n FROM comma"
THERE = (
    "catalog.toml",
    "catalog.ledger",
    "catalog.ledger.key",
    "catalog.ledger-wal",
    "catalog.ledger-journal",
    "catalog.ledger-shm",
    ".catalog.ledger.0123456789abcdef",
    ".catalog.ledger.key.0123456789abcdef",
    "people.csv",
    "parts/a.parquet",
    "parts/b.parquet",
    "folder/x.parquet",
    "folder/year=2026/y.parquet",
    "people.duckdb",
    "people.duckdb.wal",
    "linked.csv",
    "elsewhere/real.csv",
)
TO_COME = (  # names that nobody has yet, and that would be taken for the books or the data
    "catalog.ledger-wal",
    "catalog.ledger-journal",
    "catalog.ledger-shm",
    ".catalog.ledger.fedcba9876543210",
    ".catalog.ledger.key.fedcba9876543210-journal",
    "people.duckdb.wal",
    "parts/new.parquet",
    "folder/new.parquet",
    "folder/year=2026/new.parquet",
    "elsewhere/other.db-wal",
    "CATALOG.LEDGER-WAL",
    "Parts/../parts/NEW.PARQUET",
)
FREE = (
    "answer.csv",
    "parts/answer.csv",
    "parts/deeper/answer.parquet",
    "answer.parquet",
    "folder/answer.json",
    "catalog.json",
    "catalog.ledger.json",
    "catalog.ledger.key.txt",
    "answer-wal",
    "elsewhere/answer",
    "people.csv.old",
)


def curated(folder: Path) -> Path:
    """A catalog with every kind of source, and its ledger."""
    people = pa.table({"who": list(range(200))})
    for name in ("parts/deeper", "folder/year=2026", "elsewhere", "Parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("parts/a", "parts/b", "folder/x", "folder/year=2026/y"):
        pq.write_table(people, folder / f"{name}.parquet")
    for name in ("people.csv", "elsewhere/real.csv"):
        (folder / name).write_text("who\n" + "".join(f"{i}\n" for i in range(200)), encoding="utf-8")
    (folder / "elsewhere/other.db").touch()
    (folder / "linked.csv").symlink_to("elsewhere/real.csv")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS who FROM range(200)")
    (folder / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    assert run("init", "--catalog", str(folder / "catalog.toml")).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing is written into this one."""
    folder = curated(tmp_path_factory.mktemp("curated"))
    for name in THERE:
        if not (folder / name).exists():
            (folder / name).touch()
    (folder / "here").symlink_to(".")
    return folder


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent() -> Fraction:
    return Fraction(json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"])


def refused(folder: Path, file: Path | str, *, force: bool = True) -> bool:
    catalog = folder / "catalog.toml"
    try:
        outputs_of(catalog, str(folder / "catalog.ledger"), None, force).check({"--out": Path(file)})
    except ArgumentError as error:
        return "cannot be written" not in error.what
    return False


# --- a name for everything --------------------------------------------------------------------------------------

ways = st.lists(st.sampled_from(("./", "here/", "elsewhere/../", "parts/../", "here/here/./")), max_size=3).map("".join)


@contextmanager
def called(folder: Path, name: str, kind: str, way: str) -> Iterator[Path]:
    """The file under another name."""
    plain, other = folder / (way + name), folder / "other name"
    if kind == "descriptor":
        number = os.open(plain, os.O_RDONLY)
        try:
            assert refused(folder, f"/dev/fd/{number}")
            yield Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
        return
    try:
        if kind == "symbolic":
            other.symlink_to(plain)
        elif kind == "twice":
            (folder / "first name").symlink_to(plain)
            other.symlink_to("first name")
        elif kind == "hard":
            os.link(plain, other)
        yield plain if kind == "plain" else Path(os.path.relpath(plain)) if kind == "relative" else other
    finally:
        other.unlink(missing_ok=True)
        (folder / "first name").unlink(missing_ok=True)


@given(st.sampled_from(THERE), st.sampled_from(("plain", "relative", "symbolic", "twice", "hard", "descriptor")), ways)
def test_no_name_of_a_protected_file_passes(shared: Path, name: str, kind: str, way: str) -> None:
    if kind == "hard" and (shared / name).is_symlink():
        kind = "symbolic"
    with called(shared, name, kind, way) as file:
        assert refused(shared, file), (name, kind, file)


@given(st.sampled_from(TO_COME), ways)
def test_no_file_is_added_to_the_books_or_the_data(tmp_path_factory: pytest.TempPathFactory, name: str, way: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "bare"
    if not folder.exists():
        folder.mkdir()
        curated(folder)
        (folder / "here").symlink_to(".")
    for force in (True, False):
        assert refused(folder, folder / (way + name), force=force), name


@given(st.sampled_from(FREE), ways)
def test_a_plain_new_file_passes(shared: Path, name: str, way: str) -> None:
    assert not refused(shared, shared / (way + name), force=False)


@pytest.mark.parametrize("protects", ["rules", "inodes"])
def test_those_checks_can_fail(shared: Path, monkeypatch: pytest.MonkeyPatch, protects: str) -> None:
    """Without rules, or without looking at what is behind a name, something passes."""
    if protects == "rules":
        monkeypatch.setattr(sys.modules["dither.cli.app"], "protected", lambda *_: output.Protected())
        assert not refused(shared, shared / "people.csv")
    else:
        monkeypatch.setattr(output.Rule, "inodes", lambda _: iter(()))
        with called(shared, "people.csv", "hard", "") as file:
            assert not refused(shared, file)


# --- in the shell -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THERE)
def test_asking_leaves_protected_files_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(curated(tmp_path))
    file = tmp_path / name
    if not file.exists():
        file.write_text("something", encoding="utf-8")
    before = file.read_bytes()
    for option in ("--out", "--receipt"):
        done = run("ask", COUNTED, "-e", "0.1", "--format", "csv", option, name, "--force")
        if name.endswith("-wal"):  # beside such a file nothing is asked at all
            assert (done.exit_code, "write-ahead log" in done.stderr) == (4, True)
            continue
        assert (done.exit_code, done.stdout) == (2, ""), name
        assert f"{option} names " in done.stderr
        assert "Charged: nothing." in done.stderr
    if not name.startswith("catalog.ledger-"):  # SQLite tidies what was never a log of its own
        assert file.read_bytes() == before


def test_the_log_of_another_session_is_not_written_over(hospital: Path) -> None:
    with dt.open("catalog.toml") as session:
        session.ask(COUNT, epsilon="0.4")
        for name in ("catalog.ledger-wal", "catalog.ledger-shm", "catalog.ledger-journal"):
            for option in ("--out", "--receipt"):
                assert run("ask", COUNT, "-e", "0.4", option, name, "-f", "csv", "--force").exit_code == 2
        assert spent() == Fraction(2, 5)


def test_what_is_there_is_replaced_only_by_force(hospital: Path) -> None:
    for option, name in (("--out", "answer.csv"), ("--receipt", "receipt.json"), ("--plot", "answer.png")):
        (hospital / name).write_text("mine", encoding="utf-8")
        (hospital / name).chmod(0o640)
        done = run("ask", COUNT, "-e", "0.1", option, name)
        assert (done.exit_code, f"{name} is there already." in done.stderr) == (2, True)
        assert f"name a new file with {option}, or add --force to replace it." in done.stderr
        assert spent() == (0 if option == "--out" else Fraction(1, 10))
        assert (hospital / name).read_text(encoding="utf-8") == "mine"
        assert run("ask", COUNT, "-e", "0.1", option, name, "--force").exit_code == 0
        assert (hospital / name).read_bytes() != b"mine"
        assert (hospital / name).stat().st_mode & 0o777 == 0o640
    assert not [name for name in os.listdir() if name.startswith(".dither-")]


def test_a_link_is_followed_only_by_force(hospital: Path) -> None:
    (hospital / "link.csv").symlink_to("new.csv")
    assert run("ask", COUNT, "-e", "0.1", "--out", "link.csv").exit_code == 2
    assert run("ask", COUNT, "-e", "0.1", "--out", "link.csv", "--force").exit_code == 0
    assert (hospital / "link.csv").is_symlink()
    assert (hospital / "new.csv").read_text(encoding="utf-8").startswith("n,n_margin")


def test_other_commands_replace_nothing_unasked(hospital: Path) -> None:
    (hospital / "e.png").write_bytes(b"mine")
    assert run("explain", "-e", "1", "--plot", "e.png").exit_code == 2
    assert (hospital / "e.png").read_bytes() == b"mine"
    assert run("explain", "-e", "1", "--plot", "e.png", "--force").exit_code == 0
    (hospital / "a.json").write_bytes(b"mine")
    done = run("audit", "none:none", "-e", "1", "--report", "a.html")
    assert (done.exit_code, "a.json is there already." in done.stderr) == (2, True)
    for there in ("catalog.toml", "patients.parquet", "dangling.toml", "new.ledger-wal", "patients.duckdb"):
        if there == "dangling.toml":
            (hospital / there).symlink_to("nowhere.toml")
        words = ("patients.parquet", "--unit", "patient", "--ledger", "new.ledger", "--key", "patients.duckdb")
        assert run("init", *words, "--out", there).exit_code == 2, there
    assert not (hospital / "new.ledger").exists()


def test_a_key_or_a_database_of_another_catalog_is_no_output_either(hospital: Path) -> None:
    other = hospital / "other"
    other.mkdir()
    curated(other)
    for name in ("catalog.ledger", "catalog.ledger.key", "people.duckdb"):
        assert run("ask", COUNT, "-e", "0.1", "-f", "csv", "--out", f"other/{name}", "--force").exit_code == 2
    (other / "catalog.png").write_bytes((other / "catalog.ledger").read_bytes())
    assert run("explain", "-e", "1", "--plot", "other/catalog.png", "--force").exit_code == 2


# --- races, crashes, devices ------------------------------------------------------------------------------------


def test_who_is_faster_is_not_replaced(tmp_path: Path) -> None:
    file, files = tmp_path / "answer.csv", Outputs()
    files.check({"--out": file})
    file.write_text("theirs", encoding="utf-8")
    with pytest.raises(FileExistsError):
        files.write(file, b"ours")
    assert file.read_text(encoding="utf-8") == "theirs"
    assert os.listdir(tmp_path) == ["answer.csv"]


def test_who_is_faster_is_told_of_with_the_charge(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outputs, "check", lambda *_: None)  # as if it came a moment later
    (hospital / "answer.csv").write_text("theirs", encoding="utf-8")
    done = run("ask", COUNT, "-e", "0.1", "--out", "answer.csv")
    assert (done.exit_code, "made by somebody else meanwhile" in done.stderr) == (4, True)
    assert "Charged: ε = 0.1." in done.stderr
    assert (hospital / "answer.csv").read_text(encoding="utf-8") == "theirs"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("stops", ["fsync", "link", "replace"])
def test_an_output_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool, stops: str) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    file = tmp_path / "answer.csv"
    if force:
        file.write_text("before", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(os, stops, stop)
        if (stops == "link") is force and stops != "fsync":
            Outputs(force).write(file, b"after")
            assert file.read_bytes() == b"after"
            return
        with pytest.raises(KeyboardInterrupt):
            Outputs(force).write(file, b"after")
    assert os.listdir(tmp_path) == (["answer.csv"] if force else [])
    assert not force or file.read_text(encoding="utf-8") == "before"


def test_without_hard_links_a_file_is_still_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    Outputs().write(tmp_path / "answer.csv", b"ours")
    assert (tmp_path / "answer.csv").read_bytes() == b"ours"
    with pytest.raises(FileExistsError):
        Outputs().write(tmp_path / "answer.csv", b"again")
    assert os.listdir(tmp_path) == ["answer.csv"]


def test_what_was_put_in_the_place_of_an_output_is_looked_at_again(tmp_path: Path) -> None:
    curated(tmp_path)
    files = outputs_of(tmp_path / "catalog.toml", str(tmp_path / "catalog.ledger"), None, True)
    file = tmp_path / "answer.csv"
    file.write_text("old", encoding="utf-8")
    files.check({"--out": file})
    file.unlink()
    file.symlink_to("people.csv")
    with pytest.raises(FileExistsError):
        files.write(file, b"n\n1\n")
    assert len((tmp_path / "people.csv").read_text(encoding="utf-8").splitlines()) == 201


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = line.replace("dither", shlex.join(command()), 1)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    clean |= {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(["sh", "-c", words], cwd=folder, env=clean, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_devices_and_pipes_are_written_to(hospital: Path) -> None:
    for file in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/null"):
        done = shell(f"dither ask '{COUNT}' -e 0.1 -f csv --out {file}", hospital)
        assert (done.returncode, done.stdout.startswith("n,n_margin")) == (0, file != "/dev/null"), done.stderr
    assert shell(f"dither ask '{COUNT}' -e 0.1 -f csv --out /dev/stdout > there.csv", hospital).returncode == 0
    assert (hospital / "there.csv").read_text(encoding="utf-8").startswith("n,n_margin")
    if Path("/dev/full").exists():
        done = shell(f"dither ask '{BY_WARD}' -e 0.1 -f csv --out /dev/full", hospital)
        assert (done.returncode, "The answer is kept." in done.stderr) == (4, True)
    os.mkfifo(hospital / "pipe.csv")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((hospital / "pipe.csv").read_text(encoding="utf-8")))
    reader.start()
    assert run("ask", COUNT, "-e", "0.1", "--out", "pipe.csv").exit_code == 0
    reader.join(timeout=60)
    assert read[0].startswith("n,n_margin")


@pytest.mark.slow
def test_a_descriptor_of_the_data_is_no_device(hospital: Path) -> None:
    before = (hospital / "patients.parquet").read_bytes()
    for opened in ("3<>patients.parquet --out /dev/fd/3", ">>patients.parquet --out /dev/stdout"):
        redirect, option = opened.split(" ", 1)
        done = shell(f"dither ask '{COUNT}' -e 0.1 -f csv {option} --force {redirect}", hospital)
        assert done.returncode == 2
        assert "the data of patients" in done.stderr
    assert (hospital / "patients.parquet").read_bytes() == before
