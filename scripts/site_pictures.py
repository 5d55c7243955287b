"""Draws the pictures of answers, of the console and of docs/explanation. They are committed.

    python scripts/site_pictures.py [two_worlds beliefs bias composition floats first_answer smokers console]

All numbers are computed by dither or by plain arithmetic; nothing is drawn by hand. `console` needs playwright and Chromium.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import dither as dt
from dither.charts.chart import chart_of
from dither.charts.figure import draw_figure
from dither.datasets import health_survey

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
BLUE, ORANGE, GREY = "#3f51b5", "#e65100", "#616161"


def save(figure: plt.Figure, name: str) -> None:
    figure.tight_layout()
    figure.savefig(FOLDER / f"{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


def two_worlds() -> None:
    """The law of a count with and without one person, and the ratio of the two."""
    noise = dt.Geometric(epsilon=1, sensitivity=1)
    answers = np.arange(120, 139)
    with_you, without = ([float(noise.law(exact).probability(int(each))) for each in answers] for exact in (129, 128))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.bar(answers - 0.2, without, 0.4, color=GREY, label="without you: exact 128")
    left.bar(answers + 0.2, with_you, 0.4, color=BLUE, label="with you: exact 129")
    left.set(xlabel="published number", ylabel="probability")
    left.legend(fontsize=7)
    right.step(answers, np.array(with_you) / np.array(without), where="mid", color=BLUE)
    for limit in (math.e, 1 / math.e):
        right.axhline(limit, color=ORANGE, linestyle="--")
    right.set(xlabel="published number", ylabel="with you ÷ without you", yscale="log", ylim=(0.25, 4))
    right.set_yticks([1 / math.e, 1, math.e], ["e⁻¹", "1", "e"])
    right.minorticks_off()
    save(figure, "two-worlds")


def beliefs() -> None:
    """What an attacker believed before and can believe afterwards."""
    prior = np.linspace(0.001, 0.999, 300)
    figure, axes = plt.subplots(figsize=(4.6, 3.6))
    for epsilon, colour in ((0.1, "#9fa8da"), (1, BLUE), (3, ORANGE)):
        high = prior * math.exp(epsilon) / (prior * math.exp(epsilon) + 1 - prior)
        low = prior / (prior + (1 - prior) * math.exp(epsilon))
        axes.fill_between(prior, low, high, color=colour, alpha=0.35, label=f"ε = {epsilon}")
    axes.plot(prior, prior, color=GREY, linewidth=1)
    axes.set(xlabel="belief before", ylabel="belief after all answers")
    axes.legend(fontsize=8, loc="upper left")
    save(figure, "beliefs")


def bias() -> None:
    """What max_rows leaves out against the noise that it needs, for visits of 10,000 people of whom few have many."""
    visits = np.minimum(np.round(np.random.default_rng(1).pareto(1.3, 10_000) + 1).astype(int), 500)
    limits = np.unique(np.round(np.logspace(0, 2.7, 60)).astype(int))
    lost = np.array([(visits - np.minimum(visits, limit)).sum() for limit in limits])
    noise = np.array([dt.Geometric(epsilon="1/10", sensitivity=int(limit)).margin("0.95") for limit in limits])
    figure, axes = plt.subplots(figsize=(5.4, 3.4))
    axes.plot(limits, lost, color=ORANGE, label="rows left out (bias)")
    axes.plot(limits, noise, color=BLUE, label="margin of the noise (ε = 0.1)")
    axes.plot(limits, lost + noise, color=GREY, linestyle="--", label="together")
    axes.set(xscale="log", yscale="log", ylim=(20, None), xlabel="max_rows", ylabel=f"rows, of {visits.sum():,}")
    axes.legend(fontsize=8)
    save(figure, "bias-noise")


def composition() -> None:
    """The ε of many Gaussian answers: added up one by one, and by ρ."""
    one = dt.Gaussian(epsilon="0.1", delta="1e-8", sensitivity=1)
    rho = 1 / (2 * float(one.noise_scale) ** 2)
    asked = np.arange(1, 401)
    by_rho = asked * rho + 2 * np.sqrt(asked * rho * math.log(1e6))
    figure, axes = plt.subplots(figsize=(5.4, 3.4))
    axes.plot(asked, asked * 0.1, color=ORANGE, label="sum of ε")
    axes.plot(asked, by_rho, color=BLUE, label="sum of ρ, at δ = 10⁻⁶")
    axes.set(xlabel="answers of ε = 0.1 each", ylabel="ε in all", ylim=(0, 12))
    axes.legend(fontsize=8)
    save(figure, "composition")


def floats() -> None:
    """Outputs of float Laplace noise that are possible for one exact answer and not for its neighbour."""
    generator = np.random.default_rng(3)
    draws = generator.laplace(size=400_000)
    share = [float(np.mean((exact + draws) * 2.0**53 % 1 == 0)) for exact in (0.0, 1.0)]
    figure, axes = plt.subplots(figsize=(4.6, 3))
    axes.bar(["exact answer 0", "exact answer 1"], share, color=[GREY, BLUE])
    axes.set(ylabel="share of outputs on the 2⁻⁵³ grid", ylim=(0, 1.05))
    save(figure, "float-noise")


def first_answer() -> None:
    """The answer that README.md prints, with the numbers printed there."""
    ids = np.arange(1000)
    people = {"person_id": ids, "age": 18 + ids % 8 * 9, "region": np.array(["north", "north", "south", "east"])[ids % 4]}
    columns = {"age": dt.between(0, 120), "region": dt.values("north", "south", "east")}
    table = dt.Table(people, unit="person_id", key="person_id", columns=columns)
    with dt.open(dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=1)), ledger=":memory:") as survey:
        question = "SELECT region, COUNT(*) AS people, AVG(age) AS age FROM people GROUP BY region"
        answer = survey.ask(question, epsilon="0.5")
    text = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    printed = re.findall(r"^(\w+) +(\d+) ± (\d+) +([\d.]+) ± ([\d.]+)$", text, re.M)
    margins = {"people": [float(row[2]) for row in printed], "age": [float(row[4]) for row in printed]}
    rows = [[region, int(people), float(age)] for region, people, _, age, _ in printed]
    fields = answer.as_data() | {"rows": rows, "margins": margins, "notes": answer.notes(), "cells": [r[:1] * 3 for r in rows]}
    draw_figure(chart_of(fields), FOLDER / "first-answer.png")


def smokers() -> None:
    """The table with two keys of the tutorial's seventh page."""
    page = (FOLDER.parent / "tutorial" / "2-declare.md").read_text(encoding="utf-8")
    catalog = next(block for block in re.findall(r"```toml\n(.*?)```", page, re.S) if "[tables.regions]" in block)
    with tempfile.TemporaryDirectory() as folder:
        health_survey(folder)
        (Path(folder) / "catalog.toml").write_text(catalog, encoding="utf-8")
        with dt.open(Path(folder) / "catalog.toml", ledger=str(Path(folder) / "ledger"), make=True) as survey:
            question = "SELECT region, smoker, COUNT(*) AS people FROM people GROUP BY region, smoker"
            survey.ask(question, epsilon="0.2").plot(FOLDER / "smokers.png")


def console() -> None:
    """The console of `dither serve --demo`, with an answer."""
    from playwright.sync_api import sync_playwright

    port, question = (
        "8399",
        "SELECT ward, COUNT(*) AS patients, AVG(weight) AS kg\nFROM patients\nWHERE diabetic\nGROUP BY ward",
    )
    words = [str(Path(sys.executable).with_name("dither")), "serve", "--demo", "--port", port]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as server:
        try:
            link = next(line.split()[1] for line in server.stdout or () if line.strip().startswith("browser"))
            with sync_playwright() as running:
                browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_context(viewport={"width": 1180, "height": 900}, device_scale_factor=1.5).new_page()
                page.set_default_timeout(60_000)
                while True:  # until it listens
                    try:
                        page.goto(link)
                        break
                    except Exception:
                        if server.poll() is not None:
                            raise
                        page.wait_for_timeout(500)
                page.wait_for_selector(".cm-content")
                page.click(".cm-content")
                page.keyboard.press("Control+A")
                page.keyboard.insert_text(question)
                page.wait_for_selector("#go:not([disabled])")
                page.keyboard.press("Control+Enter")
                page.wait_for_selector(".answer")
                page.wait_for_selector("text=Show the answer")
                page.keyboard.press("Escape")
                page.click("h2 >> nth=0")
                page.evaluate("document.querySelector('.foot')?.remove()")
                page.screenshot(path=FOLDER / "console.png", full_page=True)
                browser.close()
        finally:
            server.terminate()


DRAWN = {each.__name__: each for each in (two_worlds, beliefs, bias, composition, floats, first_answer, smokers, console)}

if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWN:
        DRAWN[name]()
