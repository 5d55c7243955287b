"""Shows defects of other libraries that docs/deciders/comparison.md names, each in an environment of its own.

    python benchmarks/defects.py [--environments FOLDER] [names ...]

Prints what the library claims and what was measured, with its version. What cannot be installed or run here is reported as not
run. A defect that is mended in the installed version shows as two numbers that agree.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from migrate import environment


@dataclass(frozen=True)
class Defect:
    """A program that prints a claim beside what it measures."""

    about: str
    package: str
    needed: str
    program: str


THRESHOLD = """
import opendp.prelude as dp
dp.enable_features("contrib")
users = [f"user{i}" for i in range(200_000)]
counted = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
release = counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
print(f"delta claimed {release.map(1)[1]:.5f}, keys of one person shown {len(release(users)) / len(users):.5f}")
"""
FLOATS = """
import math
from diffprivlib.mechanisms import Gaussian, Laplace
for mechanism in (Laplace(epsilon=1, delta=0, sensitivity=1), Gaussian(epsilon=1, delta=1e-6, sensitivity=1)):
    shares = []
    for exact in (0.0, 1.0):
        outputs = [mechanism.randomise(exact) for _ in range(20_000)]
        shares.append(sum(math.ldexp(each, 53) % 1 == 0 for each in outputs) / len(outputs))
    print(f"{type(mechanism).__name__}: share of outputs on the grid of 2^-53: {shares[0]:.3f} for 0, {shares[1]:.3f} for 1")
"""
LIMIT = """
import pandas, sqlalchemy
from pyqrlew.io.dataset import dataset_from_database
engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
pandas.DataFrame({"id": [1, 2, 3], "x": [10, 20, 30]}).to_sql("people", engine, index=False)
data = dataset_from_database("survey", engine, None)
question = data.relation("SELECT SUM(x) AS s FROM (SELECT id, x FROM people ORDER BY id LIMIT 10) AS t")
unit, price = [("people", [], "id")], {"epsilon": 1.0, "delta": 1e-5}
query = question.rewrite_with_differential_privacy(dataset=data, privacy_unit=unit, epsilon_delta=price).relation().to_query()
print("LIMIT 10 stands before the first step per person:", query.index("LIMIT 10") < query.index("GROUP BY"))
print("noise by the database's RANDOM():", "RANDOM()" in query)
"""
RESPONSES = """
import dp_accounting
from dp_accounting.pld import PLDAccountant
one = dp_accounting.RandomizedResponseDpEvent(0.9, 10)
prices = []
for count in (1, 100):
    accountant = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.SelfComposedDpEvent(one, count))
    prices.append(accountant.get_epsilon(1e-6))
print(f"epsilon of one response {prices[0]:.4f}, of a hundred composed {prices[1]:.4f}")
"""
DEFECTS = (
    Defect("a threshold whose delta leaves out the threshold itself", "opendp[polars]", "opendp[polars]==0.16.*", THRESHOLD),
    Defect("noise in floats", "diffprivlib", "diffprivlib==0.6.* and scikit-learn<1.6", FLOATS),
    Defect("LIMIT below the bounds of a person", "pyqrlew", "pyqrlew==0.9.*", LIMIT),
    Defect("a count of repetitions that is dropped", "dp-accounting", "dp-accounting==0.6.*", RESPONSES),
)
VERSION = "from importlib.metadata import version; print(version({!r}))"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--environments", type=Path, default=Path("build/peers"))
    options = parser.parse_args()
    failed = 0
    for each in DEFECTS:
        if options.names and not any(name in each.package for name in options.names):
            continue
        try:
            python = environment(each.package, each.needed, options.environments.resolve())
            found = run(python, VERSION.format(each.package.partition("[")[0])).strip()
            print(f"== {each.package.partition('[')[0]} {found}: {each.about}\n{run(python, each.program)}", flush=True)
        except (subprocess.SubprocessError, OSError) as error:
            failed += 1
            print(f"== {each.package}: not run: {error}\n{(getattr(error, 'stderr', '') or '')[-800:]}", flush=True)
    return 1 if failed else 0


def run(python: Path, program: str) -> str:
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
