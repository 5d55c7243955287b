"""Running counts: publish a total after every day of a year, at one price.

Noise added to every day's number adds up in the total, and a total asked anew every day costs a price every day. A stream
pays once, with noise that is correlated over time.
"""

# %%
import datetime
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

dice = np.random.default_rng(8)  # made-up visits, not noise
FIRST = datetime.date(2026, 1, 1)
per_day = dice.poisson(40 + 25 * np.cos(np.arange(365) * 2 * np.pi / 365))
when = np.repeat(np.arange(365), per_day)
visits = pa.table({"person": dice.integers(0, 9000, len(when)), "day": [FIRST + datetime.timedelta(int(d)) for d in when]})


def declared(days: int) -> dt.Catalog:
    """The table as it is after so many days: it grows."""
    table = dt.Table(
        visits.slice(0, int(per_day[:days].sum())),
        unit="person",
        max_rows=1,
        max_groups=4,  # days of one person that count
        columns={"day": dt.between(FIRST, datetime.date(2026, 12, 31))},
    )
    return dt.Catalog({"visits": table}, dt.Budget(epsilon=1), snapshot=f"day {days}")


# %% [markdown]
# The price is charged when the stream opens: ε = 1 for the whole year. Later days are free, also in later processes.

# %%
ledger = Path(tempfile.mkdtemp()) / "visits.ledger"
terms = {"by": "day", "horizon": 365, "epsilon": 1}
for days in (90, 180, 365):  # three sessions over the year
    with dt.open(declared(days), ledger=str(ledger), make=not ledger.exists()) as clinic:
        stream = clinic.stream("SELECT COUNT(*) FROM visits", **terms)
        part = stream.advance(until=str(FIRST + datetime.timedelta(days - 1)))
        print(f"day {days}: {len(part)} sums; {clinic.budget}")
        released = stream.released()

# %% [markdown]
# A person counts once a day, on their first four days. Plain SQL says what that leaves out: a stream says so, too, in its
# quote.

# %%
days_of = """SELECT person, day, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS k
    FROM (SELECT DISTINCT person, day FROM visits)"""
within = duckdb.sql(f"SELECT day, COUNT(*) FROM ({days_of}) WHERE k <= 4 GROUP BY day ORDER BY day").fetchall()
bounded = np.cumsum([dict(within).get(FIRST + datetime.timedelta(d), 0) for d in range(365)])
exact = np.cumsum(per_day)
for day in (30, 90, 180, 365):
    _, total, margin = released.rows[day - 1]
    print(
        f"day {day:3}: {total:6} ± {margin:.0f}   exact within the bounds {bounded[day - 1]:6}   all visits {exact[day - 1]:6}"
    )
naive = dt.Geometric(epsilon="1/365", sensitivity=4).margin(0.95)
print(f"asked anew every day within the same ε, each total would have ± {naive}")

# %%
# The released sums of a year, with the band of their margins
with dt.open(declared(365), ledger=str(ledger)) as clinic:
    picture = clinic.stream("SELECT COUNT(*) FROM visits", **terms).plot("running_counts.png")
