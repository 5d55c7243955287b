"""Prints the walk of one question: how many functions, modules and packages of dither `survey.ask` goes through.

    python scripts/walk.py             the numbers
    python scripts/walk.py --borders   also every border that is crossed, and how often

A package is the first path part under src/dither. Two successive calls in different packages cross a border. The ledger is in
memory, and the question was quoted once before, so that its plan is remembered. The rows "from the text" count the walk of a
question that is planned anew. The estimate of what was left out is a second small question, planned, run and released like the
first; it is counted apart, in the rows "with estimate".
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import dither as dt

QUESTION = "SELECT r, COUNT(*) AS n, AVG(age) AS a FROM p GROUP BY r"
ROOT = str(Path(dt.__file__).parent)
THREE: dict[str, list[Any]] = {"person": [1, 2, 3], "r": ["north", "south", "north"], "age": [30, 40, 50]}


def survey(rows: dict[str, list[Any]] = THREE) -> dt.Curator:
    columns = {"r": dt.values("north", "south"), "age": dt.between(0, 120)}
    catalog = dt.Catalog({"p": dt.Table(rows, unit="person", key="person", columns=columns)}, dt.Budget(10))
    return dt.open(catalog, ledger=":memory:")


def walk(step: Callable[[], Any]) -> list[tuple[str, str]]:
    """Returns the calls of dither's functions in order: the file under src/dither, and the function."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            file = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
            calls.append((file, f"{frame.f_code.co_qualname}:{frame.f_code.co_firstlineno}"))

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def package(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def borders(calls: list[tuple[str, str]]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Returns the pairs of successive calls in different packages."""
    return [(one, two) for one, two in pairwise(calls) if package(one[0]) != package(two[0])]


def numbers(calls: list[tuple[str, str]]) -> dict[str, int]:
    modules = [file for file, _ in calls]
    return {
        "calls": len(calls),
        "functions": len(set(calls)),
        "modules": len(set(modules)),
        "package borders": len(borders(calls)),
        "module borders": sum(one != two for one, two in pairwise(modules)),
    }


def main() -> int:
    with survey() as curator:
        curator.quote(QUESTION, epsilon="0.5", left_out=False)
        calls = walk(lambda: curator.ask(QUESTION, epsilon="0.5", left_out=False))
        curator.forget_plans()
        anew = walk(lambda: curator.ask(QUESTION, epsilon="0.5", left_out=False, fresh=True))
        curator.quote(QUESTION, epsilon="0.5")
        more = walk(lambda: curator.ask(QUESTION, epsilon="0.5"))
    for walked, which in ((calls, ""), (anew, ", from the text"), (more, ", with estimate")):
        for name, number in numbers(walked).items():
            print(f"{name + which:32}{number:8,}")
    if "--borders" in sys.argv[1:]:
        crossed = borders(calls)
        for (one, two), times in Counter((package(a[0]), package(b[0])) for a, b in crossed).most_common():
            print(f"{times:5}  {one} -> {two}")
        for (file, name), (other, called) in crossed:
            print(f"       {file} {name}  ->  {other} {called}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
