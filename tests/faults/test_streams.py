"""kill -9 at every boundary while a stream is advanced: nothing that was shown is lost, drawn again or charged twice."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from faults.programs import program
from faults.steps import in_order

EXPECTED = (
    "before reserve",
    "after COMMIT",
    "after touch",
    "before the engine's query",
    "after release",
    "before advance",
    "before COMMIT",
    "after COMMIT",
    "after advance",
    "answer in hand",
    "answer shown",
)


def killed(folder: Path, **options: Any) -> dict[str, Any]:
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=number % 60) for number in range(120)]
    pq.write_table(pa.table({"person": range(120), "day": pa.array(days, pa.date32())}), folder / "visits.parquet")
    return program("streaming.py", json.dumps({"folder": str(folder), **options}))


def test_killed_processes_lose_nothing_and_redraw_nothing(tmp_path: Path) -> None:
    found = killed(tmp_path)
    assert found["problems"] == []
    assert in_order(EXPECTED, found["steps"])
    assert found["killed"] == found["deaths"] >= 25


def test_that_check_can_fail(tmp_path: Path) -> None:
    found = killed(tmp_path, way="kept_late", since="answer in hand", every=1)
    assert any("was shown and is not kept" in problem for problem in found["problems"])
