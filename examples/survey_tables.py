"""Survey tables: a statistics office publishes counts, means and medians of a survey.

The survey is made up (`dither demo --survey` writes it), so the exact numbers can stand beside the private ones. Everything
is asked as one list at one price: ε = 1 for three tables.
"""

# %%
import tempfile
from datetime import date
from pathlib import Path

import duckdb

import dither as dt
from dither.datasets import REGIONS, health_survey

folder = health_survey(Path(tempfile.mkdtemp()))
income = dt.between(0, 150_000, kind="int", na=["n/a"])
people = dt.Table(
    str(folder / "people.csv"),
    unit="person_id",
    key="person_id",
    columns={
        "region": dt.values(*REGIONS),
        "age": dt.between(0, 110, kind="int"),
        "income": income,
        "smoker": dt.values("yes", "no"),
    },
)
visits = dt.Table(
    str(folder / "visits.csv"),
    unit={"column": "person_id", "references": "people.person_id"},
    max_rows=3,
    max_groups=3,
    columns={"day": dt.between(date(2025, 1, 1), date(2025, 12, 31), format="%d.%m.%Y"), "reason": dt.column()},
)
survey = dt.open(dt.Catalog({"people": people, "visits": visits}, dt.Budget(epsilon=1)), ledger=":memory:")

# %% [markdown]
# One list of questions has one price and one entry in the ledger. Counts need less than means, so the second question gets
# more.

# %%
questions = [
    "SELECT region, smoker, COUNT(*) AS people FROM people GROUP BY region, smoker",
    "SELECT region, COUNT(*) AS people, AVG(income) AS income FROM people GROUP BY region",
    "SELECT FLOOR(age / 20) * 20 AS age, COUNT(*) AS people FROM people GROUP BY 1",
]
smokers, incomes, ages = survey.ask(questions, epsilon=1, weights=[1, 3, 1])
print(incomes)

# %% [markdown]
# The same in plain SQL on the same file. Incomes are clipped at 150,000, so the private mean estimates `clipped`, and
# differs from `exact` by what the bound cuts off.

# %%
db = duckdb.connect()
db.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{folder / 'people.csv'}', all_varchar=true)")
exact = db.execute("""SELECT region, COUNT(*), AVG(TRY_CAST(income AS DOUBLE)),
    AVG(CASE WHEN TRY_CAST(income AS DOUBLE) > 150000 THEN 150000 ELSE TRY_CAST(income AS DOUBLE) END)
    FROM people GROUP BY region""").fetchall()
truth = {region: numbers for region, *numbers in exact}
print(f"{'region':8}{'people':>8}{'exact':>8}{'income':>10}{'clipped':>10}{'exact':>10}")
for region, count, mean in incomes.rows:
    n, true, clipped = truth[region]
    print(f"{region:8}{count:8}{n:8}{mean:10.0f}{clipped:10.0f}{true:10.0f}")

# %% [markdown]
# `consistent()` makes the counts whole, not negative and adding up, for nothing. The picture has error bars.

# %%
# Smokers and others by region, with error bars
table = smokers.consistent()
print(table.to_markdown())
figure = table.plot("survey_tables.png")

# %%
print(ages)
print(survey.budget)
survey.close()
