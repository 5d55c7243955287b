"""A stream: the running sum of a question over time, charged once, and continued over new snapshots of the data.

    survey.stream(question, by="day", horizon=365, epsilon=1)    plans; charges nothing
    stream.advance(until="2026-01-07")                            first: charges for 365 days; reads seven, releases seven sums
    stream.advance(until="2026-01-08")                            later, over newer data: free, reads one day more

The ledger counts the steps. Advancing reserves (uncharged, from the step where the ledger is), reads the new steps, feeds them
to the running sum, and commits the sums with the encrypted state after them, in one transaction, before they are shown.

    dies before the commit       nothing was shown; the ledger and the state are as before, and the steps are drawn again
    dies after it                the sums are in the ledger: `released` shows them. Nothing is drawn again
    two continue from one step   the second waits for the first, and goes on after it
    an old state is put back     it does not fit the reservation that the ledger names, and is refused
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dither.errors import ArgumentError, DitherError, LedgerError
from dither.exact.numbers import Number, show_about, show_percent, show_rounded
from dither.ledger.receipts import Receipt
from dither.ledger.records import StreamStep
from dither.ledger.reservations import Reservation
from dither.ledger.streams import Position, StreamMovedError, continues, stream_key
from dither.mechanisms.base import check_confidence
from dither.session import Paid, Session
from dither.streams import sealed
from dither.streams.plan import StreamPlan
from dither.streams.program import Advance, Opening, decode_sums
from dither.streams.running import RunningSum

USE = "streams of a ledger 1"
_TRIES = 10  # how often others may be faster


@dataclass(frozen=True)
class StreamAnswer:
    """Sums that were released: for each step the noisy total up to it, with its margin."""

    by: str
    what: str
    keys: tuple[Any, ...]
    values: tuple[int | float, ...]
    margins: tuple[float, ...]
    confidence: Fraction
    notes: tuple[str, ...]
    charged: str
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, str, str]:
        return self.by, "total", "margin"

    @property
    def rows(self) -> tuple[tuple[Any, int | float, float], ...]:
        """A row for each step: the step, the total so far, and its margin."""
        return tuple(zip(self.keys, self.values, self.margins, strict=True))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[Any, int | float, float]]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns by name."""
        return {name: [row[place] for row in self.rows] for place, name in enumerate(self.columns)}

    def to_arrow(self) -> Any:
        """Returns an Arrow table."""
        import pyarrow

        return pyarrow.table(self.to_dict())

    def to_pandas(self) -> Any:
        """Returns a pandas frame."""
        return self.to_arrow().to_pandas()

    def table(self) -> str:
        """Shows the sums with their margins."""
        head = [self.by, self.what]
        body = [[str(key), f"{_shown(value)} ± {show_rounded(margin)}"] for key, value, margin in self.rows]
        left, right = (max(len(row[place]) for row in [head, *body]) for place in (0, 1))
        return "\n".join(f"{row[0]:<{left}}  {row[1]:>{right}}" for row in [head, ["-" * left, "-" * right], *body])

    def footer(self) -> list[str]:
        """Shows what the margins leave out, their confidence, and what was charged."""
        sure = f"± at {show_percent(self.confidence)} confidence, each alone; charged {self.charged}"
        return [f"not included in ±: {'; '.join(self.notes)}", sure]

    def __str__(self) -> str:
        return "\n".join([self.table(), *self.footer()])


@dataclass(frozen=True)
class StreamQuote:
    """What a stream will cost and how exact it will be. Free: it reads no row."""

    plan: StreamPlan
    confidence: Fraction
    opened: bool
    refusal: str

    @property
    def epsilon(self) -> Fraction:
        return self.plan.charge.epsilon

    @property
    def delta(self) -> Fraction:
        return self.plan.charge.delta

    @property
    def margins(self) -> tuple[float, ...]:
        """The margin of each step."""
        return margins_of(self.plan, self.confidence)

    def __str__(self) -> str:
        plan = self.plan
        parts = [f"ε = {show_about(self.epsilon, up=True)}"]
        parts += [f"δ = {show_about(self.delta, up=True)}"] if self.delta else []
        parts += [f"ρ = {show_about(plan.charge.rho, up=True)}"] if plan.terms.gaussian and plan.charge.rho else []
        state = "paid for already: goes on for nothing" if self.opened else self.refusal or "allowed"
        rows = "1 row" if plan.max_rows == 1 else f"{plan.max_rows} rows' worth"
        most = "one step" if plan.max_steps == 1 else f"{plan.max_steps} steps"
        person = f"counts at most {rows} in a step, in its first {most}" if plan.by_unit else "is one row"
        widest = show_rounded(max(self.margins))
        lines = {
            "price": f"{', '.join(parts)}, charged once, when the stream is opened",
            "steps": f"{len(plan.steps)} of {plan.by}, from {plan.steps[0]} to {plan.steps[-1]}",
            "each person": person,
            "noise": f"{'Gaussian, by feedback' if plan.terms.gaussian else 'geometric, in a tree'}",
            "margin": f"{plan.words} so far ± {show_rounded(self.margins[0])} at first, up to ± {widest}",
            "not included": "; ".join(plan.notes),
            "budget": state,
        }
        return "\n".join(f"{name:<13}  {text}" for name, text in lines.items())


class Stream:
    """A running sum over a catalog's table. Made by `Curator.stream`."""

    def __init__(
        self,
        plan: StreamPlan,
        question: str,
        session: Session,
        release: Callable[..., Any],
        analyst: str | None,
        confidence: Number,
    ) -> None:
        self.plan = plan
        self.question = question
        self.confidence = check_confidence(confidence)
        self._session = session
        self._release = release
        self._analyst = analyst
        self._key = stream_key(plan.identity, session.who(analyst))

    # --- advancing ----------------------------------------------------------------------------------------------

    def advance(self, until: Any = None) -> StreamAnswer:
        """Releases the sums of all new steps up to `until`, or of the next step. The first call charges for the horizon.

        Steps that were released before are not read again; if there is no new one, the answer is empty. A step without rows
        counts 0. Advance only past steps whose rows are all there: rows that come later are not counted.
        """
        charged = ""
        for _ in range(_TRIES):
            found = self._session.ledger.stream(self._key)
            if found is None:
                charged = self._open(self._end(until, 0))
                continue
            position, state = found
            end = self._end(until, position.step)
            charged = charged or f"nothing now: paid for in entry {position.opened}"
            if end <= position.step:
                return self._answer(position.step, (), charged)
            with suppress(StreamMovedError):  # goes on from where it is now
                return self._go(position, state, end, charged)
        raise LedgerError("Others keep continuing this stream.", fix="ask again.")

    def next(self) -> StreamAnswer:
        """Releases the sum of the next step."""
        return self.advance()

    def _end(self, until: Any, start: int) -> int:
        if until is not None:
            return self.plan.place(until)
        if start == len(self.plan.steps):
            raise ArgumentError(
                f"This stream has released all of its {start} steps.", fix="open one with a later start, at its own price."
            )
        return start + 1

    def _open(self, end: int) -> str:
        """Charges for the stream, unless somebody else does meanwhile. Its first state is stored with the charge.

        Returns what was charged."""
        ledger, first = self._session.ledger, RunningSum.of_terms(self.plan.terms)

        def commit(attempt: Reservation, payload: str) -> Receipt:
            return ledger.advance(attempt, payload, 0, self._seal(first, attempt.number))

        name = f"stream by {self.plan.by} from {self.plan.steps[0]}, {len(self.plan.steps)} steps: {self.question}"
        program = Opening(self.plan, max(end, 1))
        step = StreamStep(self._key)
        with suppress(StreamMovedError):
            return str(self._release(program, name, self._paid_for, within=self.question, stream=step, commit=commit))
        return ""

    def _paid_for(self, paid: Paid) -> str:
        return f"{paid.charged}, for all {len(self.plan.steps)} steps; {paid.left()}"

    def _go(self, position: Position, state: str, end: int, charged: str) -> StreamAnswer:
        ledger, running = self._session.ledger, self._resume(position, state)
        program = Advance(self.plan, continues(self._key, position.step), position.step, end, running)

        def commit(attempt: Reservation, payload: str) -> Receipt:
            return ledger.advance(attempt, payload, end, self._seal(running, attempt.number))

        name = f"steps {position.step + 1} to {end} of the stream of entry {position.opened}: {self.question}"
        step = StreamStep(self._key, position.step)
        show = partial(self._show, position, charged)
        answer: StreamAnswer = self._release(program, name, show, within=self.question, stream=step, commit=commit)
        return answer

    def _show(self, position: Position, charged: str, paid: Paid) -> StreamAnswer:
        return self._answer(position.step, paid.noisy[0].cells[0].ravel().tolist(), charged, paid.receipt)

    # --- the state ----------------------------------------------------------------------------------------------

    def _seal(self, running: RunningSum, reserved: int) -> str:
        """Returns the state, encrypted, and bound to the reservation of its last steps."""
        ledger = self._session.ledger
        made = sealed.seal(running.state(), ledger.secret(USE), ledger.context(self._key, reserved))
        return base64.b64encode(made).decode("ascii")

    def _resume(self, position: Position, state: str) -> RunningSum:
        """Returns the running sum at the ledger's step. Refuses a state of another step, such as an older copy."""
        ledger = self._session.ledger
        try:
            content = base64.b64decode(state, validate=True)
            opened = sealed.unseal(content, ledger.secret(USE), ledger.context(self._key, position.reserved))
            running = RunningSum.resume(opened)
        except (LedgerError, binascii.Error, ValueError) as error:
            if isinstance(error, LedgerError):
                raise
            running = None
        except DitherError:
            running = None
        if running is None or running.step != position.step or running.terms != self.plan.terms:
            raise LedgerError(
                f"The state of this stream is not the one after step {position.step}, which the ledger counts: it was changed, "
                "or an older copy was put in its place.",
                fix="run `dither verify`, and put the newest ledger back. What was released stays: stream.released().",
            )
        return running

    # --- what is there ------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """How many steps were released."""
        found = self._session.ledger.stream(self._key)
        return 0 if found is None else found[0].step

    @property
    def opened(self) -> bool:
        """Whether its price is paid."""
        return self._session.ledger.stream(self._key) is not None

    @property
    def quote(self) -> StreamQuote:
        """The price, the margins to expect, and whether the budget allows it. Free."""
        refusal = ""
        if not self.opened:
            program = Opening(self.plan, 1)
            refusal = self._session.preview(self._session.request(program, self.question, self._analyst)).refusal
        return StreamQuote(self.plan, self.confidence, self.opened, refusal)

    def released(self) -> StreamAnswer:
        """Returns all sums that were released, from the ledger. Free."""
        sums: list[int] = []
        entries = self._session.ledger.stream_entries(self._key)
        for record, _ in entries:
            start, more = decode_sums(record.payload)
            if start != len(sums) or start + len(more) != record.step:
                raise LedgerError("The ledger's steps of this stream do not follow each other.", fix="run `dither verify`.")
            sums += more
        return self._answer(0, sums, "nothing", entries[-1][1] if entries else None)

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of its price; None before it is opened. Each answer has the receipt of its own steps."""
        entries = self._session.ledger.stream_entries(self._key)
        return entries[0][1] if entries else None

    def plot(self, path: str | PathLike[str]) -> Path:
        """Draws the sums that were released, with the band of their margins."""
        from dither.plots import running_picture  # matplotlib is an extra

        done = self.released()
        if not done:
            raise ArgumentError("This stream has released nothing yet.", fix="advance it first.")
        note = f"each with {show_percent(self.confidence)} confidence"
        title = f"{self.plan.words} by {self.plan.by}, from {done.keys[0]} to {done.keys[-1]}"
        return running_picture(done.values, done.margins, title, note, path)

    def _answer(self, start: int, sums: Sequence[int], charged: str, receipt: Receipt | None = None) -> StreamAnswer:
        plan, end = self.plan, start + len(sums)
        worth = plan.worth
        values = tuple(int(each * worth) if (each * worth).denominator == 1 else float(each * worth) for each in sums)
        wide = margins_of(plan, self.confidence, end)[start:]
        name, keys = f"{plan.words} so far", plan.steps[start:end]
        return StreamAnswer(plan.by, name, keys, values, wide, self.confidence, plan.notes, charged, receipt)

    def __repr__(self) -> str:
        return f"<Stream of {self.plan.words} by {self.plan.by}: {self.step} of {len(self.plan.steps)} steps>"


def margins_of(plan: StreamPlan, confidence: Number, steps: int | None = None) -> tuple[float, ...]:
    """Returns the margin of each step, up to `steps`. Each holds alone."""
    each = RunningSum.of_terms(plan.terms).margins(confidence, steps).tolist()
    return tuple(float(margin * plan.worth) for margin in each)


def _shown(value: int | float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"
