"""The adapters on the real OpenDP and diffprivlib, by the documented route `dither audit module:function`.

Runs where a package is installed, and is skipped with the reason elsewhere. Neither is a dependency: give each an environment
of its own (`pip install opendp`; `pip install diffprivlib "scikit-learn<1.8"`). docs/audit-your-code.md names the versions.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dither.audit.replay.pairs import Column, Records
from dither.audit.replay.replay import replay
from dither.audit.verdict import NOT_FOUND, VIOLATES
from dither.cli import app

SMALL = Records("small whole numbers", {"": Column(lambda dice: dice.randint(0, 5), (5,), (0, 1))}, list)

OPENDP = '''
import opendp.prelude as dp

dp.enable_features("contrib")
DOMAIN = dp.vector_domain(dp.atom_domain(T=int))
SPACE = DOMAIN, dp.symmetric_distance()
COUNT = SPACE >> dp.t.then_count() >> dp.m.then_laplace(1.0)
SUM = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum() >> dp.m.then_laplace(10.0)
HALF = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum() >> dp.m.then_laplace(5.0)


def whole(values):
    """OpenDP's int has 32 bits, and it refuses a list with a larger number."""
    return [min(max(value, -(2**31)), 2**31 - 1) for value in values]


def opened(values):
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    return dp.Context.compositor(data=values, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, domain=DOMAIN)


def count(values: list[int]): return COUNT(whole(values))
def total(values: list[int]): return SUM(whole(values))
def context(values: list[int]): return opened(whole(values)).query().count().laplace().release()
def bare(values: list[int]): return COUNT(values)
def twice(values: list[int]): return [COUNT(whole(values)), COUNT(whole(values))]
def half(values: list[int]): return HALF(whole(values))
def mean(values: list[int]): return SUM(whole(values)) / max(1, len(values))
def context_twice(values: list[int]): return [context(values), context(values)]
def context_rows(values: list[int]): return opened(whole(values * 2)).query().count().laplace().release()
'''

DIFFPRIVLIB = """
import numpy as np
from diffprivlib import mechanisms, tools


def clean(values):
    numbers = np.asarray([0.0 if value is None else value for value in values], dtype=float)
    return np.nan_to_num(numbers, nan=0.0, posinf=120.0, neginf=0.0)


def geometric(count: int): return mechanisms.Geometric(epsilon=1).randomise(int(count))
def histogram(values: list[float]): return tools.histogram(clean(values), epsilon=1, bins=3, range=(0, 12))[0]
def mean_age(values: list[float]): return tools.mean(values, epsilon=1, bounds=(0, 120))
def low_bits(count: int): return mechanisms.Laplace(epsilon=1, sensitivity=1).randomise(int(count))
def half(count: int): return mechanisms.Geometric(epsilon=2).randomise(int(count))
def own_range(values: list[float]): return tools.histogram(np.clip(clean(values), 0, 1e6), epsilon=1, bins=3)[0]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "with_opendp.py").write_text(OPENDP, encoding="utf-8")
    (tmp_path / "with_diffprivlib.py").write_text(DIFFPRIVLIB, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("with_opendp", "with_diffprivlib"):
        sys.modules.pop(name, None)


def audit(target: str, *more: str, seconds: str = "6") -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages' own warnings are not what is tested
        return CliRunner().invoke(app, ["audit", target, "--epsilon", "1", "--time-limit", seconds, *more])


@pytest.mark.parametrize("name", ["count", "total"])
def test_correct_measurements_of_opendp_pass(name: str) -> None:
    pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    result = audit(f"with_opendp:{name}")
    assert result.exit_code == 0, result.output
    assert "largest loss 1 on" in result.output


def test_a_context_of_opendp_is_followed_query_by_query() -> None:
    pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    module = importlib.import_module("with_opendp")
    kept = replay(module.context, 1, data=SMALL, noise="opendp", examples=1, seconds=120)
    assert (kept.outcome, round(kept.epsilon, 6), kept.open) == (NOT_FOUND, 1, "")
    for broken in (module.context_twice, module.context_rows):
        found = replay(broken, 1, data=SMALL, noise="opendp", examples=1, seconds=120)
        assert (found.outcome, round(found.epsilon, 6)) == (VIOLATES, 2)


@pytest.mark.parametrize("name", ["bare", "twice", "half", "mean"])
def test_broken_uses_of_opendp_are_found(name: str) -> None:
    pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    assert audit(f"with_opendp:{name}").exit_code == 1


@pytest.mark.parametrize("name", ["geometric", "histogram"])
def test_correct_mechanisms_of_diffprivlib_pass(name: str) -> None:
    _need_diffprivlib()
    result = audit(f"with_diffprivlib:{name}")
    assert result.exit_code == 0, result.output
    assert "largest loss 1 on" in result.output


@pytest.mark.parametrize("name", ["mean_age", "low_bits", "half", "own_range"])
def test_broken_uses_of_diffprivlib_are_found(name: str) -> None:
    _need_diffprivlib()
    assert audit(f"with_diffprivlib:{name}").exit_code == 1


def _need_diffprivlib() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(
            "diffprivlib",
            reason='diffprivlib is not installed, or not importable (0.6.6 needs "scikit-learn<1.8")',
            exc_type=ImportError,
        )
