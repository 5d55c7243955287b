"""A local survey from end to end: reports, what is refused, estimates, and the client in plain Python."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from distribution.allowance import share
from distribution.fit import events_fit
from dither.local import plain
from dither.local.randomisers import RANDOMISERS
from dither.local.simulate import simulate
from dither.local.survey import HEADER, best_kind
from journey.hospital import run

SMOKES = dt.LocalSurvey.choice("smokes", ["no", "yes"], epsilon=1)
SURVEYS = [
    SMOKES,
    *(dt.LocalSurvey.choice("place", 37, epsilon="3/2", kind=kind) for kind in RANDOMISERS),
    dt.LocalSurvey.number("age", 0, 120, epsilon=2),
]
each_survey = pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: f"{survey.name}-{survey.kind}")


def of(survey: dt.LocalSurvey) -> Any:
    """One value of the survey."""
    return 30 if survey.values is None else survey.values[-1]


@each_survey
def test_a_survey_survives_json(survey: dt.LocalSurvey) -> None:
    again = dt.LocalSurvey.from_json(survey.to_json())
    assert again == survey
    assert again.header == survey.header
    assert Fraction(json.loads(survey.to_json())["epsilon"]) == survey.epsilon


@each_survey
def test_a_report_costs_what_the_survey_says(survey: dt.LocalSurvey) -> None:
    assert survey.loss() == dt.Pure(survey.epsilon)
    assert survey.epsilon * Fraction(99, 100) < survey.true_epsilon() <= survey.epsilon


@each_survey
def test_the_plain_client_is_the_same_client(survey: dt.LocalSurvey) -> None:
    reports = [plain.report_of(survey.to_json(), of(survey)) for _ in range(300)]
    desk = dt.Aggregator(survey)
    assert desk.add(reports) == 300
    assert not desk.refused
    keep = survey.randomiser.keep if survey.kind in ("response", "number", "hadamard", "subset") else None  # type: ignore[attr-defined]
    if keep is not None:
        e = plain.exp_below(survey.epsilon)
        assert abs(keep / plain.WHOLE - float(_keep(survey, e))) < 2**-31


def _keep(survey: dt.LocalSurvey, e: Fraction) -> Fraction:
    size = survey.size
    if survey.kind == "subset":
        chosen = survey.randomiser.chosen  # type: ignore[attr-defined]
        return e * chosen / (e * chosen + size - chosen)
    return e / (e + (size - 1 if survey.kind == "response" else 1))


def test_the_plain_client_needs_nothing_else() -> None:
    text = Path(plain.__file__).read_text(encoding="utf-8")
    imports = {line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imports <= {"__future__", "hashlib", "json", "secrets", "fractions", "functools", "typing"}
    assert imports <= sys.stdlib_module_names | {"__future__"}


def test_the_plain_client_refuses_chances_that_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    below = plain.exp_below
    monkeypatch.setattr(
        plain,
        "exp_below",
        lambda epsilon: below(epsilon) * 2 if sys._getframe(1).f_code.co_name == "_respond" else below(epsilon),
    )
    with pytest.raises(ValueError, match="more than epsilon"):
        plain.report_of(SMOKES.to_json(), "yes")


def test_reports_of_plain_python_are_spread_alike() -> None:
    survey = dt.LocalSurvey.choice("place", 4, epsilon=1, kind="response")
    count = 4000
    seen = sum(plain.report_of(survey.to_json(), 2)[HEADER] == 2 for _ in range(count)) / count
    assert events_fit([seen], [survey.randomiser.chances()[0]], count, share("local reports", tests=12))


def test_a_client_repeats_its_report(tmp_path: Path) -> None:
    person = dt.LocalClient(SMOKES, tmp_path / "memory.json")
    assert person.spent() is None
    first = person.report("yes")
    assert all(person.report("yes") == first for _ in range(20))
    assert dt.LocalClient(SMOKES, tmp_path / "memory.json").report("no") == first
    assert person.spent() == dt.Pure(1)
    person.report("no", fresh=True)
    assert person.spent() == dt.Pure(2)


def test_that_new_reports_would_tell_the_value() -> None:
    """Without the memory, the average of many reports is the value."""
    reports = np.concatenate([SMOKES.reports(["yes"]) for _ in range(500)])
    desk = dt.Aggregator(SMOKES)
    desk.add(reports)
    assert desk.estimate()["yes"][0] > 0.7


def test_surveys_that_share_a_memory_keep_each_others_reports(tmp_path: Path) -> None:
    """Both clients are there before either reports. A lost report would be drawn, and paid for, again."""
    drinks = dt.LocalSurvey.choice("drinks", ["no", "yes"], epsilon=1)
    clients = [dt.LocalClient(survey, tmp_path / "memory.json") for survey in (SMOKES, drinks, SMOKES)]
    first, other, again = [client.report("yes") for client in clients]
    assert first == again
    for survey, report in ((SMOKES, first), (drinks, other)):
        later = dt.LocalClient(survey, tmp_path / "memory.json")
        assert later.spent() == dt.Pure(1)
        assert later.report("no") == report


def test_a_report_that_cannot_be_stored_is_not_shown(tmp_path: Path) -> None:
    person = dt.LocalClient(SMOKES, tmp_path / "later" / "memory.json")
    for _ in range(2):
        with pytest.raises(dt.DitherError, match="not shown"):
            person.report("yes")
    assert person.spent() is None
    (tmp_path / "later").mkdir()
    report = person.report("yes")
    assert dt.LocalClient(SMOKES, tmp_path / "later" / "memory.json").report("no") == report


@pytest.mark.parametrize("content", ['{"01": [5]}', '{"01": ["?"]}', "[" * 100_000])
def test_a_memory_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "memory.json").write_text(content, encoding="utf-8")
    with pytest.raises(dt.DitherError, match="memory"):
        dt.LocalClient(SMOKES, tmp_path / "memory.json")


def test_a_memory_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text("[", encoding="utf-8")
    with pytest.raises(dt.ArgumentError, match="cannot be read"):
        dt.LocalClient(SMOKES, tmp_path / "memory.json")


@each_survey
@settings(deadline=None, max_examples=30)
@given(junk=st.lists(st.binary(max_size=20), max_size=20))
def test_junk_is_counted_and_stops_nothing(survey: dt.LocalSurvey, junk: list[bytes]) -> None:
    desk = dt.Aggregator(survey)
    good = survey.report(of(survey))
    junk = [each for each in junk if each[:HEADER] != survey.header]
    assert desk.add([*junk, good, *junk]) == 1
    assert desk.reports + sum(desk.refused.values()) == 2 * len(junk) + 1


def test_reasons_for_refusing_are_told_apart() -> None:
    desk, good = dt.Aggregator(SMOKES), SMOKES.report("yes")
    other = dt.LocalSurvey.choice("smokes", ["no", "yes"], epsilon=2).report("yes")
    desk.add([good, good + b"x", good[:-1], b"\x09" + good[1:], other, good[:-1] + b"\x05", "text", None])  # type: ignore[list-item]
    assert desk.reports == 1
    assert desk.refused == {"oversized": 1, "malformed": 4, "wrong version": 1, "another survey": 1}


def test_margins_hold_and_have_two_parts() -> None:
    survey = dt.LocalSurvey.choice("smokes", ["no", "yes"], epsilon=1)
    values = np.array([1] * 900 + [0] * 2100)
    inside = 0
    for _ in range(200):
        desk = dt.Aggregator(survey)
        desk.add(survey.reports([survey.values[v] for v in values]))  # type: ignore[index]
        found = desk.estimate()
        inside += abs(found["yes"][0] - 0.3) <= found["yes"][1]
    assert inside >= 170  # 190 expected and more: the people are always the same
    coins = survey.randomiser.chances()[0]
    assert found.coins[1] == pytest.approx((1 / (16 * (coins - 0.5) ** 2) - 0.25) / 3000, rel=0.2)
    assert found.sampling[1] == pytest.approx(0.3 * 0.7 / 3000, rel=0.3)


def test_means_of_numbers() -> None:
    survey = dt.LocalSurvey.number("age", 0, 120, epsilon=2)
    ages = np.clip(np.random.default_rng(5).normal(40, 15, 20_000), -5, 200)
    desk = dt.Aggregator(survey)
    desk.add(survey.reports(ages))
    found = desk.estimate("0.999999")
    assert abs(found["mean"][0] - np.clip(ages, 0, 120).mean()) < found["mean"][1]
    assert survey.places([None, "many", float("nan"), 10**400]).tolist() == [0, 0, 0, 1]


def test_kinds_are_chosen_by_size_and_price() -> None:
    assert best_kind(Fraction(1), 2) == "response"
    assert best_kind(Fraction(1), 1000) == "hashing"
    assert best_kind(Fraction(8), 1000) == "response"
    assert "<- used" in dt.LocalSurvey.choice("x", 1000, epsilon=1).explain()


def test_a_grid_of_places() -> None:
    """Ten by ten cells at ln 3: the true cell with probability 3/102."""
    price = Fraction("1.0986122886681098")  # just above ln 3
    survey = dt.LocalSurvey.choice("cell", 100, epsilon=price, kind="response")
    assert survey.randomiser.chances()[0] == pytest.approx(3 / 102, rel=1e-6)


def test_frequent_values_of_a_large_domain_are_found() -> None:
    words = dt.HeavyHitters("word", bits=24, epsilon=4)
    people = np.random.default_rng(1).integers(0, 1 << 24, 60_000)
    people[:12_000], people[12_000:18_000] = 123_456, 16_000_000
    found = words.find(words.reports(people), most=4)
    assert [value for value, _, _ in found[:2]] == [123_456, 16_000_000]
    assert abs(found[0][1] - 0.2) < 4 * found[0][2]
    singles = [words.report(int(each)) for each in people[:200]]
    assert len({len(each) for each in singles}) == 1
    assert words.find([*singles, b"", b"\xff junk"], most=1) is not None
    assert words.loss() == dt.Pure(4)


def test_a_level_without_reports_finds_nothing() -> None:
    words = dt.HeavyHitters("word", bits=12, epsilon=1)
    by_level = {level: [each for each in [words.report(5) for _ in range(200)] if each[0] == level] for level in (0, 1)}
    for reports in ([], by_level[0], by_level[1]):
        assert words.find(reports) == []


def test_a_simulated_survey(tmp_path: Path) -> None:
    found = simulate(dt.LocalSurvey.choice("x", 8, epsilon=1), 20_000)
    local, central = found.errors()
    assert local > 10 * central
    assert "without a trusted curator" in str(found)
    assert found.estimates.plot(tmp_path / "shares.png").stat().st_size > 3000


def test_the_command_line() -> None:
    done = run("local", "simulate", "-e", "1", "--people", "2000", "--values", "4")
    assert done.exit_code == 0
    assert "± " in done.stdout
    assert run("local", "simulate", "-e", "0").exit_code == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: dt.LocalSurvey.choice("x", ["a"], epsilon=1),
        lambda: dt.LocalSurvey.choice("x", ["a", "a"], epsilon=1),
        lambda: dt.LocalSurvey.choice("x", [1.5, 2.5], epsilon=1),  # type: ignore[list-item]
        lambda: dt.LocalSurvey.choice("", 3, epsilon=1),
        lambda: dt.LocalSurvey.choice("x", 3, epsilon=0),
        lambda: dt.LocalSurvey.choice("x", 3, epsilon=100),
        lambda: dt.LocalSurvey.choice("x", 3, epsilon=1, kind="magic"),
        lambda: dt.LocalSurvey.choice("x", 2**17, epsilon=1, kind="unary"),
        lambda: dt.LocalSurvey.number("x", 5, 5, epsilon=1),
        lambda: dt.LocalSurvey.from_json("{}"),
        lambda: dt.LocalSurvey.from_json('{"version": 1, "name": "x", "kind": "number", "epsilon": "1", "bounds": 3}'),
        lambda: dt.LocalSurvey.from_json(SMOKES.to_json().replace("{", '{"more": 1, ', 1)),
        lambda: dt.Aggregator(SMOKES).estimate(),
        lambda: dt.Aggregator(SMOKES).add(b"report"),
        lambda: dt.HeavyHitters("x", bits=40, epsilon=1),
    ],
)
def test_odd_arguments_are_refused_in_words(call: Any) -> None:
    with pytest.raises(dt.DitherError):
        call()


ODD = (400, -1, 2**70, 2.5, None, "x", [1], float("nan"), float("inf"), True, np.float32(3), np.array([1, 2]), 10**400)


@pytest.mark.parametrize("survey", [*SURVEYS, dt.LocalSurvey.choice("n", 2**20, epsilon=1)], ids=lambda survey: survey.kind)
def test_no_value_makes_a_report_fail(survey: dt.LocalSurvey) -> None:
    """An error on one device would tell its value."""
    for value in ODD:
        assert len(plain.report_of(survey.to_json(), value)) == len(survey.report(value)) == survey.width


def test_what_is_not_listed_counts_as_the_first_everywhere() -> None:
    sure = dt.LocalSurvey.choice("place", 37, epsilon=20)
    for value in (37, 400, -1):
        assert sure.places([value]).tolist() == sure.places(np.array([value])).tolist() == [0]
        assert plain._place(37, value) == 0
    number = dt.LocalSurvey.number("age", 0, 120, epsilon=1)
    for odd in (float("nan"), float("inf"), -float("inf")):
        assert number.places([odd]).tolist() == number.places(np.array([odd])).tolist() == [0]


@pytest.mark.parametrize("bounds", [(0, 10**400), (-(10**200), 0), (0, Fraction(1, 10**200))])
def test_bounds_that_no_float_holds_are_refused(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(dt.DitherError, match="1e"):
        dt.LocalSurvey.number("x", *bounds, epsilon=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SMOKES.reports(np.zeros((2, 2), dtype=np.int64)),
        lambda: dt.LocalSurvey.choice("place", 37, epsilon=1).reports(np.zeros((2, 2), dtype=np.int64)),
        lambda: dt.LocalSurvey.number("age", 0, 120, epsilon=1).reports(np.zeros((2, 2))),
        lambda: dt.HeavyHitters("w", bits=16, epsilon=4).find((np.zeros(3), np.zeros((2, 8), dtype=np.uint8))),
        lambda: dt.HeavyHitters("w", bits=16, epsilon=4).find((np.zeros((3, 1)), np.zeros((3, 8), dtype=np.uint8))),
    ],
)
def test_arrays_of_another_shape_are_refused(call: Any) -> None:
    """Coins that people share would tell more than the price."""
    with pytest.raises(dt.DitherError):
        call()
