"""Adapters: each supplies the noise of the tape, and gets the right verdict on a correct function and its broken twin."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from dither.audit.replay.adapters import NAMED, Diffprivlib, NumpyPatched, NumpyRng, OpenDP, Plain, Rng, numpy_random
from dither.audit.replay.pairs import REPLACE, Column, Records
from dither.audit.replay.replay import replay
from dither.audit.replay.tape import CHOICE, GAUSSIAN, LAPLACE, RAW, UNIFORM, UNSEEN, Tape
from dither.audit.verdict import NOT_FOUND, VIOLATES

SMALL = Records("small whole numbers", {"": Column(lambda dice: dice.randint(0, 5), (5,), (0, 1))}, list)


def clipped(data: Any) -> Any:
    return np.clip(np.nan_to_num(np.asarray(data, dtype=float), nan=0.0), 0, 10)


# --- the tape ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["random", "zero", "high", "low", "wild"])
def test_a_tape_gives_the_same_noise_twice(mode: str) -> None:
    def draws() -> list[Any]:
        tape = Tape(3, mode)
        return [
            *(tape.additive(kind, 2.0) for kind in (LAPLACE, GAUSSIAN, "geometric")),
            *(tape.uniform(), tape.choice([0.0, 1.0, 2.0]), tape.raw(lambda seed: seed, "seed")),
        ]

    assert draws() == draws()


def test_one_draw_does_not_shift_the_next() -> None:
    first, second = Tape(1), Tape(1)
    first.additive(LAPLACE, 1.0)
    second.additive(LAPLACE, np.ones(50))
    assert first.additive(LAPLACE, 1.0) == second.additive(LAPLACE, 1.0)


def test_noise_follows_numpys_shapes() -> None:
    tape = Tape(1)
    assert np.shape(tape.additive(LAPLACE, 1.0, size=3)) == (3,)
    assert np.shape(tape.additive(LAPLACE, [1.0, 2.0], at=[[5.0], [6.0]])) == (2, 2)
    assert np.shape(tape.additive(LAPLACE, 1.0, at=4)) == ()
    with pytest.raises(ValueError, match="scale < 0"):
        tape.additive(LAPLACE, -1.0)


# --- plain --------------------------------------------------------------------------------------------------------------


def test_plain_noise_is_recorded() -> None:
    tape = Tape(1)

    def all_of_them(data: Any, noise: Any) -> Any:
        noise.laplace(2), noise.geometric(1), noise.geometric(scale=3), noise.gaussian(4), noise.uniform()
        return noise.choice([1, 2], 1)

    assert Plain().run(all_of_them, [], tape) in (0, 1)
    assert [(draw.kind, draw.scales) for draw in tape.draws] == [
        *(("laplace", (2.0,)), ("geometric", (1.0,)), ("geometric", (3.0,)), ("gaussian", (4.0,))),
        *((UNIFORM, ()), (CHOICE, ())),
    ]
    with pytest.raises(ValueError, match="either epsilon or scale"):
        Plain().run(lambda data, noise: noise.geometric(), [], tape)


# --- numpy --------------------------------------------------------------------------------------------------------------


def with_generator(data: Any, rng: np.random.Generator) -> Any:
    return clipped(data).sum() + rng.laplace(0, 10)


def with_generator_nan(data: Any, rng: np.random.Generator) -> Any:
    return np.clip(data, 0, 10).sum() + rng.laplace(0, 10)


def located(data: Any, rng: np.random.Generator) -> Any:
    return rng.laplace(loc=clipped(data).sum(), scale=10)


def by_itself(data: Any) -> Any:
    return np.array(data) + np.random.default_rng().laplace(0, 1, size=len(data))


def by_itself_too_little(data: Any) -> Any:
    return np.array(data) + np.random.laplace(0, 0.5, len(data))


def one_noise_for_all(data: Any) -> Any:
    return np.array(data) + np.random.normal(0, 10)


@pytest.mark.parametrize("function", [with_generator, located])
def test_numpy_code_that_is_handed_a_generator(function: Any) -> None:
    verdict = replay(function, 1, data="array", noise="rng", examples=60)
    assert (verdict.outcome, round(verdict.epsilon, 9)) == (NOT_FOUND, 1)


def test_its_twin_that_keeps_nan() -> None:
    verdict = replay(with_generator_nan, 1, data="array", noise="rng", examples=300)
    assert verdict.outcome == VIOLATES
    assert "nan" in verdict.event


def test_numpy_code_that_draws_by_itself() -> None:
    verdict = replay(by_itself, 1, data="counts", noise="numpy", examples=40)
    assert (verdict.outcome, round(verdict.epsilon, 9)) == (NOT_FOUND, 1)


def test_its_twins_with_too_little_noise() -> None:
    assert replay(by_itself_too_little, 1, data="counts", noise="numpy", examples=40).epsilon == pytest.approx(2)
    assert replay(one_noise_for_all, 1, 0.001, data="counts", noise="numpy", examples=40).evidence["kind"] == "shared noise"


def test_the_stand_in_passes_for_a_generator() -> None:
    tape = Tape(1)
    rng = Rng(tape)
    assert isinstance(rng, np.random.Generator)
    rng.integers(5), rng.permutation(4), rng.random(), rng.standard_normal(2), rng.exponential(), rng.uniform(2, 3)
    assert [draw.kind for draw in tape.draws] == [RAW, RAW, UNIFORM, GAUSSIAN, RAW, UNIFORM]


def test_numpy_is_itself_again_afterwards() -> None:
    before = {name: getattr(np.random, name) for name in dir(np.random)}
    tape = Tape(1)
    with numpy_random(tape):
        np.random.laplace(3, 2)
        np.random.rand(2)
        np.random.seed(1)
        np.random.RandomState(3).randint(4)
        np.random.default_rng(3).normal()
    assert {name: getattr(np.random, name) for name in dir(np.random)} == before
    assert [draw.kind for draw in tape.draws] == [LAPLACE, UNIFORM, RAW, GAUSSIAN]
    with pytest.raises(ZeroDivisionError):
        NumpyPatched().run(lambda data: 1 / 0, [], tape)
    assert np.random.laplace is before["laplace"]


def test_generators_made_earlier_are_noticed() -> None:
    kept = np.random.default_rng(1)
    verdict = replay(lambda data: len(data) + kept.laplace(), 1, noise="numpy", examples=5)
    assert "randomness that the adapter does not see" in verdict.open


def test_draws_of_unknown_law_are_no_reason_to_accuse() -> None:
    def truth_or_not(data: Any, rng: np.random.Generator) -> Any:
        return [value % 2 if rng.integers(1000) < 731 else 1 - value % 2 for value in data]

    def with_length(data: Any, rng: np.random.Generator) -> Any:
        return [len(data), int(rng.integers(1000))]

    assert replay(truth_or_not, 1, data="answers", noise="rng", examples=10).outcome == NOT_FOUND
    found = replay(with_length, 1, data="numbers", noise="rng", examples=10)
    assert found.outcome == VIOLATES
    assert found.confidence < 1


# --- libraries, if installed -----------------------------------------------------------------------------------------------


def opendp() -> Any:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    return dp


def opendp_sum(dp: Any, scale: float) -> Any:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance()
    steps = space >> dp.t.then_impute_constant(0.0) >> dp.t.then_clamp((0.0, 10.0)) >> dp.t.then_sum()
    return steps >> dp.m.then_laplace(scale)


def opendp_count(dp: Any) -> Any:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return space >> dp.t.then_count() >> dp.m.then_laplace(1.0)


def test_opendp_keeps_its_claim() -> None:
    measurement = opendp_sum(opendp(), 10.0)
    verdict = replay(measurement, measurement.map(1), noise="opendp", examples=40)
    assert verdict.outcome == NOT_FOUND
    assert verdict.epsilon == pytest.approx(1)


def test_opendp_with_half_the_noise_does_not() -> None:
    measurement = opendp_sum(opendp(), 5.0)
    verdict = replay(measurement, 1, noise="opendp", examples=40)
    assert verdict.outcome == VIOLATES
    assert verdict.epsilon == pytest.approx(2)


def test_two_releases_of_opendp_cost_two() -> None:
    dp = opendp()
    both = dp.c.make_composition([opendp_count(dp), opendp_count(dp)])
    assert replay(both, 2, data=SMALL, noise="opendp", examples=30).outcome == NOT_FOUND
    assert replay(both, 1, data=SMALL, noise="opendp", examples=30).epsilon == pytest.approx(2)


def test_code_around_opendp_is_audited_too() -> None:
    count = opendp_count(opendp())
    verdict = replay(lambda data: count(data) / max(1, len(data)), 1, data=SMALL, noise="opendp", examples=30)
    assert verdict.outcome == VIOLATES


def test_what_opendp_cannot_be_told_is_said() -> None:
    dp = opendp()
    response = dp.m.make_randomized_response_bool(0.75)
    tape = Tape(1)
    OpenDP().run(lambda data: response(True), [], tape)
    assert [draw.kind for draw in tape.draws] == [UNSEEN]
    verdict = replay(lambda data: response(len(data) > 1), 1.1, data=SMALL, noise="opendp", examples=5)
    assert verdict.open.startswith("draws that cannot be set")


def diffprivlib() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports warn; that is not what is tested
        return pytest.importorskip("diffprivlib", exc_type=ImportError)


def test_diffprivlib_keeps_its_claim() -> None:
    laplace = diffprivlib().mechanisms.Laplace

    def noisy_count(data: Any) -> Any:
        return laplace(epsilon=1, sensitivity=1).randomise(len(data))

    assert replay(noisy_count, 1, noise="diffprivlib", examples=30).epsilon == pytest.approx(1)
    assert replay(noisy_count, 0.5, noise="diffprivlib", examples=30).outcome == VIOLATES


def test_diffprivlibs_mean_with_bounds_and_without() -> None:
    tools = importlib.import_module("diffprivlib.tools") if diffprivlib() else None

    def mean(data: Any) -> Any:
        return tools.mean(np.nan_to_num(data), epsilon=1, bounds=(0, 10))  # type: ignore[union-attr]

    def mean_of_own_bounds(data: Any) -> Any:
        return tools.mean(np.clip(np.nan_to_num(data), -1e6, 1e6), epsilon=1)  # type: ignore[union-attr]

    how: dict[str, Any] = {"data": "array", "noise": "diffprivlib", "neighbours": REPLACE, "examples": 40}
    assert replay(mean, 1, **how).outcome == NOT_FOUND
    assert replay(mean_of_own_bounds, 1, **how).outcome == VIOLATES


def test_what_diffprivlib_cannot_be_told_is_said() -> None:
    tools = importlib.import_module("diffprivlib.tools") if diffprivlib() else None
    verdict = replay(
        lambda data: tools.median(data, epsilon=1, bounds=(0, 10)),  # type: ignore[union-attr]
        1,
        data="array",
        noise="diffprivlib",
        examples=5,
    )
    assert verdict.open == "draws that cannot be set: Exponential"


def test_adapters_have_names() -> None:
    assert set(NAMED) == {"plain", "rng", "numpy", "opendp", "diffprivlib"}
    assert all(adapter.name for adapter in NAMED.values())
    assert isinstance(NAMED["rng"], NumpyRng)
    assert isinstance(NAMED["diffprivlib"], Diffprivlib)
