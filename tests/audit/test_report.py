"""The report: everything escaped, nothing from elsewhere, the same in JSON, and drawings that show a violation."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dither.audit.exact import prices
from dither.audit.exact.walk import walk
from dither.audit.report import page, svg
from dither.audit.report.report import Report, plain, versions
from dither.audit.verdict import NOT_FOUND, PROVED, SHARE, VIOLATES, WALKED, Verdict, rounded_down, rounded_up
from dither.exact.laws.coins import Coin
from dither.mechanisms import Geometric

NASTY = "<script>alert('x')</script> & \"quoted\""
ONE = (Fraction(1), Fraction(0))


def verdict(outcome: str = NOT_FOUND, **changed: object) -> Verdict:
    samples = {"D": [0.0, 1.0, 1.0, math.nan], "D'": [1.0, 2.0, math.inf, 1.0]}
    given: dict[str, object] = {
        "target": NASTY,
        "method": "black box",
        "outcome": outcome,
        "claimed": ONE,
        "epsilon": math.inf if outcome == VIOLATES else 0.5,
        "confidence": 0.999,
        "pair": ([NASTY], [object()]),
        "event": NASTY,
        "evidence": {"held on D": (5, 10), NASTY: {NASTY: (NASTY, 0.5)}, "samples": samples, "column": NASTY, "empty": {}},
        "seconds": 1.5,
        "advantage": 0.25,
    }
    return Verdict(**{**given, **changed})  # type: ignore[arg-type]


def report(*verdicts: Verdict) -> Report:
    return Report(NASTY, verdicts, f"dither audit {NASTY}", 7, "2030-01-01 00:00 UTC", 3.0, (NASTY,), {NASTY: NASTY})


class Tags(HTMLParser):
    """Collects the elements of a page, and whether they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.addresses: list[str] = []
        self.stack: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data", "action")]
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_a_page_is_whole_and_needs_nothing_from_elsewhere() -> None:
    text = page.render(report(verdict(VIOLATES), verdict(), prices.check(Geometric.examples()[0])))
    tags = Tags(text)
    assert tags.stack == []
    assert tags.addresses == []
    assert not {"script", "link", "img", "iframe", "object"} & set(tags.found)
    assert "url(" not in text
    assert "http" not in text
    assert tags.found.count("svg") == 3


def test_everything_is_escaped() -> None:
    text = page.render(report(verdict(VIOLATES), verdict(PROVED, method="exact"), verdict(method="replay")))
    assert "<script" not in text
    assert "alert(" in text
    assert '"quoted"' not in text.replace('aria-label="', "")


@pytest.mark.parametrize("heading", ["claimed", "Method", "Evidence", "not checked", "reproduce"])
def test_a_regulator_finds_each_part(heading: str) -> None:
    assert any(heading in title for title in re.findall(r"<h2>(.*?)</h2>", page.render(report(verdict()))))


def test_the_summary_says_what_was_shown_and_no_more() -> None:
    assert report().summary() == "Nothing was checked."
    assert "Violated: 1 of 2" in report(verdict(), verdict(VIOLATES)).summary()
    mixed = report(verdict(), verdict(PROVED)).summary()
    assert mixed == "No violation found in 2 checks: 1 proved, 1 tried without finding any."
    many = report(verdict(), verdict(PROVED), verdict(WALKED), verdict(open="why"), verdict(epsilon=1.5)).summary()
    assert "1 proved, 1 samplers walked, 1 tried without finding any, 1 doubtful, 1 without a conclusion" in many
    assert report(verdict(open="why")).summary() == "Nothing could be concluded in 1 checks."


def test_a_verdict_never_claims_more_than_was_shown() -> None:
    nothing = verdict(method="replay", confidence=1.0, epsilon=0.0, open="draws of unknown law <b>")
    assert "nothing concluded about ε = 1: draws of unknown law" in str(nothing)
    assert "≥" not in str(nothing)
    assert "100 %" not in str(verdict(method="replay", confidence=1.0))
    doubtful = verdict(epsilon=1.5, confidence=0.95)
    assert "more than claimed but not sure enough" in str(doubtful)
    assert "not sure enough" not in str(verdict(epsilon=0.9, confidence=0.95))
    text = page.render(report(nothing, doubtful))
    assert "nothing concluded</span>" in text
    assert "doubtful</span>" in text
    assert "<b>" not in text


def test_bounds_are_rounded_to_the_side_on_which_they_hold() -> None:
    """A loss of 1000.54 was shown as "true ε ≥ 1001"."""
    exact = {"confidence": 1.0, "evidence": {}}
    assert "true ε ≥ 1000;" in str(verdict(VIOLATES, epsilon=1000.54, **exact))
    assert "largest loss 0.9999 on" in str(verdict(NOT_FOUND, epsilon=0.99996, **exact))
    assert "proved up to ε = 0.9001," in str(verdict(PROVED, epsilon=0.90001, **exact))
    shown = page.render(report(verdict(VIOLATES, epsilon=1000.54), verdict(PROVED, epsilon=0.90001, **exact)))
    assert "ε ≥ 1000 " in shown
    assert "ε ≤ 0.9001" in shown
    assert "1001" not in shown


def test_a_violation_is_shown_with_enough_digits_to_be_one() -> None:
    assert rounded_down(1.00004, above=1.0) == "1.00004"
    assert rounded_down(math.inf) == rounded_up(math.inf) == "∞"
    assert (rounded_down(0.93), rounded_up(0.93), rounded_down(1e-9)) == ("0.93", "0.93", "1e-09")


def test_a_page_about_questions_speaks_of_their_price() -> None:
    """Replays of questions measure moves in times of what was priced, not an ε."""
    claimed = (Fraction(1), Fraction(0))
    moved = verdict(VIOLATES, epsilon=2.0, claimed=claimed, confidence=1.0, evidence={SHARE: 2.0})
    shown = page.render(report(moved))
    assert "one unit moves it by 2 times what was priced" in shown
    assert "its price" in shown
    assert "ε ≥ 2" not in shown


def test_the_json_says_the_same(tmp_path: Path) -> None:
    found = report(verdict(VIOLATES), verdict())
    beside = page.save(found, tmp_path / "out.html")
    assert beside == tmp_path / "out.json"
    told = json.loads(beside.read_text(encoding="utf-8"))
    assert told["violated"] is True
    assert told["summary"] == found.summary()
    assert told["seed"] == 7
    assert told["versions"] == versions()
    assert told["verdicts"][0]["epsilon"] == "inf"
    assert told["verdicts"][0]["claimed"] == {"epsilon": "1", "delta": "0"}
    assert told["verdicts"][0]["evidence"]["samples"]["D"][:2] == [0.0, 1.0]
    assert told["not checked"] == [NASTY]


def test_plain_values_survive_json() -> None:
    odd = {"a": [math.nan, -math.inf, Fraction(1, 3), (1, 2), b"x", {1}, Fraction(1, 2**500)], 3: None}
    assert json.loads(json.dumps(plain(odd), allow_nan=False))["a"][2] == "1/3"


def test_many_verdicts_are_told_by_kind() -> None:
    proofs = [prices.check(example) for example in Geometric.examples()] * 3
    walked = walk("<coin>", Coin(Fraction(1, 3)).draw, Coin(Fraction(1, 3))).verdict()
    text = page.render(report(*proofs, walked, verdict(method="replay", evidence={"counterexample": NASTY})))
    assert "samplers: every draw follows its stated law" in text
    assert "&lt;coin&gt;" in text
    assert "the path from a question to its answer" in text


def lines(picture: str) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Returns the points of the allowed band and of D's line."""
    tree = ElementTree.fromstring(picture)
    band = [one for one in tree.iter("polygon") if one.get("fill") == svg.BAND]
    line = [one for one in tree.iter("polyline") if one.get("stroke") == svg.D]
    points = [[tuple(map(float, pair.split(","))) for pair in one.get("points", "").split()] for one in (band[0], line[0])]
    return points[0], points[1]  # type: ignore[return-value]


def inside(picture: str) -> bool:
    """Tells whether D's line stays within the band, up to the rounding of the drawing."""
    band, line = lines(picture)
    high, low = band[: len(line)], band[len(line) :][::-1]
    return all(top[1] - 0.11 <= at[1] <= bottom[1] + 0.11 for top, at, bottom in zip(high, line, low, strict=True))


def geometric(epsilon: str) -> str:
    points = prices.check(Geometric.examples()[0]).evidence["law"]
    shape = svg.Shape(tuple(points["output"]), tuple(points["D"]), tuple(points["D'"]))
    return svg.drawing(shape, float(epsilon), title="Geometric")


def test_a_kept_promise_stays_in_the_band() -> None:
    assert inside(geometric("1"))


def test_a_broken_promise_leaves_the_band() -> None:
    assert not inside(geometric("0.9"))


@pytest.mark.parametrize(
    ("one", "two"),
    [([1.0], [1.0]), ([0.0, 5.0, 1e300], [1.0, 2.0, 3.0]), ([*range(500)], [*range(100, 600)]), ([True, False], [True, True])],
)
def test_any_sample_can_be_drawn(one: list[float], two: list[float]) -> None:
    shape = svg.histogram(one, two)
    assert shape is None or "nan" not in svg.drawing(shape, 1.0, 1e-6, title=NASTY, axis=NASTY).lower()


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 50.0, 1e6])
def test_any_claim_can_be_drawn(epsilon: float) -> None:
    picture = svg.drawing(svg.Shape((0.0, 1.0), (1.0, 0.0), (0.0, 1.0)), epsilon, title="")
    assert "nan" not in picture
    assert "inf" not in picture
    ElementTree.fromstring(picture)


def test_a_sample_of_no_numbers_has_no_drawing() -> None:
    assert svg.histogram([math.nan], [math.nan]) is None
    assert svg.histogram([], []) is None
