"""Cohort retention: how many users of an app come back, by the month in which they joined.

Retention is a count of people, so each person counts once in each cell, however often they open the app. A person is in at most
`max_groups` cells: one cohort, up to six months.
"""

# %%
import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

dice = np.random.default_rng(11)  # made-up users, not noise
USERS, MONTHS = 20_000, 6
joined = dice.integers(0, MONTHS, USERS)
stays = dice.beta(1.2, 2.5, USERS)  # the share of months in which a user comes back
pairs = [
    (user, int(joined[user]), month)
    for user in range(USERS)
    for month in range(joined[user], MONTHS)
    if month == joined[user] or dice.random() < stays[user]
]
user, cohort, month = (np.array(each) for each in zip(*pairs, strict=True))
opened = pa.table({"user": user, "cohort": cohort, "age": month - cohort})

# %% [markdown]
# `cohort` and `age` (months since joining) are public: they are numbers of the calendar. A user has one row for each month
# here; in an event log, `COUNT(DISTINCT user)` counts the same.

# %%
columns = {"cohort": dt.between(0, 5, kind="int"), "age": dt.between(0, 5, kind="int")}
events = dt.Table(opened, unit="user", max_rows=1, max_groups=6, columns=columns)
app = dt.open(dt.Catalog({"events": events}, dt.Budget(epsilon=1)), ledger=":memory:")
question = """SELECT cohort, age, COUNT(DISTINCT user) AS users FROM events
    WHERE cohort + age <= 5 GROUP BY cohort, age"""
print(app.quote(question, epsilon=1))

# %% [markdown]
# The quote has 36 groups: a condition on two columns narrows nothing, so months that are still to come are shown as about 0.

# %%
answer = app.ask(question, epsilon=1)
exact = {(c, a): n for c, a, n in duckdb.sql("SELECT cohort, age, COUNT(DISTINCT user) FROM opened GROUP BY ALL").fetchall()}
noisy = {(row[0], row[1]): row[2] for row in answer.rows}

# %% [markdown]
# Shares of the first month, private | exact, in percent. Division by a noisy number is free: it is computed from the answer.

# %%
print("joined  " + "".join(f"  month {age}  " for age in range(1, MONTHS)))
for start in range(MONTHS - 1):
    cells = []
    for age in range(1, MONTHS - start):
        private, true = 100 * noisy[start, age] / noisy[start, 0], 100 * exact[start, age] / exact[start, 0]
        cells.append(f"{private:5.1f}|{true:4.1f} ")
    print(f"{start:6}  " + " ".join(cells))
worst = max(abs(noisy[key] - exact.get(key, 0)) for key in noisy)
print(f"largest error of a count: {worst}; the margin says ± {answer.margins()['users'][0]:.0f}, for 95 % of them")

# %%
# Users of each cohort by months since they joined
figure = answer.plot("cohort_retention.png")
app.close()
