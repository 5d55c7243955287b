"""Strategies that took long to find are kept in the user's cache folder, by what they are for.

A strategy is public: it depends on the questions and not on data, and its price is computed from its coefficients each time.
So a file that is missing, damaged or changed by others can cost time or accuracy, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dither.workloads.factors import Floats

VERSION = "1"  # of the optimisers
WORTH = 128  # cells, from which a strategy is kept
MOST = 4.0  # of a coefficient: those of a strategy are at most 1


def folder() -> Path:
    """Returns where strategies are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dither" / "strategies"


def kept(gram: Floats, kind: str, find: Callable[[], tuple[Floats, float]]) -> tuple[Floats, float]:
    """Returns what `find` returns: a matrix with as many columns as `gram`, and a number. Finds it once."""
    if len(gram) < WORTH:
        return find()
    name = hashlib.sha256(f"{VERSION} {kind} {len(gram)} ".encode() + np.ascontiguousarray(gram).tobytes()).hexdigest()
    try:
        path = folder() / f"{name}.npz"
        found = _read(path, len(gram))
    except (OSError, RuntimeError):  # no home, or no folder that can be read
        return find()
    if found is None:
        found = find()
        _write(path, *found)
    return found


def _read(path: Path, cells: int) -> tuple[Floats, float] | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            matrix, number = np.asarray(stored["matrix"], dtype=float), float(stored["number"])
    except (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile):
        return None
    fits = matrix.ndim == 2 and matrix.shape[1] == cells and bool((np.abs(matrix) <= MOST).all()) and number >= 0
    return (matrix, number) if fits else None


def _write(path: Path, matrix: Floats, number: float) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
            np.savez(file, matrix=matrix, number=np.float64(number))
        Path(file.name).replace(path)
    except OSError:
        return  # a full disk, or a folder that others own: the strategy is found again next time
