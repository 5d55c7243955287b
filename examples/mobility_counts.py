"""Mobility counts: trips between districts, and trips by hour, without following anybody.

Where somebody goes every morning is as good as a name. The unit is the person, not the trip: all trips of a person are
hidden together.
"""

# %%
from datetime import datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

dice = np.random.default_rng(3)  # made-up people, not noise
PEOPLE, DAYS = 15_000, 7
DISTRICTS = ["centre", "harbour", "hills", "park"]
home, work = dice.choice(4, PEOPLE, p=[0.2, 0.3, 0.3, 0.2]), dice.choice(4, PEOPLE, p=[0.5, 0.3, 0.05, 0.15])
start, rows = datetime(2026, 3, 2), []
for person in range(PEOPLE):
    for day in np.flatnonzero(dice.random(DAYS) < np.where(np.arange(DAYS) < 5, 0.5, 0.1)):
        for hour, a, b in ((8, home, work), (17, work, home)):
            when = start + timedelta(days=int(day), hours=float(np.clip(dice.normal(hour, 1.2), 0, 23.9)))
            rows.append((person, DISTRICTS[a[person]], DISTRICTS[b[person]], when.replace(microsecond=0)))
person, origin, target, when = zip(*rows, strict=True)
trips = pa.table({"person": person, "origin": origin, "target": target, "started": pa.array(when, pa.timestamp("us"))})

# %%
columns = {
    "origin": dt.values(*DISTRICTS),
    "target": dt.values(*DISTRICTS),
    "started": dt.between(datetime(2026, 3, 2).date(), datetime(2026, 3, 8).date(), kind="timestamp"),
}
table = dt.Table(trips, unit="person", max_rows=10, max_groups=2, columns=columns)
city = dt.open(dt.Catalog({"trips": table}, dt.Budget(epsilon=3)), ledger=":memory:")

# %% [markdown]
# ## From where to where
# Most people go to work and back: two pairs of districts, at most five times a week each. So `max_rows = 5`?

# %%
pairs = "SELECT origin, target, COUNT(*) AS trips FROM trips GROUP BY origin, target"
narrow = city.ask(pairs, epsilon=1, max_rows=5, max_groups=2)
print(narrow.footer())

# %% [markdown]
# The first line says that trips are missing. Who works in the district they live in makes ten trips of one pair: those
# counts are too low, whatever the margin says. With 10 the noise is twice as large, and nobody is cut.

# %%
flows = city.ask(pairs, epsilon=1, max_rows=10, max_groups=2)
exact = {(a, b): n for a, b, n in duckdb.sql(pairs).fetchall()}
print(f"{'':20}{'5 rows':>8}{'10 rows':>9}{'exact':>8}")
for (a, b, few), (_, _, n) in zip(narrow.rows, flows.rows, strict=True):
    print(f"{a:8} → {b:8} {few:8} {n:8} {exact.get((a, b), 0):8}")

# %%
# Trips from each district, by target
figure = flows.plot("mobility_flows.png")

# %% [markdown]
# ## By day and hour
# 168 hours, and a person in up to 14 of them. People in each hour are counted, not trips, so `max_rows` does not matter.

# %%
hours = """SELECT DATE_TRUNC('day', started) AS day, HOUR(started) AS hour, COUNT(DISTINCT person) AS people
    FROM trips GROUP BY day, hour"""
clock = city.ask(hours, epsilon=1, max_groups=8)
true = {(day, hour): n for day, hour, n in duckdb.sql(hours.replace("started) AS day", "started)::DATE AS day")).fetchall()}
errors = [abs(n - true.get((day, hour), 0)) for day, hour, n in clock.rows]
print(f"{len(clock)} hours; mean error {np.mean(errors):.0f} of up to {max(true.values())} people")

# %%
# People on their way, by hour, a panel for each day
figure = clock.plot("mobility_hours.png")
city.close()
