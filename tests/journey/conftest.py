"""A folder with a catalog and its data, and no ledger yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from journey.paid import people, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people().to_parquet(tmp_path / "people.parquet")
    write(tmp_path)
    return tmp_path
