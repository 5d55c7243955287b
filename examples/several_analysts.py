"""Several analysts, one budget: quotas, limits for one question, and answers that two people share.

The budget protects people, so it is one number for everybody. A quota divides it fairly among analysts; a limit for one
question keeps a typing mistake from spending it all.
"""

# %%
import numpy as np

import dither as dt

ids = np.arange(5_000)
people = {"person": ids, "region": np.array(["north", "south", "east"])[ids % 3], "age": 18 + ids % 70}
columns = {"region": dt.values("north", "south", "east"), "age": dt.between(0, 120, kind="int")}
table = dt.Table(people, unit="person", key="person", columns=columns)
budget = dt.Budget(epsilon=1, per_analyst="0.5", per_query="0.3", analysts=["ana", "ben", "eve"])
survey = dt.open(dt.Catalog({"people": table}, budget), ledger=":memory:")
print(survey.budget)

# %% [markdown]
# ## A limit for one question

# %%
count = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
try:
    survey.ask(count, epsilon=3, analyst="ana")  # 0.3 was meant
except dt.DitherError as error:
    print(error)

# %% [markdown]
# ## Two analysts ask the same
# Ana pays. Ben gets the same noisy numbers: the ledger is charged once, because nothing new is learned. In Ben's quota it
# counts, so that nobody lives off the others.

# %%
first = survey.ask(count, epsilon="0.3", analyst="ana")
second = survey.ask(count, epsilon="0.3", analyst="ben")
print(first)
print(f"the same numbers: {first.rows == second.rows}; stored: {second.replayed}")
for who in ("ana", "ben", "eve"):
    print(f"{who}: {survey.quota(who)}")
print(f"all: {survey.budget}")

# %% [markdown]
# ## A quota ends
# Ana has 0.2 left. Her question is refused, and nothing is charged.

# %%
survey.ask("SELECT AVG(age) AS age FROM people", epsilon="0.15", analyst="ana")
try:
    survey.ask("SELECT MEDIAN(age) AS age FROM people", epsilon="0.1", analyst="ana")
except dt.BudgetError as error:
    print(error)

# %% [markdown]
# ## Nobody else gets in

# %%
try:
    survey.ask(count, epsilon="0.1", analyst="mallory")
except dt.DitherError as error:
    print(error)
print(survey.budget)
survey.close()
