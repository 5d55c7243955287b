"""A local survey: ask people who trust nobody with their answers, the office included.

Each device randomises its answer before sending it. The office sees only noisy reports, and still estimates the shares.
This costs accuracy: compare with a trusted curator at the same ε.
"""

# %%
import numpy as np

import dither as dt

dice = np.random.default_rng(4)  # made-up people, not noise
WAYS, TRUE = ["car", "bus", "bike", "none"], [0.45, 0.3, 0.15, 0.1]
people = dice.choice(WAYS, 20_000, p=TRUE)
survey = dt.LocalSurvey.choice("commute", WAYS, epsilon=1)

# %% [markdown]
# On each device there is one client, for one person. Its report is a few bytes, and is stored: whoever asks the same person
# again gets the same report, so that asking often tells no more.

# %%
description = dt.LocalSurvey.from_json(survey.to_json())  # shipped with the app
cyclist = dt.LocalClient(description)
print("the same person, asked twice:", cyclist.report("bike") == cyclist.report("bike"))
print("four people who ride a bike: ", [dt.LocalClient(description).report("bike").hex() for _ in range(4)])
reports = [dt.LocalClient(description).report(way) for way in people]

# %% [markdown]
# At the office: reports that are none are refused, and the shares are estimated with margins.

# %%
desk = dt.Aggregator(survey)
desk.add([*reports, b"junk"])
print(f"refused: {desk.refused}")
estimate = desk.estimate()
print(estimate)

# %% [markdown]
# A trusted curator would add noise once instead of 20,000 times:

# %%
table = dt.Table(
    {"person": np.arange(len(people)), "way": people}, unit="person", key="person", columns={"way": dt.values(*WAYS)}
)
with dt.open(dt.Catalog({"people": table}, dt.Budget(1)), ledger=":memory:") as central:
    answer = central.ask("SELECT way, COUNT(*) AS n FROM people GROUP BY way", epsilon=1)
exact = {way: int((people == way).sum()) for way in WAYS}
for way, n in answer.rows:
    print(f"{way:5} curator {n / len(people):.4f}, exact {exact[way] / len(people):.4f}")
