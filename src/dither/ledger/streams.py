"""Streams: running sums that are charged once and continue step by step.

    reserved/1 (charged) ─▶ advanced/1, step 0     the stream is open: its price is spent, and no row was read
    reserved/1 (free)    ─▶ advanced/1, step 7     seven steps are released
    reserved/1 (free)    ─▶ advanced/1, step 8     and one more

Two texts are stored beside the entries:

    streams       where each stream is: {"<key>": [<reservation that paid>, <step>, <last reservation>, <last entry>]}. Sealed
    stream:KEY    the state after that step, encrypted by the caller, bound to the last reservation. Only the newest is kept

The transaction that writes an entry writes both. So either a step, its numbers and the state after it are all there, or none
is: a process that dies in between has shown nothing, and the steps are drawn again from the state before. An old state in place
of the newest does not fit the reservation that `streams` names. A step is entered only from the step before it, so of two
continuations one is refused.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from dither.errors import LedgerError
from dither.ledger.records import StreamStep, canonical, digest

_TEXT = re.compile(
    r'\{("[0-9a-f]{64}":\[[1-9]\d{0,17},(0|[1-9]\d{0,17}),[1-9]\d{0,17},[1-9]\d{0,17}\](,(?=")|(?=\})))+\}', re.ASCII
)


class StreamMovedError(LedgerError):
    """Somebody else opened or advanced the stream meanwhile. Nothing was read or charged."""

    code = "moved"


class Position(NamedTuple):
    """Where a stream is."""

    opened: int  # the reservation that paid for it
    step: int  # steps released
    reserved: int  # the reservation of the last steps: their state is bound to it
    entry: int  # the last advanced entry


def stream_key(plan: str, analyst: str) -> str:
    """Returns the key of a stream: its plan, price included, and whose it is. The same over all snapshots."""
    return digest("ledger stream 1", canonical([plan, analyst]))


def state_key(key: str) -> str:
    """Returns the key of a stream's state in the store."""
    return f"stream:{key}"


def state_digest(state: str) -> str:
    """Returns the digest of an encrypted state. It tells nothing of the content: each state has a salt of its own."""
    return digest("ledger stream state 1", state)


def continues(key: str, step: int) -> str:
    """Returns the plan of a reservation that continues a stream from a step."""
    return canonical({"continues": key, "step": step})


def encode_streams(streams: dict[str, Position]) -> str:
    return canonical({key: list(position) for key, position in streams.items()})


def decode_streams(text: str | None) -> dict[str, Position]:
    if text is None:
        return {}
    if _TEXT.fullmatch(text) is None:
        raise LedgerError("The ledger's streams cannot be read.", fix="run `dither verify`.")
    return {key: Position(*numbers) for key, numbers in json.loads(text).items()}


def check_step(text: str | None, asked: StreamStep | None) -> dict[str, Position]:
    """Returns the streams. Refuses to open one that is there, and to continue one from a step where it is not."""
    streams = decode_streams(text)
    if asked is None:
        return streams
    found = streams.get(asked.key)
    if asked.at is not None and found is None:
        raise LedgerError("This ledger has no such stream.", fix="open it first; that charges for it.")
    if found is not None and found.step != asked.at:
        raise StreamMovedError(
            "This stream was continued by somebody else meanwhile.", fix="ask again: it goes on from where it is now."
        )
    return streams
