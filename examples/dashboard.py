"""A dashboard in one file: private answers with charts, for everybody, without a server.

Answers are public once they are released, so a page of them can be mailed or put on any web server. All panels are asked as one
list at one price. The page has no script and loads nothing from elsewhere.
"""

# %%
import tempfile
from datetime import date
from html import escape
from pathlib import Path

import dither as dt
from dither.datasets import REASONS, REGIONS, health_survey

folder = health_survey(Path(tempfile.mkdtemp()))
income = dt.between(0, 150_000, kind="int", na=["n/a"])
people = {"region": dt.values(*REGIONS), "age": dt.between(0, 110, kind="int"), "income": income}
visits = {
    "day": dt.between(date(2025, 1, 1), date(2025, 12, 31), format="%d.%m.%Y"),
    "reason": dt.values(*REASONS),
    "cost": dt.between(0, 500, step="0.01", na=["n/a"]),
}
tables = {
    "people": dt.Table(str(folder / "people.csv"), unit="person_id", key="person_id", columns=people),
    "visits": dt.Table(
        str(folder / "visits.csv"),
        unit={"column": "person_id", "references": "people.person_id"},
        max_rows=2,
        max_groups=4,
        columns=visits,
    ),
}
survey = dt.open(dt.Catalog(tables, dt.Budget(epsilon=3)), ledger=":memory:")

# %% [markdown]
# Four panels, ε = 3 in all. The quote says what each panel will be worth before anything is spent.

# %%
panels = {
    "People and income by region": "SELECT region, COUNT(*) AS people, AVG(income) AS income FROM people GROUP BY region",
    "People by age": "SELECT FLOOR(age / 10) * 10 AS age, COUNT(*) AS people FROM people GROUP BY 1",
    "Visits by month": "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS visits FROM visits GROUP BY month",
    "Visits and cost by reason": "SELECT reason, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY reason",
}
for title, quote in zip(panels, survey.quote(list(panels.values()), epsilon=3), strict=True):
    print(f"{title}: ± {', ± '.join(f'{each:.3g}' for each in quote.margins().values() if each is not None)}")

# %%
answers = survey.ask(list(panels.values()), epsilon=3)
parts = [
    f"<section><h2>{escape(title)}</h2>{answer.to_html()}</section>" for title, answer in zip(panels, answers, strict=True)
]
page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Health survey 2025</title>
<style>body {{ font: 16px sans-serif; max-width: 60em; margin: auto }} img {{ max-width: 100% }} td {{ padding: 0 1em }}</style>
<h1>Health survey 2025</h1><p>Made-up data. Every number is noisy; ± is its margin.</p>{"".join(parts)}</html>"""
Path("dashboard.html").write_text(page, encoding="utf-8")
print(f"dashboard.html: {len(page) / 1000:.0f} kB, {page.count('<img')} charts; {survey.budget}")

# %%
# Visits by month, as in the page
figure = answers[2].plot("dashboard.png")
survey.close()
