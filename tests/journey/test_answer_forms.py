"""One table in every form: with margins, frames have the very columns that the command line writes to CSV and Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dither as dt
from journey.hospital import built, run

QUESTION = (
    "SELECT ward, COUNT(*) AS n, AVG(weight) AS n_margin, MEDIAN(weight) / (COUNT(*) - COUNT(*)) AS kg FROM patients "
    "GROUP BY ward"
)
COLUMNS = ["ward", "n", "n_margin_", "n_margin", "n_margin_margin", "kg", "kg_margin"]


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def forms(answer: Any, **options: bool) -> dict[str, dict[str, list[Any]]]:
    frame = answer.to_pandas(**options)
    return {
        "pandas": {name: [None if value != value else value for value in frame[name]] for name in frame},
        "polars": answer.to_polars(**options).to_dict(as_series=False),
        "arrow": answer.to_arrow(**options).to_pydict(),
    }


def test_frames_have_the_columns_of_the_files(hospital: Path) -> None:
    assert run("ask", QUESTION, "-e", "0.5", "-o", "answer.parquet").exit_code == 0
    text = run("ask", QUESTION, "-e", "0.5", "-f", "csv").stdout
    with dt.open("catalog.toml") as survey:
        answer = survey.ask(QUESTION, epsilon="0.5")
    assert answer.replayed  # the same numbers in all that follows
    written = pq.read_table("answer.parquet").to_pydict()
    assert list(written) == COLUMNS == list(csv.DictReader(io.StringIO(text)).fieldnames or [])
    assert answer.to_dict(margins=True) == written
    for found in forms(answer, margins=True).values():
        assert list(found) == COLUMNS
        assert found == written
    assert written["n_margin_"] == answer.margins()["n"]
    assert written["kg_margin"] == [None] * 4  # division by zero


def test_margins_are_floats_even_where_there_is_none(hospital: Path) -> None:
    with dt.open("catalog.toml") as survey:
        answer = survey.ask(QUESTION, epsilon="0.5")
    labels = ("n_margin_", "n_margin_margin", "kg_margin")
    frame = answer.to_pandas(margins=True)
    assert [str(frame[name].dtype) for name in labels] == ["float64"] * 3
    assert frame["kg_margin"].isna().all()
    assert [str(answer.to_polars(margins=True)[name].dtype) for name in labels] == ["Float64"] * 3
    assert [str(answer.to_arrow(margins=True)[name].type) for name in labels] == ["double"] * 3
    assert answer.to_arrow(margins=True)["kg_margin"].null_count == 4


def test_without_margins_there_are_the_columns_that_were_asked_for(hospital: Path) -> None:
    with dt.open("catalog.toml") as survey:
        answer = survey.ask(QUESTION, epsilon="0.5")
    for found in forms(answer).values():
        assert list(found) == list(answer.columns)
        assert found == answer.to_dict()


def test_what_merely_counts_as_true_is_refused(hospital: Path) -> None:
    with dt.open("catalog.toml") as survey:
        answer = survey.ask(QUESTION, epsilon="0.5")
    for margins in (0.95, "yes", 1, None):
        with pytest.raises(dt.ArgumentError, match="margins must be True or False"):
            answer.to_pandas(margins=margins)  # somebody means a confidence: that is margins(0.99)
