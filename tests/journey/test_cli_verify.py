"""`dither verify` with evidence: unreadable evidence is wrong usage, never a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journey.hospital import COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    assert run("ask", COUNT, "-e", "0.1", "--receipt", "receipt.json").exit_code == 0
    return tmp_path


def wrong(*words: str) -> str:
    done = run("verify", *words)
    assert (done.exit_code, done.stdout) == (2, ""), words
    assert done.stderr.rstrip().endswith("Charged: nothing.")
    return done.stderr


def test_a_receipt_that_is_not_there_is_named(hospital: Path) -> None:
    assert wrong("--receipt", "nowhere.json").startswith("There is no receipt nowhere.json here.\n")
    assert wrong("--receipt", "nowhere/at all.json").startswith("There is no receipt nowhere/at all.json here.\n")
    assert wrong("--receipt", "receipt.json/x").startswith("There is no receipt receipt.json/x here.\n")
    assert wrong("--receipt", ".").startswith(". is a folder")
    assert "cannot be read" in wrong("--receipt", "x" * 5000)


def test_a_receipt_that_may_not_be_read_is_named(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", closed)
        assert wrong("--receipt", "receipt.json").startswith("receipt.json cannot be read.\n")
    assert run("verify", "--receipt", "receipt.json").exit_code == 0


def test_what_is_no_receipt_is_told_with_its_name(hospital: Path) -> None:
    whole = (hospital / "receipt.json").read_text(encoding="utf-8")
    without = {"body": json.loads(whole)["body"]}
    texts = ["", "[]", "{", "null", "3", '"x"', "[" * 100_000, whole[:200], json.dumps(without), "9" * 5000]
    for text in [*texts, whole.replace('"number": 3', '"number": "3"'), whole.replace('"loss"', '"lost"')]:
        (hospital / "odd.json").write_text(text, encoding="utf-8")
        assert wrong("--receipt", "odd.json").startswith("odd.json is no receipt of dither"), text[:50]
    for content in (b"\xff\xfe", b"\x00" * 100, (hospital / "patients.parquet").read_bytes()):
        (hospital / "odd.json").write_bytes(content)
        assert wrong("--receipt", "odd.json").startswith("odd.json is no receipt of dither")


def test_a_receipt_that_was_edited_is_a_problem_and_no_slip(hospital: Path) -> None:
    whole = (hospital / "receipt.json").read_text(encoding="utf-8")
    assert "1/10" in whole
    (hospital / "edited.json").write_text(whole.replace("1/10", "1/20"), encoding="utf-8")
    done = run("verify", "--receipt", "edited.json")
    assert done.exit_code == 1
    assert "was edited" in done.stdout


def test_every_receipt_that_is_named_is_checked_and_told_by_its_file(hospital: Path) -> None:
    whole = (hospital / "receipt.json").read_text(encoding="utf-8")
    (hospital / "edited.json").write_text(whole.replace("1/10", "1/20"), encoding="utf-8")
    assert run("ask", COUNT, "-e", "0.2", "--receipt", "later.json").exit_code == 0
    for named in (("edited.json", "receipt.json"), ("receipt.json", "edited.json"), ("later.json", "edited.json")):
        done = run("verify", *(word for file in named for word in ("--receipt", file)))
        assert done.exit_code == 1
        assert "the receipt edited.json is not signed with the ledger's key, or was edited" in done.stdout
        assert "receipt receipt.json" not in done.stdout
    sound = run("verify", "--receipt", "later.json", "--receipt", "receipt.json")
    assert sound.exit_code == 0
    assert all(f"{file}: the ledger has its entries" in sound.stdout for file in ("later.json", "receipt.json"))
    assert wrong("--receipt", "nowhere.json", "--receipt", "receipt.json").startswith("There is no receipt nowhere.json")


def test_an_old_copy_is_found_by_any_of_the_receipts(hospital: Path) -> None:
    old = (hospital / "catalog.ledger").read_bytes()
    assert run("ask", COUNT, "-e", "0.2", "--receipt", "later.json").exit_code == 0
    (hospital / "catalog.ledger").write_bytes(old)
    done = run("verify", "--receipt", "later.json", "--receipt", "receipt.json")
    assert done.exit_code == 1
    assert "which the receipt later.json names, is not there" in done.stdout
    assert run("verify", "--receipt", "receipt.json").exit_code == 0


@pytest.mark.parametrize(
    "head", ["", "8", "8:", ":", "8:xyz", "-1:" + "0" * 64, "8:" + "0" * 63, "8:" + "A" * 64, "8 :" + "0" * 64]
)
def test_a_head_that_no_ledger_could_have_is_a_slip(hospital: Path, head: str) -> None:
    assert wrong("--head", head).startswith("A head is written as number:hash")


def test_a_head_may_have_been_copied_with_its_spaces(hospital: Path) -> None:
    head = json.loads(run("verify", "-f", "json").stdout)["head"]
    assert run("verify", "--head", f" {head}\n").exit_code == 0


def test_a_key_that_no_ledger_could_have_is_a_slip(hospital: Path) -> None:
    known = json.loads(run("verify", "-f", "json").stdout)["public_key"]
    for key in ("", "x", known[:-1], known + "0", "receipt.json"):
        assert wrong("--public-key", key).startswith("A public key is written in 64 digits")
    assert run("verify", "--public-key", known).exit_code == 0
    other = known[:-1] + ("0" if known[-1] != "0" else "1")
    assert run("verify", "--public-key", other).exit_code == 1


@pytest.mark.parametrize(
    "ledger", ["nowhere.ledger", "catalog.toml", "patients.parquet", ".", "catalog.ledger/x", "receipt.json"]
)
def test_a_ledger_that_cannot_be_read_is_no_verdict_either(hospital: Path, ledger: str) -> None:
    for command in ("verify", "budget", "history"):
        done = run(command, "--ledger", ledger)
        assert (done.exit_code, done.stdout) == (4, "")
        assert done.stderr.rstrip().endswith("Charged: nothing.")
