"""A verdict of replay counts only comparisons in which noise was drawn on both sides and aligned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.audit.replay import judge as judging
from dither.audit.replay.replay import replay
from dither.audit.verdict import NOT_FOUND, VIOLATES, Verdict

ONES = [([1] * 3, [1] * 4)]
SEEDS = range(40)


def parts(data: Any, noise: Any) -> list[float]:
    """Splits epsilon = 1 over as many parts as there are records: each part has the scale of its share."""
    return [sum(data) + noise.laplace(len(data)) for _ in data]


def majority(data: Any, noise: Any) -> Any:
    return bool(np.median(parts(data, noise)) > 3)


def label(data: Any, noise: Any) -> Any:
    return "many" if max(parts(data, noise)) > 3 else "few"


def place(data: Any, noise: Any) -> Any:
    return int(np.argmax(parts(data, noise)[:3]))


def clamped(data: Any, noise: Any) -> Any:
    return min(max(np.mean(parts(data, noise)), 3), 3.5)


def nothing(data: Any, noise: Any) -> Any:
    return 7


def unused(data: Any, noise: Any) -> Any:
    noise.laplace(1)
    return 7


def always_fails(data: Any, noise: Any) -> Any:
    raise ValueError(f"not today: {noise.laplace(1) > 1e9}")


LEFT_OPEN = (majority, label, place, clamped, nothing, unused, always_fails)


def audited(function: Any, seed: int) -> Verdict:
    return replay(function, 1, data=ONES, examples=1, seed=seed)


@pytest.mark.parametrize("function", LEFT_OPEN, ids=lambda function: function.__name__)
def test_nothing_is_concluded_where_nothing_was_aligned(function: Any) -> None:
    verdicts = [audited(function, seed) for seed in SEEDS]
    assert all(verdict.outcome == NOT_FOUND and verdict.open for verdict in verdicts), {str(one) for one in verdicts}
    assert all("nothing concluded" in str(verdict) for verdict in verdicts)


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of before: without a note a pair counted as compared, although no output was."""
    monkeypatch.setattr(judging, "_uncovered", lambda *_: [])

    class Careless(judging.Judgement):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "aligned": True})

    monkeypatch.setattr(judging, "Judgement", Careless)
    assert not all(audited(majority, seed).open for seed in SEEDS)


def two_counts(data: Any, noise: Any) -> Any:
    return [noise.laplace(2, at=len(data)), len(data) + noise.laplace(2)]


def count_and_flag(data: Any, noise: Any) -> Any:
    return [noise.laplace(2, at=len(data)), bool(len(data) + noise.laplace(2) > 3)]


def test_aligned_noise_is_concluded_from() -> None:
    for seed in SEEDS[:10]:
        verdict = audited(two_counts, seed)
        assert not verdict.open, str(verdict)
        assert verdict.epsilon == pytest.approx(1)
        assert "on 1 of 1 pairs, which were compared in full" in str(verdict)


def test_a_comparison_in_part_says_so() -> None:
    for seed in SEEDS[:10]:
        verdict = audited(count_and_flag, seed)
        assert "seen on 1 of 1 pairs, none compared in full" in str(verdict), str(verdict)
        assert verdict.epsilon == pytest.approx(0.5)


def test_choices_are_aligned_too() -> None:
    def chosen(data: Any, noise: Any) -> Any:
        return "abc"[noise.choice([data.count(key) for key in (0, 1, 2)], 1)]

    for seed in SEEDS[:10]:
        verdict = replay(chosen, 1, data=[([1, 1], [1, 1, 1])], examples=1, seed=seed)
        assert not verdict.open, str(verdict)
        assert 0 < verdict.epsilon <= 1


def test_parts_that_show_are_still_refuted() -> None:
    assert all(audited(parts, seed).outcome == VIOLATES for seed in SEEDS[:5])
