"""%%dither in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import dither as dt
from dither.answer import Answer, Quote
from journey.hospital import BY_WARD, built


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    InteractiveShell.clear_instance()
    ipython = InteractiveShell()
    ipython.history_manager.enabled = False
    ipython.run_line_magic("load_ext", "dither")
    yield ipython
    ipython.run_line_magic("unload_ext", "dither")
    ipython.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_is_asked_and_shown_with_margins(shell: Any) -> None:
    found = shell.run_cell(f"%%dither --epsilon 0.1 --into wards\n{BY_WARD}").result
    assert isinstance(found, Answer)
    assert found is shell.user_ns["wards"]
    page = shell.display_formatter.format(found)[0]["text/html"]
    assert "<table>" in page
    assert " ± " in page
    assert "charged ε = 0.1" in page
    again = shell.run_cell(f"%%dither --epsilon 0.1 --catalog catalog.toml\n{BY_WARD}").result
    assert again.replayed


def test_a_quote_parameters_and_an_open_session(shell: Any) -> None:
    asked = "SELECT COUNT(*) AS n FROM patients WHERE ward = :ward"
    quote = shell.run_cell(f"%%dither --epsilon 0.1 --quote --param ward=hearts\n{asked}").result
    assert isinstance(quote, Quote)
    with dt.open("catalog.toml") as survey:
        shell.push({"survey": survey})
        found = shell.run_cell(f"%%dither --epsilon 0.1 --param ward=hearts\n{asked}").result
        assert isinstance(found, Answer)
        assert survey.budget.spent.epsilon == found.total.epsilon


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("%%dither --epsilon 0.1\nSELECT nobody FROM patients", "Charged: nothing."),
        ("%%dither\nSELECT COUNT(*) FROM patients", "--epsilon 0.1"),
        ("%%dither --epsilon\nSELECT COUNT(*) FROM patients", "expected one argument"),
        ("%%dither --epsilon '0.1\nSELECT COUNT(*) FROM patients", "a quote is not closed"),
        ("%%dither --epsilon 0.1 --catalog nowhere.toml\nSELECT COUNT(*) FROM patients", "nowhere.toml"),
        ("%dither --epsilon 0.1", "There is no question"),
    ],
)
def test_an_error_is_a_text_without_a_traceback(shell: Any, cell: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell(cell).result is None
    told = capsys.readouterr()
    assert what in told.err
    assert "Traceback" not in told.out + told.err


def test_unloading_closes_the_catalogs(shell: Any) -> None:
    shell.run_cell(f"%%dither --epsilon 0.1\n{BY_WARD}")
    shell.run_line_magic("unload_ext", "dither")
    assert shell.find_cell_magic("dither") is None
    shell.run_line_magic("load_ext", "dither")
