"""A stored answer that was given a short time ago is not made up again, and what it says of the budget is of now."""

from __future__ import annotations

from typing import Any

import pytest

from dither.server import replies
from dither.server.replies import Replies
from server.serving import BY_WARD, COUNT, Running


def without_left(body: dict[str, Any]) -> dict[str, Any]:
    """An answer without what it says of the budget."""
    last = body["notes"][-1].removesuffix(body["left"])
    return {name: value for name, value in body.items() if name != "left"} | {"notes": [*body["notes"][:-1], last]}


def test_what_is_left_is_of_now(running: Running) -> None:
    first = running.ask("ada", BY_WARD).json
    again = [running.ask("ada", BY_WARD).json for _ in range(3)]
    assert all(each["replayed"] for each in again)
    assert again[0] == again[1] == again[2]
    assert again[0]["left"] == first["left"]
    running.ask("ben", COUNT)
    later = running.ask("ada", BY_WARD).json
    assert later["left"] != again[0]["left"]
    assert later["notes"][-1].endswith(later["left"])
    assert again[0]["left"] not in later["notes"][-1]
    assert without_left(later) == without_left(again[0])


def test_terms_and_words_of_a_question_have_their_own_answers(running: Running) -> None:
    running.ask("ada", BY_WARD)
    for _ in range(2):
        sorted_ = running.ask("ada", f"{BY_WARD} ORDER BY ward DESC").json
        assert [row[0] for row in sorted_["rows"]] == ["south", "north"]
        wide = running.ask("ada", BY_WARD, confidence="0.999").json
        assert (wide["replayed"], wide["confidence"]) == (True, "999/1000")
        assert "payload" not in running.ask("ada", BY_WARD).json
        assert running.ask("ada", BY_WARD, payload=True).json["payload"]


def test_no_more_is_kept_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST", 2)
    kept, made = Replies(), []

    def find(key: str, text: str = "x") -> Any:
        return kept.find(key, lambda: made.append(key) or {"text": text})

    for key in ("a", "b", "a", "c", "a", "b"):
        assert find(key) == {"text": "x"}
    assert made == ["a", "b", "c", "b"], "the one that was not used for the longest time was forgotten"
    monkeypatch.setattr(replies, "LARGEST", 100)
    find("d", "x" * 1000)
    assert (len(kept._kept), kept._size) == (0, 0)
