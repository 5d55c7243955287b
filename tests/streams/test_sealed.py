"""Saved running sums: readable with the key only, unchanged only, once only."""

from __future__ import annotations

import base64
import json
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dither as dt
from dither.exact import replay
from dither.ledger.files import draft_of
from dither.ledger.receipts import Key
from dither.streams import sealed

KEY = secrets.token_bytes(32)


def begun() -> dt.RunningSum:
    running = dt.RunningSum(100, rho="1/8")
    running.feed(np.full(10, 987_654_321))
    return running


def test_a_saved_sum_continues_as_if_it_had_not_been_saved(tmp_path: Path) -> None:
    running = begun()
    state = running.state()
    running.save(tmp_path / "visits.state", KEY)
    loaded = dt.RunningSum.load(tmp_path / "visits.state", KEY)
    assert (loaded.step, loaded.state()) == (10, state)
    with replay.stream(b"same"):
        straight = dt.RunningSum.resume(state).feed(5)
    with replay.stream(b"same"):
        assert loaded.feed(5) == straight
    assert list(tmp_path.iterdir()) == []


def test_a_saved_sum_is_ended(tmp_path: Path) -> None:
    running = begun()
    running.save(tmp_path / "visits.state", KEY)
    for use in (lambda: running.feed(1), running.state, lambda: running.save(tmp_path / "other.state", KEY)):
        with pytest.raises(dt.DitherError, match="was saved"):
            use()


def test_it_is_loaded_once(tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    dt.RunningSum.load(path, KEY)
    with pytest.raises(dt.DitherError, match="loaded once"):
        dt.RunningSum.load(path, KEY)


def test_of_several_readers_one_gets_it(tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)

    def load(_: int) -> bool:
        try:
            dt.RunningSum.load(path, KEY)
        except dt.DitherError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(load, range(16))) == 1


def test_a_second_name_does_not_load_it_again(tmp_path: Path) -> None:
    path, other = begun().save(tmp_path / "visits.state", KEY), tmp_path / "other"
    other.hardlink_to(path)
    with pytest.raises(dt.DitherError, match="second name"):
        dt.RunningSum.load(path, KEY)
    other.unlink()
    other.symlink_to(path)
    assert dt.RunningSum.load(other, KEY).step == 10
    for name in (path, other):
        with pytest.raises(dt.DitherError, match="loaded once"):
            dt.RunningSum.load(name, KEY)


def test_what_is_no_file_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("folder", "", "visits\0", "x" * 5000):
        with pytest.raises(dt.DitherError, match="loaded"):
            dt.RunningSum.load(tmp_path / name, KEY)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_process_that_dies_while_it_loads_leaves_one_file(tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    child = os.fork()
    if not child:
        with sealed.taken(path):
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with pytest.raises(dt.DitherError, match="loaded once"):
        dt.RunningSum.load(path, KEY)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("visits.state.taken-")
    left.rename(path)
    assert dt.RunningSum.load(path, KEY).step == 10


def test_a_draft_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    draft_of(path).hardlink_to(path)
    assert dt.RunningSum.load(path, KEY).step == 10
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_the_file_is_not_noticed(tmp_path: Path) -> None:
    """A known limit: docs/known-limits.md."""
    path = begun().save(tmp_path / "visits.state", KEY)
    (tmp_path / "copy").write_bytes(path.read_bytes())
    assert dt.RunningSum.load(path, KEY).step == dt.RunningSum.load(tmp_path / "copy", KEY).step


def clear_texts(state: bytes) -> list[bytes]:
    """What must not be in a file: the state's numbers, as text and as bytes, and the state in usual spellings."""
    fields = json.loads(state)
    numbers = [fields["total"], *fields["noise"]]
    texts = [str(each).encode() for each in numbers] + [
        abs(each).to_bytes(16, end).strip(b"\0") for each in numbers for end in ("little", "big")
    ]
    return [*texts, state, base64.b64encode(state)[:40], state.hex().encode()[:40], b'"total"', b"rho"]


def test_no_part_of_the_state_is_in_clear(tmp_path: Path) -> None:
    running = begun()
    texts = clear_texts(running.state())
    written = running.save(tmp_path / "visits.state", KEY).read_bytes()
    assert [each for each in texts if len(each) > 2 and each in written] == []
    assert (tmp_path / "visits.state").stat().st_mode & 0o077 == 0


def test_that_a_state_in_clear_would_be_noticed() -> None:
    state = begun().state()
    for plain in (state, base64.b64encode(state), b"head" + state.hex().encode()):
        assert [each for each in clear_texts(state) if len(each) > 2 and each in plain]


def test_two_files_of_one_state_have_nothing_in_common() -> None:
    state = begun().state()
    one, other = (sealed.seal(state, KEY)[len(sealed.HEAD) :] for _ in range(2))
    assert not {one[i : i + 8] for i in range(len(one) - 7)} & {other[i : i + 8] for i in range(len(other) - 7)}


@pytest.mark.parametrize("place", [0, len(sealed.HEAD), len(sealed.HEAD) + 40, len(sealed.HEAD) + 60, -1])
def test_a_changed_file_is_refused_and_stays(place: int, tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(dt.DitherError, match="was changed"):
        dt.RunningSum.load(path, KEY)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [0, 5, 30, 70, -1])
def test_a_cut_file_is_refused(length: int, tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(dt.DitherError, match="was changed"):
        dt.RunningSum.load(path, KEY)


def test_another_key_opens_nothing_and_the_right_one_still_does(tmp_path: Path) -> None:
    path = begun().save(tmp_path / "visits.state", KEY)
    with pytest.raises(dt.DitherError, match="with this key"):
        dt.RunningSum.load(path, secrets.token_bytes(32))
    assert dt.RunningSum.load(path, KEY).step == 10


def test_the_curators_key_file_serves_by_a_key_of_its_own(tmp_path: Path) -> None:
    key = Key.create(tmp_path / "survey.key")
    path = begun().save(tmp_path / "visits.state", tmp_path / "survey.key")
    with pytest.raises(dt.DitherError, match="with this key"):
        dt.RunningSum.load(path, key.derive("something else"))
    assert dt.RunningSum.load(path, str(tmp_path / "survey.key")).step == 10


def test_files_are_never_overwritten_and_a_failed_save_ends_nothing(tmp_path: Path) -> None:
    running, path = begun(), tmp_path / "visits.state"
    path.write_text("other")
    for target in (path, tmp_path / "missing" / "visits.state", "visits\0"):
        with pytest.raises(dt.DitherError):
            running.save(target, KEY)
    assert path.read_text() == "other"
    assert isinstance(running.feed(1), int)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("key", [b"short", None, 5, "no such file"])
def test_a_key_is_needed(key: object, tmp_path: Path) -> None:
    running = begun()
    with pytest.raises(dt.DitherError):
        running.save(tmp_path / "visits.state", key)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    running.feed(1)
