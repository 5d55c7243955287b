"""Whether an answer is right within what it says: each number within ±, each sentence on what was left out true, no silence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

import dither as dt
from dither.planning.left_out import LeftOut
from journey.analyst.truth import Kept, Key, Question, plain

_FLOATS = 1e-9


class Fault(NamedTuple):
    """Something wrong about an answer: a number, a sentence, or silence. `place`: of the number among all."""

    kind: str
    text: str
    place: int = 0


class Number(NamedTuple):
    """A number of an answer with its margin."""

    name: str
    key: Key
    value: float
    margin: float


def statements(answer: dt.Answer, confidence: Fraction) -> tuple[LeftOut, ...]:
    """Returns what the answer says of what was left out, at another confidence."""
    return answer.program.left_out(answer.released, confidence)


def faults(
    answer: dt.Answer,
    question: Question,
    said: Sequence[LeftOut],
    confidence: Fraction,
    stated: Sequence[Number] | None = None,
) -> list[Fault]:
    """Returns what is wrong about an answer that says this. Each number and sentence is right with the confidence.

    `stated`: the answer's numbers, if they are not its own.
    """
    doubt = float(1 - confidence)
    stated = list(numbers(answer, question, confidence)) if stated is None else stated
    found = list(_rank(answer, question, confidence)) if question.quantile is not None else []
    found += _numbers(answer, question, stated, doubt) if question.quantile is None else []
    found += [*_groups(answer, question, confidence), *_silence(question, said, stated), *_rows(answer, question, said, doubt)]
    for column in sorted(question.clipped):
        found += _clipping(question, column, said)
    return found + [each for column in sorted(question.clipped_inside) for each in _inside(answer, question, column)]


def limits(answer: dt.Answer) -> tuple[float, float]:
    """Returns max_rows and max_groups as the answer was bounded."""
    bounding = answer.plan.bounding
    return (bounding.max_rows, bounding.max_groups) if answer.plan.work.by_unit else (math.inf, math.inf)


def numbers(answer: dt.Answer, question: Question, confidence: Fraction) -> Iterator[Number]:
    """Returns the numbers for which a margin is stated."""
    margins = answer.margins(confidence)
    for row in range(len(answer)):
        key = tuple(plain(answer[name][row]) for name in question.keys)
        for name in question.outputs:
            margin = margins[name][row]
            if margin is not None:
                yield Number(name, key, answer[name][row], margin)


def _numbers(answer: dt.Answer, question: Question, stated: Sequence[Number], doubt: float) -> Iterator[Fault]:
    """Finds numbers that are farther from those of the rows that count than ± says."""
    kept = question.kept(*limits(answer), doubt)
    for place, each in enumerate(stated):
        right = kept[each.key][each.name] if each.key in kept else _empty(question, each.name)
        if abs(each.value - right.value) > each.margin + right.spread + _FLOATS * abs(right.value):
            text = f"{each.value} ± {each.margin:.4g}, and the rows that count have {right.value:.6g} (± {right.spread:.2g})"
            yield Fault("number", f"{each.name} {each.key}: {text}", place)


def _empty(question: Question, name: str) -> Kept:
    """Returns the number of an empty group: 0, or nothing to compare with."""
    return Kept(0.0, math.inf if "/" in question.finished[name].sql() else 0.0)


def _rank(answer: dt.Answer, question: Question, confidence: Fraction) -> Iterator[Fault]:
    name = question.quantile[0] if question.quantile else ""
    value, reach = float(answer[name][0]), answer.ranks(confidence)[name]
    below, upto, rank = question.ranks(value, limits(answer)[0])
    if not below - reach - 1 <= rank <= upto + reach + 1:
        text = f"{value} has the ranks {below:.0f} to {upto:.0f}, ± {reach:.0f}, and the quantile has {rank:.0f}"
        yield Fault("number", f"{name}: {text}")


def _groups(answer: dt.Answer, question: Question, confidence: Fraction) -> Iterator[Fault]:
    """Finds groups that are not shown, if they are public or have more people than the answer says."""
    rule = answer.plan.threshold
    most = 0 if rule is None else float(rule.margin(confidence))
    shown = {tuple(plain(answer[name][row]) for name in question.keys) for row in range(len(answer))}
    for key, people in question.people_in_groups(limits(answer)[1]).items():
        if key not in shown and people > most:
            yield Fault("silence", f"the group {key} of {people:.0f} people is not shown")


def _silence(question: Question, said: Sequence[LeftOut], stated: Sequence[Number]) -> Iterator[Fault]:
    """Finds numbers beyond ± of plain SQL's where the answer says nothing about what was left out."""
    if said or question.quantile is not None or question.clipped_inside:
        return
    for place, each in enumerate(stated):
        right = question.plain.get(each.key, {}).get(each.name, math.nan)
        if abs(each.value - right) > each.margin + _FLOATS * abs(right):
            text = f"{each.name} {each.key}: {each.value} ± {each.margin:.4g}, plain SQL has {right:.6g}"
            yield Fault("silence", text, place)


def _rows(answer: dt.Answer, question: Question, said: Sequence[LeftOut], doubt: float) -> Iterator[Fault]:
    """Finds sentences on rows that are not true, and rows that were left out without a sentence."""
    people = question.left_out(*limits(answer))
    lost, has = people["has"] - people["keeps"], float(people["has"].sum())
    share = float(lost.sum()) / has
    sentences = [each for each in said if not each.clipped]
    if not sentences and share > _FLOATS:
        yield Fault("silence", f"not a word on {share:.2%} of rows that were left out")
    spread = math.sqrt(float((people["moves"] ** 2).sum()) * math.log(2 / doubt) / 2) / has  # Hoeffding, over people
    for each in sentences:
        yield from _interval(each, share, _as_far(each, people), spread)


def _as_far(said: LeftOut, people: pd.DataFrame) -> float:
    """Returns the share without the people whom the sentence leaves aside."""
    lost = people["has"] - people["keeps"]
    if said.beyond is None:
        return float(lost.sum() / people["has"].sum())
    most = float(said.beyond.split()[0])
    light = lost <= most if "not counted" in said.beyond else people["has"] <= most
    own = float(lost[light].sum())
    return min(own / (own + float(people["keeps"].sum())), own / max(float(people["has"][light].sum()), 1.0))


def _clipping(question: Question, column: str, said: Sequence[LeftOut]) -> Iterator[Fault]:
    """Finds sentences on clipped sums that are not true, and sums that were clipped without a sentence."""
    sentences = [each for each in said if each.clipped and each.of.endswith(column) and each.bounds[0][0] == "above"]
    whole, over = question.clipping(column)
    share = float(over.sum()) / whole
    if not sentences and share > _FLOATS:
        yield Fault("silence", f"not a word on {share:.2%} of the sum of {column} that was clipped")
    for each in sentences:
        light = float(over[over <= (math.inf if each.beyond is None else float(each.beyond))].sum())
        yield from _interval(each, share, light / (whole - float(over.sum()) + light), 0.0)


def _inside(answer: dt.Answer, question: Question, column: str) -> Iterator[Fault]:
    """Finds columns that were clipped inside a subquery, where the answer does not say so."""
    if question.outside(column) and f".{column} is clipped to [" not in answer.footer():
        yield Fault("silence", f"not a word on {column}, which was clipped inside the subquery")


def _interval(said: LeftOut, share: float, as_far: float, spread: float) -> Iterator[Fault]:
    """Finds ends of an interval that do not hold: `share` is at least the low one, `as_far` at most the high one."""
    for end, wrong, true in (("low", said.low - share, share), ("high", as_far - said.high, as_far)):
        if wrong > spread + _FLOATS:
            yield Fault("sentence", f"{said} ({end} end: {getattr(said, end):.3%}), but it is {true:.3%}")
