"""PITFALLS, budget and randomness: what is paid when something goes wrong, and how often noise is drawn."""

from __future__ import annotations

import inspect
import shutil
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from attacks.paths import catalog, observe, open_observed
from dither.ledger import opening
from dither.ledger.ledger import Ledger
from dither.ledger.verify.report import verify
from dither.query.work import Group, Work

COUNT = "SELECT COUNT(*) AS n FROM t"
TENTH = Fraction(1, 10)


def people(size: int = 30, **more: Any) -> dt.Catalog:
    table = {"u": list(range(size)), "x": [i % 7 for i in range(size)]}
    return catalog(table, {"x": dt.between(0, 10)}, max_rows=1, **more)


class Counted:
    """An engine that counts its runs, and fails on request."""

    name = "counted"

    def __init__(self, engine: Any, fails: bool) -> None:
        self.engine, self.fails, self.runs = engine, fails, 0

    def schema(self, table: str) -> Mapping[str, str]:
        return self.engine.schema(table)  # type: ignore[no-any-return]

    def prepare(self, work: Work) -> None:
        self.engine.prepare(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        self.runs += 1
        if self.fails:
            raise ValueError("Mrs Miller")
        return list(self.engine.run(work, secret))


def counted(curator: dt.Curator, fails: bool) -> Counted:
    engine = Counted(curator.engine, fails)
    curator.engine = engine
    return engine


def test_a_crash_after_release_and_before_commit_gives_no_answer_and_stays_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    def crash(*_: Any) -> Any:
        raise Crash

    survey = dt.open(people(), ledger=tmp_path / "t.ledger", make=True)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", crash)
        with pytest.raises(Crash):
            survey.ask(COUNT, epsilon=TENTH)
    again = dt.open(people(), ledger=tmp_path / "t.ledger")
    assert again.budget.spent.epsilon == TENTH
    assert not again.ask(COUNT, epsilon=TENTH).replayed, "what nobody saw is not shown later: it is paid for and drawn anew"
    assert again.budget.spent.epsilon == 2 * TENTH


def test_there_is_no_refund_on_failure_and_no_second_run_for_one_charge() -> None:
    survey = dt.open(people(), ledger=":memory:")
    engine = counted(survey, fails=True)
    with pytest.raises(dt.EngineError, match=r"Charged: ε = 0\.1"):
        survey.ask(COUNT, epsilon=TENTH)
    assert (engine.runs, survey.budget.spent.epsilon) == (1, TENTH)
    engine.fails = False
    with pytest.raises(dt.DitherError, match=r"closed to new questions(.|\n)*Charged: nothing"):
        survey.ask(COUNT, epsilon=TENTH)
    assert (engine.runs, survey.budget.spent.epsilon) == (1, TENTH)
    survey.reopen()
    survey.ask(COUNT, epsilon=TENTH)
    assert (engine.runs, survey.budget.spent.epsilon) == (2, 2 * TENTH)


def test_no_option_skips_the_odometer() -> None:
    """Every way to call `ask`: it runs the engine and is charged, or it does neither."""
    options: dict[str, Any] = {
        "delta": 0,
        "confidence": "0.5",
        "assume_rows": 5,
        "analyst": "ana",
        "fresh": True,
        "free": False,
        "margin": None,
        "of": None,
        "max_rows": 1,
        "max_groups": 1,
        "left_out": False,
        "weights": None,
        "params": None,
        "sample": "1/2",
        "stored": False,
    }
    assert set(inspect.signature(dt.Curator.ask).parameters) == {"self", "question", "epsilon", *options}
    survey = dt.open(people(), ledger=":memory:")
    engine = counted(survey, fails=False)
    for name, value in options.items():
        runs, spent = engine.runs, survey.budget.spent.epsilon
        survey.ask(COUNT, epsilon=TENTH, **{name: value})
        assert survey.budget.spent.epsilon - spent == (engine.runs - runs) * TENTH, name
    assert 1 < engine.runs < len(options), "the first one and the fresh one were run, and the others given again"


def test_budgets_per_user_do_not_go_beyond_that_of_the_dataset() -> None:
    held = dt.Table({"u": list(range(30))}, unit="u", max_rows=1)
    survey = dt.open(dt.Catalog({"t": held}, dt.Budget(1, per_analyst="0.6")), ledger=":memory:")
    for analyst in ("ana", "ben"):
        survey.ask(COUNT, epsilon="0.5", analyst=analyst, fresh=True)
    with pytest.raises(dt.BudgetError, match="Charged: nothing"):
        survey.ask(COUNT, epsilon="0.5", analyst="cleo", fresh=True)
    assert survey.budget.spent.epsilon == 1


@pytest.mark.parametrize("limit", ["per_analyst", "per_query"])
def test_a_share_of_epsilon_is_not_exchanged_for_all_of_rho(limit: str) -> None:
    """A tiny epsilon with a large delta is a large rho, which uses up the budget. Twin: without the limit."""
    held = dt.Table({"u": list(range(30))}, unit="u", max_rows=1)
    for limits in ({limit: "0.01"}, {}):
        survey = dt.open(dt.Catalog({"t": held}, dt.Budget(1, "1e-6", least_epsilon="1e-6", **limits)), ledger=":memory:")
        if limits:
            assert "0.08" in survey.quote(COUNT, "1e-6", "0.08").refusal
            with pytest.raises(dt.BudgetError, match="Charged: nothing"):
                survey.ask(COUNT, "1e-6", "0.08", analyst="mallory")
            assert survey.ask(COUNT, "0.01", analyst="victim").rows, "a share at the usual delta is the share that was declared"
        else:
            survey.ask(COUNT, "1e-6", "0.08", analyst="mallory")
            assert survey.budget.share > Fraction(9, 10)


def test_what_was_spent_is_not_forgotten_because_somebody_deletes_a_sum(tmp_path: Path) -> None:
    """An attacker can write the file but has no key: the ledger stops, and does not sign another budget."""
    with dt.open(people(), ledger=tmp_path / "t.ledger", analyst="ana", make=True) as survey:
        survey.ask(COUNT, epsilon="0.9")
    for keys in (("total",), ("total", "analyst:ana"), ("total", "analyst:ana", "rolls", "seal")):
        path = tmp_path / f"{len(keys)}.ledger"
        for end in ("", ".key"):
            shutil.copy(tmp_path / f"t.ledger{end}", f"{path}{end}")
        raw = sqlite3.connect(path)
        raw.executemany("DELETE FROM state WHERE key = ?", [(key,) for key in keys])
        raw.commit()
        raw.close()
        with dt.open(people(), ledger=path, analyst="ana") as survey, pytest.raises(dt.LedgerError, match="without its key"):
            survey.ask(COUNT, epsilon="0.9", fresh=True)


def test_a_ledger_restored_from_an_old_copy_is_refused(tmp_path: Path) -> None:
    """An open session notices at once; a later session by a receipt for an entry that the copy lacks."""
    path, kept = tmp_path / "t.ledger", tmp_path / "old"
    with dt.open(people(), ledger=path, make=True) as survey:
        survey.ask(COUNT, epsilon=TENTH)
    shutil.copy(path, kept)
    survey = dt.open(people(), ledger=path)
    later = survey.ask(COUNT, epsilon=TENTH, fresh=True)
    shutil.copy(kept, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    with pytest.raises(dt.LedgerError, match="Charged: nothing"):
        survey.ask(COUNT, epsilon=TENTH, fresh=True)
    assert verify(opening.find(kept)).problems == ()
    assert verify(opening.find(kept), receipt=later.receipt).problems != ()


# --- randomness ---------------------------------------------------------------------------------------------------


def test_noise_is_not_keyed_by_the_text_of_a_question_and_averages_out_at_full_price_only() -> None:
    """Another spelling is the same question and costs nothing. Fresh noise is charged again."""
    survey = dt.open(people(1000), ledger=":memory:")
    first = survey.ask(COUNT, epsilon="0.001")
    spelled = survey.ask("select  count( * )  as n\nfrom t", epsilon="0.001")
    assert (spelled.rows, spelled.replayed) == (first.rows, True)
    alike = ["SELECT COUNT(*) AS n FROM t WHERE 1 = 1", "SELECT COUNT(*) AS n FROM t WHERE x >= 0 OR x IS NULL OR x < 0"]
    answers = [survey.ask(text, epsilon="0.001") for text in alike]
    fresh = [survey.ask(COUNT, epsilon="0.001", fresh=True) for _ in range(6)]
    drawn = [first, *(answer for answer in answers if not answer.replayed), *fresh]
    assert survey.budget.spent.epsilon == len(drawn) * Fraction(1, 1000)
    assert len({answer.rows for answer in drawn}) > 4  # two are alike once in 4000 times


def test_random_choices_are_not_drawn_again_when_an_engine_starts_over() -> None:
    """The secret of the question decides which groups a person keeps: a second run keeps the same ones."""
    table = {"u": [i % 4 for i in range(80)], "town": [f"town {i % 20}" for i in range(80)]}
    curator = open_observed(catalog(table, {"town": dt.column()}, delta="1/2", max_rows=2, max_groups=2))
    seen = observe(curator, "SELECT town, COUNT(*) AS n, COUNT(DISTINCT u) AS p FROM t GROUP BY town", 1, "1e-6")
    assert seen.plan is not None
    runs = [curator.engine.run(seen.plan.work, secret) for secret in (b"a" * 32, b"a" * 32, b"b" * 32, b"c" * 32)]
    kept = [sorted((group.key[0], group.units) for group in groups) for groups in runs]
    assert kept[0] == kept[1]
    assert len({str(each) for each in kept}) > 1
