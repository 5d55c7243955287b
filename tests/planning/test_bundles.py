"""Questions of a list that are measured together: the right numbers, less noise for each, and no more than they cost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.mechanisms import Gaussian
from dither.planning.bundles import spread
from dither.planning.outputs import Draw
from dither.planning.releases.base import Noise
from dither.planning.several import Several
from dither.planning.terms import Terms
from dither.privacy.losses import Pure, total

BY_A = "SELECT a, COUNT(*) AS n FROM t GROUP BY a"
BY_B = "SELECT b, COUNT(*) AS n FROM t GROUP BY b"
BOTH = "SELECT b, a, COUNT(*) AS k FROM t GROUP BY b, a ORDER BY k"
TOTAL = "SELECT COUNT(*) AS total FROM t"
LIST = [BY_A, BY_B, TOTAL, BOTH]
SUMS = ["SELECT a, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY a", "SELECT SUM(x) AS s, COUNT(*) AS n FROM t"]
COUNTS = [f"SELECT COUNT(*) FROM t WHERE x <= {i} AND a = '{a}'" for i in range(8) for a in "xyz"]
N = 600
DATA = {
    "u": list(range(N)),
    "a": ["xyz?"[i % 4] for i in range(N)],  # ? is not declared
    "b": [(True, False, None)[i % 3] for i in range(N)],
    "x": [i % 9 for i in range(N)],
}
COLUMNS = {"a": dt.values("x", "y", "z"), "b": dt.values(True, False), "x": dt.between(0, 8)}


def opened(delta: str | int = 0, data: dict[str, list[Any]] | None = None, **given: Any) -> dt.Curator:
    bounds = {"max_rows": 1, "max_groups": 1} | {name: given.pop(name) for name in ("max_rows", "max_groups") if name in given}
    unit = given.pop("unit", "u")
    rows = {"rows": {"public": N}} if given.get("neighbours") == "replace" else {}
    key = {"key": "u"} if given.pop("one_row", True) else {}
    table = dt.Table(data or DATA, unit=unit, columns=COLUMNS, **key, **({} if unit == "row" else bounds), **rows)
    return dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=100, delta=delta), **given), ledger=":memory:")


def planned(survey: dt.Curator, questions: Sequence[str], epsilon: object = 1) -> Several:
    terms = Terms.of(epsilon, left_out=False)  # type: ignore[arg-type]
    return survey._planned_list(questions, terms, None)[0]


def truth(keys: str) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for i in range(N):
        key = tuple(DATA[name][i] for name in keys)
        found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_answers_are_those_of_the_questions(delta: object) -> None:
    with opened(delta) as survey:  # type: ignore[arg-type]
        assert planned(survey, LIST, 80).bundled is not None
        by_a, by_b, whole, both = survey.ask(LIST, epsilon=80, left_out=False)
    assert [tuple(row) for row in by_a] == [((key,), n)[0] + (n,) for (key,), n in sorted(truth("a").items()) if key != "?"]
    assert dict(by_b.rows) == {key[0]: n for key, n in truth("b").items() if key[0] is not None}
    assert whole.rows == ((N,),)  # with those whose a or b is not declared
    expected = {key: n for key, n in truth("ba").items() if key[0] is not None and key[1] != "?"}
    assert {(b, a): n for b, a, n in both.rows} == expected


def test_without_a_group_for_other_values_a_total_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dither.planning.bundles._others", lambda group: set())
    with opened() as survey:
        whole = survey.ask(LIST, epsilon=80, left_out=False)[2]
    assert whole.rows != ((N,),)


@pytest.mark.parametrize("delta", [0, "1e-4"])
@pytest.mark.parametrize("questions", [LIST, SUMS, [BY_A, BY_B]])
def test_no_answer_has_more_noise_than_alone(questions: list[str], delta: object) -> None:
    with opened(delta) as survey:  # type: ignore[arg-type]
        bundled = planned(survey, questions)
        assert bundled.bundled is not None
        plain = [survey.quote(each, epsilon=Fraction(1, len(questions)), left_out=False).plan for each in questions]
    ratios = [spread(b.plans[0].noises) / spread(p.noises) for b, p in zip(bundled.shown, plain, strict=True)]
    assert max(ratios) <= 1.02
    assert sum(ratios) / len(ratios) == pytest.approx(bundled.bundled.ratio**2)
    assert bundled.bundled.ratio < 0.97


@pytest.mark.parametrize("delta", [0, "1e-4"])
def test_the_charge_covers_what_is_drawn(delta: object) -> None:
    with opened(delta) as survey:  # type: ignore[arg-type]
        assert covers(planned(survey, LIST))
        assert covers(planned(survey, SUMS))


def covers(program: Several) -> bool:
    """Whether the charge is that of one list, and the loss of all mechanisms together is within it."""
    noises = [noise for plan in program.plans for noise in plan.noises]
    charge = program.charge
    drawn = [noise.mechanism for noise in noises if isinstance(noise.mechanism, Gaussian)]
    if drawn and len(drawn) == len(noises):
        return charge.epsilon == 1 and total([each.vector() for each in drawn]).delta(charge.epsilon) <= charge.delta
    pure = total([noise.loss for noise in noises])
    return isinstance(pure, Pure) and pure.epsilon() <= charge.epsilon == 1


def test_that_check_can_fail() -> None:
    with opened("1e-2") as survey:
        program = planned(survey, COUNTS)
    assert covers(program)
    part = program.questions[0]
    noise = part.plans[0].noises[0]
    assert isinstance(noise.mechanism, Gaussian)
    double = replace(noise, mechanism=Gaussian(rho=noise.mechanism.rho * 2, sensitivity=noise.mechanism.sensitivity))
    cheap = replace(part, plans=(replace(part.plans[0], noises=(double,)), *part.plans[1:]))
    assert not covers(Several((cheap, *program.questions[1:])))


@pytest.mark.parametrize("delta", [0, "1e-4"])
def test_the_order_and_the_spelling_of_a_list_do_not_matter(delta: object) -> None:
    with opened(delta) as survey:  # type: ignore[arg-type]
        first = survey.ask(LIST, epsilon=1, left_out=False)
        spent = survey.budget.spent
        for order in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
            again = survey.ask([LIST[i] for i in order], epsilon=1, left_out=False)
            assert again.replayed
            assert [answer.rows for answer in again] == [first[i].rows for i in order]
        other = ["SELECT a, b, COUNT(1) AS m FROM t AS q GROUP BY b, a", TOTAL, BY_B, BY_A.replace("t ", "t AS w ")]
        again = survey.ask(other, epsilon=1, left_out=False)
        assert again.replayed
        assert sorted((b, a, n) for a, b, n in again[0].rows) == sorted(first[3].rows)
        assert survey.budget.spent == spent


def test_equal_questions_share_one_table() -> None:
    with opened() as survey:
        answers = survey.ask([*LIST, BY_A + " HAVING n > -1000 ORDER BY a DESC"], epsilon=1, left_out=False)
        assert answers[4].rows == answers[0].rows[::-1]
        assert survey.budget.spent.epsilon == 1
        assert sum((Fraction(each.total.epsilon) for each in answers[:4]), Fraction(0)) == 1


def test_people_in_several_groups_are_not_put_together() -> None:
    """Bounds by other keys leave out other rows, so their tables do not add up."""
    with opened(max_rows=2, max_groups=3) as survey:
        assert planned(survey, LIST).bundled is not None  # u is the key of t: one row each, whatever is declared
    visits = {**DATA, "u": [i // 3 for i in range(N)]}
    for bounds in ({"max_rows": 2, "max_groups": 3}, {"max_rows": 1, "max_groups": 1}):
        with opened(data=visits, one_row=False, **bounds) as survey:
            assert planned(survey, LIST).bundled is None
    with opened("1e-2", data=visits, one_row=False, max_rows=2, max_groups=3) as survey:
        program = planned(survey, COUNTS)
        assert program.bundled is not None  # one vector: noise for each, with the square root of the price
        assert not program.bundled.bundles
        assert program.bundled.vector == 24
        assert program.bundled.ratio < 0.75
        assert covers(program)


GIVEN = [{}, {"neighbours": "replace"}, {"unit": "row"}]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("delta", [0, "1e-4"])
def test_neighbours_move_each_table_by_no_more_than_its_noise_hides(given: dict[str, Any], delta: object) -> None:
    """Through the engine: one person more, one less, or another in their place."""
    before, *others = (exact_tables(delta, data, **given) for data in neighbours(given.get("neighbours") == "replace"))
    assert all(within(before, after) for after in others)


@pytest.mark.parametrize("given", GIVEN)
def test_that_the_check_of_neighbours_can_fail(given: dict[str, Any]) -> None:
    before, *others = (exact_tables(0, data, **given) for data in neighbours(given.get("neighbours") == "replace"))
    assert not all(within(before, after, Fraction(9, 10)) for after in others)


def neighbours(replaced: bool) -> list[dict[str, list[Any]]]:
    person = {"u": [10**6], "a": ["x"], "b": [None], "x": [8]}
    fewer = {name: values[1:] for name, values in DATA.items()}
    if replaced:
        return [DATA, {name: [*values, *person[name]] for name, values in fewer.items()}]
    return [DATA, fewer, {name: [*values, *person[name]] for name, values in DATA.items()}]


def exact_tables(delta: object, data: dict[str, list[Any]], **given: Any) -> list[tuple[Noise, list[int]]]:
    """Each noise of a list, with the exact numbers that it is added to."""
    seen: list[tuple[Noise, list[int]]] = []

    def record(noise: Noise, exact: Sequence[Any]) -> np.ndarray:
        seen.append((noise, [value for group in exact for value in group]))
        return noise.release(exact)

    with opened(delta, data, **given) as survey:  # type: ignore[arg-type]
        program = planned(survey, [*LIST, *SUMS])
        assert program.bundled is not None
        program.release(lambda work: survey.engine.run(work, bytes(32)), Draw(noise=record))
    return seen


def within(one: list[tuple[Noise, list[int]]], other: list[tuple[Noise, list[int]]], allowed: Fraction = Fraction(1)) -> bool:
    """Whether all exact numbers of two neighbours are as near to each other as the noise is for."""
    for (noise, before), (_, after) in zip(one, other, strict=True):
        moves, norm = [abs(a - b) for a, b in zip(before, after, strict=True)], noise.mechanism.sensitivity
        most, moved = (norm.squares(None), [move**2 for move in moves]) if noise.gaussian else (norm.total(None), moves)
        if sum(moved) > most * allowed:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, "1e-4"])
def test_margins_hold(delta: object) -> None:
    times, missed, numbers, alarm = 400, 0, 0, share("bundles of a list")
    with opened(delta) as survey:  # type: ignore[arg-type]
        program = planned(survey, LIST)
        exact = dict(zip(("a", "b", "", "ba"), map(truth, ("a", "b", "", "ba")), strict=True))
        works = {id(work): survey.engine.run(work, bytes(32)) for work in program.works}
    for _ in range(times):
        for batch, noisy, keys in zip(
            program.shown, program.put_together(program.release(lambda w: works[id(w)], Draw())), exact, strict=True
        ):
            plan = batch.plans[0]
            wide = plan.noises[0].margin(Fraction(19, 20))
            off = [abs(int(n) - exact[keys].get(key, 0)) for key, n in zip(noisy[0].keys, noisy[0].cells[0][:, 0], strict=True)]
            missed, numbers = missed + (max(off[:1]) > wide), numbers + 1
    assert binom.sf(missed - 1, numbers, 0.05) > alarm
    assert missed > numbers * 0.005  # nor are they much too wide
