"""Randomness has one source: it never repeats, also across forks and threads, and it has no seed."""

from __future__ import annotations

import ast
import inspect
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import dither.exact
from dither.exact import entropy, replay
from dither.exact.laws.geometric import TwoSided

SOURCE = Path(dither.exact.__file__).parent.parent


def in_child(action: str) -> bytes:
    """Returns what a forked child draws; `action` names how."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, drawn(action))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


def drawn(action: str) -> bytes:
    if action == "bits":
        return entropy.bits(256).to_bytes(32, "little")
    return entropy.words64(4).tobytes()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("action", ["bits", "words"])
def test_forked_children_draw_afresh(action: str) -> None:
    entropy.bits(64)  # leaves a filled buffer and a running key behind, for a child to inherit
    entropy.words64(4)
    found = [in_child(action), in_child(action), drawn(action), drawn(action)]
    assert all(len(f) == 32 for f in found)
    assert len(set(found)) == 4


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_whose_process_number_is_reused_is_still_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy.os, "getpid", lambda: 4711)  # only the fork handler can tell now
    entropy.bits(64)
    found = [in_child("bits"), in_child("bits"), drawn("bits")]
    assert len(set(found)) == 3


def test_a_fork_made_outside_python_is_noticed_by_the_process_number() -> None:
    entropy.bits(64)
    before = entropy.thread_state().source
    entropy.thread_state().process = -1  # what a child sees whose handler did not run
    entropy.bits(64)
    assert entropy.thread_state().source is not before
    assert entropy.thread_state().process == os.getpid()


def test_two_holders_of_one_stream_would_draw_the_same() -> None:
    # the twin: this is what the fork test must detect
    found = []
    for _ in range(2):
        with replay.stream(b"inherited"):
            found.append((drawn("bits"), drawn("words")))
    assert found[0] == found[1]


def test_threads_have_streams_of_their_own() -> None:
    found: list[bytes] = []

    def work() -> None:
        for _ in range(50):
            found.append(entropy.words64(2).tobytes())
            found.append(entropy.bits(128).to_bytes(16, "little"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 800


def test_a_replay_in_one_thread_is_not_seen_by_another() -> None:
    found: list[int] = []
    with replay.stream(b"mine"):
        thread = threading.Thread(target=lambda: found.append(entropy.bits(128)))
        thread.start()
        thread.join()
        mine = entropy.bits(128)
    with replay.stream(b"mine"):
        assert entropy.bits(128) == mine
    assert found[0] != mine


def test_no_block_comes_twice() -> None:
    words = np.concatenate(
        [entropy.words64(10_000), entropy.words64(10_000), np.array([entropy.word() for _ in range(5000)], dtype=np.uint64)]
    )
    assert len(np.unique(words)) == len(words)


def test_the_key_is_changed_when_it_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom
    monkeypatch.setattr(entropy, "_KEY_LIFE", 1 << 18)
    monkeypatch.setattr(entropy.os, "urandom", lambda n: asked.append(n) or real(n))
    stream = entropy.Keyed()
    for _ in range(4):
        stream.fill(memoryview(bytearray(1 << 18)))
    assert asked == [32, 16] * 4


def test_buffered_words_are_not_handed_out_again_after_a_replay() -> None:
    before = [entropy.word() for _ in range(3)]
    with replay.stream(b"between"):
        entropy.word()
    after = [entropy.word() for _ in range(2000)]
    assert not set(before) & set(after)


def test_bits_keep_to_their_range_and_use_all_of_it() -> None:
    for count in (1, 7, 63, 64, 65, 128, 1000):
        seen = [entropy.bits(count) for _ in range(64)]
        assert all(0 <= x < 1 << count for x in seen)
        assert max(seen).bit_length() > count - 7
    assert entropy.bits(0) == 0


def test_low_bits_keep_to_their_range() -> None:
    for count in (1, 16, 17, 32, 33, 63):
        found = entropy.low_bits(300, count)
        assert found.min() >= 0
        assert int(found.max()).bit_length() == count


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_nothing_in_the_package_but_the_auditor_imports_replay() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "audit":
            continue
        assert "dither.exact.replay" not in imports(path), path


def test_noise_has_no_other_generator() -> None:
    # Made-up data for the demonstration may come from numpy; code that computes an answer may not use it.
    for folder in ("exact", "privacy", "mechanisms"):
        for path in (SOURCE / folder).rglob("*.py"):
            assert not imports(path) & {"random", "secrets", "numpy.random"}, path
            assert "default_rng" not in path.read_text(), path


def test_there_is_no_seed() -> None:
    for function in (entropy.bits, entropy.word, entropy.words16, entropy.words64, TwoSided.draw, TwoSided):
        assert not {"seed", "rng", "generator", "random_state", "key"} & set(inspect.signature(function).parameters)
    assert TwoSided(10**9).draw(4).tolist() != TwoSided(10**9).draw(4).tolist()
