"""What the ledger and the receipt say of fixed questions. UPDATE_GOLDEN=1 writes what they say now; read the difference.

What differs from run to run (times, keys, nonces, the drawn numbers) is left out, and so is the text by which a question is
found again: it has a golden file of its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dither.curator import Curator
from dither.curator import open as open_curator
from planning.test_runs import filled, frames

FILE = Path(__file__).parent.parent / "golden" / "records.txt"
QUESTIONS = (
    ("SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY region", "2", None),
    ("SELECT COUNT(*) AS n FROM people WHERE age >= 18", "1/3", None),
    ("SELECT SUM(income) AS total, COUNT(DISTINCT region) AS regions FROM people", "1", "1e-6"),
    ("SELECT ward, MEDIAN(cost) AS m, STDDEV(cost) AS s FROM visits GROUP BY ward", "3", "1e-6"),
    ("SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 2", "2", "1e-6"),
    ("SELECT g, SUM(x) AS x, COUNT(*) FILTER (WHERE x > 3) AS many FROM records GROUP BY g", "1", "0"),
)
LEFT_OUT = ("nonce", "time", "token", "previous", "hash", "ledger", "public_key", "payload", "plan", "digest", "reserved_hash")


def survey() -> Curator:
    return open_curator(filled(frames()), ledger=":memory:")


def stable(record: Any) -> Any:
    """Returns the record without what differs from run to run."""
    if isinstance(record, dict):
        return {key: stable(value) for key, value in record.items() if key not in LEFT_OUT}
    return [stable(each) for each in record] if isinstance(record, list) else record


def told(curator: Curator, text: str, epsilon: str, delta: str | None) -> list[str]:
    before = curator.ledger.head().number
    answer = curator.ask(text, epsilon=epsilon, delta=delta)
    rows = [curator.ledger.store.entry(number) for number in range(before + 1, curator.ledger.head().number + 1)]
    records = [json.loads(row.body) for row in rows if row is not None]
    told = [f"ask> {text} at {epsilon}, {delta}"]
    told += [json.dumps(stable(record), sort_keys=True, ensure_ascii=False) for record in records]
    return [*told, "receipt " + json.dumps(stable(answer.receipt.body), ensure_ascii=False)]


def test_entries_and_receipts_are_as_written_down() -> None:
    with survey() as curator:
        found = "\n\n".join("\n".join(told(curator, *question)) for question in QUESTIONS) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(found, encoding="utf-8")
    assert found.split("\n\n") == FILE.read_text(encoding="utf-8").split("\n\n")
