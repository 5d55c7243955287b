"""Makes ordinary functions of the cases, for audits with made-up data: the auditor gets a function, and no pairs.

A function has the parameter that an author would write: `count: int`, `answers: list[int]`, `counts: list[int]`, and so on.
What the auditor makes of it (which data, which neighbours) is part of what is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from detection.case import Case, Law
from detection.local import LOCAL
from detection.second import PROGRAMS

REPLACED = ("group replaced, priced as added", "parallel cells, one replaced", "bounds halved, row replaced")
TRUSTING = ("guarded ratio",)  # correct only on values in [0, 1], which it does not enforce: made-up data refutes it rightly
_HISTOGRAMS = ("histogram", "smart sum", "prefix sums, one", "parallel cells")
_WHOLE = ("wrapping sum", "fan-out of a join ignored")


def shape(case: Case) -> str:
    """Returns the kind of data that the case takes."""
    first = case.pairs[0][0]
    if case in LOCAL:
        return "pair" if isinstance(first, tuple) else "bit" if case.pairs == ((0, 1),) else "item"
    if isinstance(first, int):
        return "bit" if case.name == "randomized response" else "count"
    if any(case.name.startswith(name) for name in _HISTOGRAMS):
        return "counts"
    if any(isinstance(value, str) for value in first):
        return "words"
    if len(first) == len(case.pairs[0][1]) and case.pairs[0] == ((0,) * len(first), (1,) * len(first)):
        return "answers"
    return "integers" if case.name in _WHOLE else "numbers"


def neighbours(case: Case) -> str:
    return "replace" if case.name in REPLACED else "add-remove"


def function(case: Case) -> Callable[..., Any]:
    """Returns the case as a function of the data and a numpy generator."""
    if case.name in PROGRAMS:
        return PROGRAMS[case.name]
    made = _FUNCTIONS[shape(case)](case.law)
    made.__name__ = case.name
    return made


def _of_count(law: Law) -> Callable[..., Any]:
    def release(count: int, rng: Generator) -> Any:
        return law(rng, int(count), 1)[0]

    return release


def _of_bit(law: Law) -> Callable[..., Any]:
    def release(bit: int, rng: Generator) -> Any:
        return law(rng, int(bit), 1)[0]

    return release


def _of_item(law: Law) -> Callable[..., Any]:
    def release(item: int, rng: Generator) -> Any:
        return law(rng, int(item), 1)[0]

    return release


def _of_bits(law: Law) -> Callable[..., Any]:
    def release(bits: tuple[int, int], rng: Generator) -> Any:
        return law(rng, bits, 1)[0]

    return release


def _of_answers(law: Law) -> Callable[..., Any]:
    def release(answers: list[int], rng: Generator) -> Any:
        return law(rng, answers, 1)[0]

    return release


def _of_counts(law: Law) -> Callable[..., Any]:
    def release(counts: list[int], rng: Generator) -> Any:
        return law(rng, counts, 1)[0]

    return release


def _of_numbers(law: Law) -> Callable[..., Any]:
    def release(values: list[float], rng: Generator) -> Any:
        return law(rng, values, 1)[0]

    return release


def _of_integers(law: Law) -> Callable[..., Any]:
    def release(values: list[int], rng: Generator) -> Any:
        return law(rng, values, 1)[0]

    return release


def _of_words(law: Law) -> Callable[..., Any]:
    def release(words: list[str], rng: Generator) -> Any:
        return law(rng, words, 1)[0]

    return release


_FUNCTIONS: dict[str, Callable[[Law], Callable[..., Any]]] = {
    "count": _of_count,
    "bit": _of_bit,
    "item": _of_item,
    "pair": _of_bits,
    "answers": _of_answers,
    "counts": _of_counts,
    "numbers": _of_numbers,
    "integers": _of_integers,
    "words": _of_words,
}
