"""Compares how versions of sqlglot read questions. Run it before widening the range in pyproject.toml (decision 11).

    python scripts/sqlglot_range.py 30.18.0 30.24.0 30.30.0

Installs each version into a temporary folder and reads the same questions with it: those of the golden files, each of
them with small slips, and pairs of operators. Prints each answered question that two versions read differently; exits
with 1 if there is one. Refusals may differ in words.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLIPS = 12  # for each golden question
ARITHMETIC = ("+", "-", "*", "/", "%")
CONDITIONS = ("= 7", "<> 7", "<= 7", "BETWEEN 1 AND 7", "IN (1, 7)", "NOT IN (7)", "IS NULL", "IS NOT NULL")
SIGNS = ("", "-", "NOT ", "NOT -")


def questions() -> Iterator[str]:
    """Yields the same questions in the same order on every call."""
    from sql.test_golden import cases

    golden = [question for name in ("sql_to_nodes.txt", "sql_to_error.txt") for _, question, _ in cases(name)]
    yield from golden
    rng, tokens = random.Random(11), [re.findall(r"\"[^\"]*\"|'[^']*'|\w+|<>|<=|>=|\|\||::|\S", one) for one in golden]
    words = sorted({word for one in tokens for word in one})
    for one, _ in itertools.product(tokens, range(SLIPS)):
        at = rng.randrange(len(one))
        yield " ".join([*one[:at], *rng.choice(([], [rng.choice(words)], [one[at]] * 2)), *one[at + 1 :]])
    for first, second, condition, sign in itertools.product(ARITHMETIC, ARITHMETIC, CONDITIONS, SIGNS):
        yield f"SELECT COUNT(*) FROM people WHERE {sign}age {first} income {second} 3 {condition} OR active AND NOT age > 1"


def readings() -> list[tuple[str, str | None]]:
    """Returns each question with its query, or None if it is refused."""
    import dither as dt
    from sql.test_golden import nodes

    pairs: list[tuple[str, str | None]] = []
    for question in questions():
        try:
            pairs.append((question, nodes(question)))
        except dt.QueryError:
            pairs.append((question, None))
    return pairs


def readings_with(version: str, folder: Path) -> list[list[str | None]]:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder), f"sqlglot=={version}"], check=True)
    path = os.pathsep.join(map(str, (folder, ROOT / "src", ROOT / "tests")))
    child = [sys.executable, __file__, "--read"]
    done = subprocess.run(child, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True)
    pairs: list[list[str | None]] = json.loads(done.stdout)
    return pairs


def main(versions: list[str]) -> int:
    with tempfile.TemporaryDirectory() as place:
        read = {version: readings_with(version, Path(place, version)) for version in versions}
    first, *rest = versions
    answered = sum(meaning is not None for _, meaning in read[first])
    print(f"{len(read[first])} questions, of which {first} answers {answered}")
    wrong = 0
    for version in rest:
        for (question, before), (_, after) in zip(read[first], read[version], strict=True):
            if before != after:
                wrong += 1
                print(f"\n{question}\n{first}:\n{before}\n{version}:\n{after}")
    print(f"{wrong} readings differ")
    return int(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--read"]:
        print(json.dumps(readings()))
    else:
        sys.exit(main(sys.argv[1:]))
