"""Records of mechanisms in ledgers and receipts: a tag of a closed table and exact parameters, no names of classes."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from dither.mechanisms import (
    L1,
    L2,
    Channel,
    Compose,
    Example,
    Exponential,
    Gaussian,
    Geometric,
    PerCoordinate,
    Threshold,
    registry,
)
from dither.privacy.losses import ZCDP

KINDS = [kind for kind in registry() if kind.__module__.startswith("dither.")]
EXAMPLES = [example for kind in KINDS for example in kind.examples()]

# The closed table. A tag is never changed: it is in ledgers and receipts that people keep.
TAGS = {
    *("Geometric", "TruncatedGeometric", "Laplace", "Gaussian", "Threshold", "RandomizedResponse", "SparseVector"),
    *("Exponential", "PermuteAndFlip", "NoisyMax", "Sampled", "Structured", "Channel", "Compose"),
}


def test_every_mechanism_has_one_tag_of_the_closed_table() -> None:
    assert sorted(kind.tag for kind in KINDS) == sorted(TAGS)


@pytest.mark.parametrize(
    ("mechanism", "record"),
    [
        (
            Geometric(epsilon="1/10", sensitivity=1),
            {"mechanism": "Geometric", "epsilon": "1/10", "sensitivity": {"norm": "L1", "bound": "1"}},
        ),
        (
            Geometric(epsilon=1, sensitivity=L2("5/2", dimension=4)),
            {"mechanism": "Geometric", "epsilon": "1", "sensitivity": {"norm": "L2", "bound": "5/2", "dimension": 4}},
        ),
        (
            Gaussian(rho="1/8", sensitivity=PerCoordinate(2, 3)),
            {
                "mechanism": "Gaussian",
                "rho": "1/8",
                "variance": "72",
                "sensitivity": {"norm": "PerCoordinate", "count": 2, "each": "3"},
            },
        ),
        (
            Gaussian(scale=2, sensitivity=L1(1), grid="1/4"),
            {
                "mechanism": "Gaussian",
                "rho": "1/8",
                "variance": "64",
                "grid": "1/4",
                "sensitivity": {"norm": "L1", "bound": "1"},
            },
        ),
        (Exponential(epsilon=1, sensitivity="1/3"), {"mechanism": "Exponential", "epsilon": "1", "sensitivity": "1/3"}),
        (
            Exponential(epsilon=1, sensitivity=1, candidates=("a", "b"), monotone=True),
            {"mechanism": "Exponential", "epsilon": "1", "sensitivity": "1", "candidates": ["a", "b"], "monotone": True},
        ),
        (
            Compose(Channel([["3/4", "1/4"], ["1/4", "3/4"]]), Geometric(epsilon=1, sensitivity=2)),
            {
                "mechanism": "Compose",
                "parts": [
                    {"mechanism": "Channel", "rows": ["3/4 1/4", "1/4 3/4"]},
                    {"mechanism": "Geometric", "epsilon": "1", "sensitivity": {"norm": "L1", "bound": "2"}},
                ],
            },
        ),
        (
            Threshold(epsilon=1, delta="1e-6", keys_per_unit=3),
            {"mechanism": "Threshold", "epsilon": "1", "delta": "1/1000000", "keys_per_unit": 3, "rule": "optimal"},
        ),
    ],
)
def test_a_record_is_the_tag_and_the_exact_parameters(mechanism: Any, record: dict[str, Any]) -> None:
    assert mechanism.record() == record
    assert list(mechanism.record()) == list(record)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example.mechanism).__name__)
def test_records_are_plain_and_hold_no_float(example: Example) -> None:
    record = example.mechanism.record()
    assert json.loads(json.dumps(record), parse_float=pytest.fail) == record


def test_renaming_a_class_moves_no_record() -> None:
    before = [example.mechanism.record() for example in EXAMPLES]
    kinds: list[type] = [*KINDS, L1, L2, PerCoordinate]
    names = [kind.__name__ for kind in kinds]
    try:
        for kind in kinds:
            kind.__name__ = f"Renamed{kind.__name__}"
        assert [example.mechanism.record() for example in EXAMPLES] == before
    finally:
        for kind, name in zip(kinds, names, strict=True):
            kind.__name__ = name


def test_different_noise_has_different_records() -> None:
    records = {json.dumps(example.mechanism.record(), sort_keys=True) for example in EXAMPLES}
    assert len(records) == len({example.mechanism for example in EXAMPLES})


def test_a_calibrated_gaussian_records_both_prices_of_its_variance() -> None:
    noise = Gaussian(epsilon=1, delta="1e-6", sensitivity=1)
    record = noise.record()
    assert (record["epsilon"], record["delta"]) == ("1", "1/1000000")
    assert Fraction(record["rho"]) == 1 / (2 * Fraction(record["variance"])) == noise.zcdp().rho
    assert noise.zcdp() == ZCDP(1 / (2 * noise.variance)) != noise.loss().zcdp()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example.mechanism).__name__)
def test_words_say_what_the_noise_is_on(example: Example) -> None:
    words = example.mechanism.words("the ages", "row")
    assert "the ages" in words
    assert "ε = " in words or "ρ = " in words


def test_scales_for_margins_are_those_of_the_law() -> None:
    assert Geometric(epsilon="1/2", sensitivity=3).noise_scale == 6
    assert Geometric(epsilon="1/2", sensitivity=3).noise_variance == 72
    assert Gaussian(rho="1/8", sensitivity=1).noise_scale == 2
    assert Gaussian(rho="1/8", sensitivity=1).noise_variance == 4
    assert Exponential(epsilon="1/2", sensitivity=3).noise_scale == 12
