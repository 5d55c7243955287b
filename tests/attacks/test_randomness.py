"""Randomness: noise that an attacker can predict (PITFALLS, Randomness)."""

from __future__ import annotations

import inspect
import os
import random

import numpy as np

import dither as dt

MECHANISMS = [dt.Geometric, dt.Laplace, dt.TruncatedGeometric, dt.Gaussian, dt.Exponential, dt.RandomizedResponse]


def draw() -> list[int]:
    return dt.Geometric(epsilon="1e-9", sensitivity=1).release(np.zeros(8, dtype=np.int64)).tolist()


def test_seeding_every_known_generator_changes_nothing() -> None:
    seen = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        seen.append(draw())
    assert seen[0] != seen[1]


def test_no_mechanism_takes_a_seed_or_a_generator() -> None:
    names = {name for kind in MECHANISMS for name in inspect.signature(kind).parameters}
    names |= {name for kind in MECHANISMS for name in inspect.signature(kind.release).parameters}
    assert not names & {"seed", "rng", "generator", "random_state", "source", "stream", "key"}


def test_the_recorded_stream_is_not_on_the_public_surface() -> None:
    assert not [name for name in dt.__all__ if "replay" in name or "entropy" in name or "stream" in name]


def test_forked_children_draw_differently_from_each_other_and_from_the_parent() -> None:
    draw()  # the parent's stream is keyed and buffered before the fork
    seen = []
    for _ in range(3):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, repr(draw()).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            seen.append(pipe.read())
        os.waitpid(child, 0)
    seen.append(repr(draw()))
    assert len(set(seen)) == 4


def test_the_same_question_asked_twice_gets_fresh_noise() -> None:
    assert draw() != draw()
