"""Why a trade-off is necessary: enough answers with little noise give away everybody's secret.

    python examples/reconstruction.py [folder for the pictures]

n people have one secret bit each. An attacker asks how many of a random set of people have a 1, again and again, and gets
answers with noise of scale b. Each answer alone tells little. Together they are a system of linear equations, and least squares
or a linear programme solves it. With noise far below sqrt(n), about n questions recover nearly every bit (Dinur and Nissim,
PODS 2003). Noise of scale b costs ε = 1 / b for each question, so such answers cost far more than any sensible budget: dither
refuses long before the equations can be solved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, lsq_linear

import dither as dt
from dither.plots import share_picture

Bits = NDArray[np.int64]
Floats = NDArray[np.float64]
SEED = 7  # for the made-up people and the attacker's questions; dither's noise has no seed


@dataclass(frozen=True)
class Attack:
    """What an attacker got: how many questions were answered, at which price in all, and the share of bits recovered."""

    questions: int
    epsilon: float
    share: float

    def __str__(self) -> str:
        return f"{self.questions} answers, ε = {self.epsilon:g} in all: {100 * self.share:.0f} % of the bits recovered"


# %% [markdown]
# ## The attack

# %%


def least_squares(asked: Bits, answers: Floats) -> Bits:
    """Returns the bits that fit the answers best: numbers from 0 to 1 with the least squared error, rounded."""
    found = lsq_linear(asked.astype(float), answers, bounds=(0, 1), tol=1e-6).x
    return np.rint(found).astype(np.int64)


def linear_programme(asked: Bits, answers: Floats) -> Bits:
    """Returns the bits with the least sum of absolute errors: minimise the sum of t with |asked x - answers| <= t."""
    m, n = asked.shape
    cost = np.concatenate([np.zeros(n), np.ones(m)])
    rows = np.block([[asked, -np.eye(m)], [-asked, -np.eye(m)]])
    limits = np.concatenate([answers, -answers])
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=[(0, 1)] * n + [(0, None)] * m, method="highs").x[:n]
    return np.rint(found).astype(np.int64)


def share(secret: Bits, guessed: Bits) -> float:
    return float((secret == guessed).mean())


# %% [markdown]
# ## Random subset counts

# %%


def people(n: int, rng: np.random.Generator) -> Bits:
    return rng.integers(0, 2, n)


def subset_counts(secret: Bits, questions: int, scale: float, rng: np.random.Generator) -> tuple[Bits, Floats]:
    """Returns random sets of people, a row each, and how many of each set have a 1, with geometric noise of this scale."""
    asked = rng.integers(0, 2, (questions, len(secret)))
    noise = dt.Geometric.with_scale(scale, sensitivity=1)
    return asked, np.asarray(noise.release(asked @ secret), dtype=float)


def without_a_budget(n: int, questions: int, scale: float, solve: Callable[[Bits, Floats], Bits] = least_squares) -> Attack:
    """Attacks a curator who answers everything."""
    rng = np.random.default_rng(SEED)
    secret = people(n, rng)
    asked, answers = subset_counts(secret, questions, scale, rng)
    guessed = solve(asked, answers)
    return Attack(questions, questions / scale, share(secret, guessed))


def with_a_filter(n: int, questions: int, scale: float, budget: float = 1) -> Attack:
    """Attacks a curator who answers only what a filter admits."""
    rng = np.random.default_rng(SEED)
    secret, gate = people(n, rng), dt.PureFilter(budget)
    price = dt.Geometric.with_scale(scale, sensitivity=1).loss()
    admitted = sum(gate.try_spend(price) for _ in range(questions))
    if not admitted:
        return Attack(0, 0.0, max(secret.mean(), 1 - secret.mean()))
    asked, answers = subset_counts(secret, admitted, scale, rng)
    return Attack(admitted, admitted / scale, share(secret, least_squares(asked, answers)))


# %% [markdown]
# ## A census-like table

# %%


@dataclass(frozen=True)
class Census:
    """A block: age and sex are known to everybody, for instance from a voters' roll; the bit is secret."""

    age: Bits
    sex: NDArray[np.str_]
    secret: Bits

    def matching(self, low: int, high: int, sex: str) -> Bits:
        return ((self.age >= low) & (self.age <= high) & ((self.sex == sex) | (sex == "any"))).astype(np.int64)


def census(n: int, rng: np.random.Generator) -> Census:
    """Makes n people up, no two of whom have the same age and sex."""
    cells = rng.choice(200, n, replace=False)
    return Census(cells % 100, np.array(["f", "m"])[cells // 100], people(n, rng))


def tables(questions: int, rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """Returns questions as a statistical office would publish them: an age range, and a sex or both."""
    ends = np.sort(rng.integers(0, 100, (questions, 2)), axis=1)
    return [(int(a), int(b), str(rng.choice(["f", "m", "any"]))) for a, b in ends]


def census_without_a_budget(n: int, questions: int, scale: float) -> Attack:
    """Attacks published tables of counts with noise of this scale: who is in which table is public."""
    rng = np.random.default_rng(SEED)
    block = census(n, rng)
    asked = np.array([block.matching(*each) for each in tables(questions, rng)])
    noise = dt.Geometric.with_scale(scale, sensitivity=1)
    answers = np.asarray(noise.release(asked @ block.secret), dtype=float)
    return Attack(questions, questions / scale, share(block.secret, least_squares(asked, answers)))


def census_with_dither(n: int, questions: int, scale: float, budget: float = 1) -> Attack:
    """Asks dither for the same tables in SQL, until it refuses."""
    rng = np.random.default_rng(SEED)
    block = census(n, rng)
    columns = {"age": dt.between(0, 99), "sex": dt.values("f", "m"), "secret": dt.between(0, 1)}
    frame = {"id": np.arange(n), "age": block.age, "sex": block.sex, "secret": block.secret}
    table = dt.Table(frame, unit="id", key="id", columns=columns)
    survey = dt.open(dt.Catalog({"block": table}, dt.Budget(budget)), ledger=":memory:")
    asked, answers = [], []
    for low, high, sex in tables(questions, rng):
        which = "" if sex == "any" else f" AND sex = '{sex}'"
        question = f"SELECT COUNT(*) AS n FROM block WHERE secret = 1 AND age BETWEEN {low} AND {high}{which}"
        try:
            answer = survey.ask(question, epsilon=1 / scale)
        except dt.BudgetError:
            break
        asked.append(block.matching(low, high, sex))
        answers.append(float(answer["n"][0]))  # type: ignore[arg-type]
    survey.close()
    guessed = least_squares(np.array(asked), np.array(answers))
    return Attack(len(asked), len(asked) / scale, share(block.secret, guessed))


# %% [markdown]
# ## The picture

# %%


def picture(path: Path, n: int = 128, counts: tuple[int, ...] = (64, 128, 256, 512), repeats: int = 3) -> Path:
    """Draws the share of bits recovered against the scale of the noise, a line for each number of questions."""
    scales = [1 / 4, 1, 2, 4, 8, 16, 32]
    lines = {}
    for questions in counts:
        shares = [np.mean([without_a_budget(n, questions, b).share for _ in range(repeats)]) for b in scales]
        lines[f"{questions} questions"] = scales, [float(each) for each in shares]
    return share_picture(f"{n} secret bits, random subset counts", lines, "scale of the noise of one count", 0.5, path)


def main(folder: Path | None = None, n: int = 128) -> list[Attack]:
    found = [
        without_a_budget(n, 4 * n, 1),
        without_a_budget(n, 2 * n, 1, linear_programme),
        without_a_budget(n, 4 * n, n),
        with_a_filter(n, 4 * n, 8),
        census_without_a_budget(n, 12 * n, 1),
        census_with_dither(n, 4 * n, 8),
    ]
    names = (
        "subset counts, no budget, least squares",
        "subset counts, no budget, linear programme",
        "subset counts, noise as large as the table",
        "subset counts, a filter of ε = 1",
        "census tables, no budget",
        "census tables, asked in dither with ε = 1",
    )
    for name, attack in zip(names, found, strict=True):
        print(f"{name}: {attack}")
    if folder is not None:
        print(picture(folder / "reconstruction.png"))
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
