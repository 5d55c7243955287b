"""Composition as a mechanism: several releases of the same data, at one price.

    Compose(K1, K2, ...)         releases (K1(x), K2(x), ...), each with its own noise       loss: the sum
    Adaptive(K1, choose)         releases (a, K2(x)) with a = K1(x) and K2 = choose(a)       loss: K1's and the dearest K2's

Why it is private: given the data, the outputs of `Compose` are independent, so the log ratio of a tuple is the sum of the log
ratios of its elements. In `Adaptive` the second release is independent of the data given the first output and the data, so
the log ratio is the first's plus that of the chosen one, which is at most the dearest.

All parts get the same data x. A part that asks something of the data is an `Oblivious` mechanism (oblivious.py).

What a second answer depends on must be paid for. A mechanism can be private for every pair of questions fixed in advance and
tell everything if the second question may depend on the first answer (docs/textbook.md): `verify` sees it on the joint law.
For a pure price there is no such gap: each transcript is that of some pair fixed in advance.
Reference: Dwork, McSherry, Nissim and Smith, TCC 2006; Dwork and Roth 2014, section 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dither.errors import ArgumentError, Fix, Python
from dither.exact import numbers
from dither.exact.laws.joint import MOST_OUTCOMES, Branching, Product, values
from dither.exact.numbers import Number
from dither.mechanisms.base import Example, Mechanism, check_confidence
from dither.mechanisms.channel import Channel
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.randomized_response import RandomizedResponse
from dither.mechanisms.truncated import TruncatedGeometric
from dither.privacy.composition import Releasing, largest
from dither.privacy.losses import ZCDP, Curve, Loss, total

_MOST_PARTS = 1000


def check_releasing(mechanism: Any, name: str = "mechanism") -> Any:
    """Returns the mechanism. Refuses what has no release, loss, law and outcome."""
    needed = ("release", "loss", "law", "outcome")
    if isinstance(mechanism, type) or not all(callable(getattr(mechanism, part, None)) for part in needed):
        what = f"{name} must be a mechanism, and it is a {type(mechanism).__name__}."
        raise ArgumentError(what, fix=Fix("pass one, such as {call}.", call=Python("Geometric(epsilon=1, sensitivity=1)")))
    return mechanism


@dataclass(frozen=True)
class Compose(Mechanism):
    """Releases the same data through every part, each with its own noise, as one tuple.

    Guarantee: the sum of the parts' losses. All parts are fixed in advance, so their curves add up as well.
    Relies on: nothing else. `parts` names the parts in a list.

    >>> from dither.mechanisms.geometric import Geometric
    >>> both = Compose(Geometric(epsilon="1/2", sensitivity=1), Geometric(epsilon=1, sensitivity=1))
    >>> both.loss(), len(both.release(7))
    (Pure(epsilon=Fraction(3, 2), rho=Fraction(5, 8)), 2)
    """

    tag: ClassVar[str] = "Compose"
    parts: tuple[Any, ...]

    def __init__(self, *mechanisms: Any, parts: Iterable[Any] = ()) -> None:
        listed = (*mechanisms, *numbers.items(parts, "parts", fix="give a list of mechanisms."))
        if not 1 <= len(listed) <= _MOST_PARTS:
            what = f"Compose takes 1 to {_MOST_PARTS} mechanisms, and it was given {len(listed)}."
            raise ArgumentError(what, fix="for the price of many releases use loss().repeat(n) or curve().repeat(n).")
        object.__setattr__(self, "parts", tuple(check_releasing(part) for part in listed))

    @classmethod
    def repeat(cls, mechanism: Any, n: int) -> Compose:
        """Returns the n-fold composition of one mechanism.

        >>> Compose.repeat(RandomizedResponse(epsilon="1/10"), 10).loss().epsilon()
        Fraction(1, 1)
        """
        times = numbers.whole(n, "n", least=1)
        return cls(parts=[check_releasing(mechanism)] * min(times, _MOST_PARTS + 1))

    def release(self, exact: Any) -> tuple[Any, ...]:
        return tuple(part.release(exact) for part in self.parts)

    def loss(self) -> Loss:
        return total([part.loss() for part in self.parts])

    def zcdp(self) -> ZCDP:
        stated = [part.zcdp() if hasattr(part, "zcdp") else part.loss().zcdp() for part in self.parts]
        return total(stated).zcdp()

    def curve(self) -> Curve:
        return total([part.curve() for part in self.parts]).curve()

    def law(self, exact: Any) -> Product:
        """Returns the joint law of the tuples, numbered as in exact/laws/joint.py; `outcome` reads a number."""
        return Product(tuple(part.law(exact) for part in self.parts))

    def outcome(self, k: int) -> tuple[Any, ...]:
        places = values(numbers.whole(k, "k", least=0), len(self.parts))
        return tuple(part.outcome(place) for part, place in zip(self.parts, places, strict=True))

    def margin(self, confidence: Number) -> Any:
        """Returns the largest margin of the parts, such that all answers are within it together with this confidence."""
        each = 1 - (1 - check_confidence(confidence)) / len(self.parts)
        if not all(callable(getattr(part, "margin", None)) for part in self.parts):
            raise ArgumentError("A part states no margin.", fix="ask the parts that do.")
        return max(part.margin(each) for part in self.parts)

    def parameters(self) -> dict[str, Any]:
        if not all(isinstance(part, Mechanism) for part in self.parts):
            raise ArgumentError(
                "A part has no record: it has a function of yours.", fix="record the mechanism inside it, and the function."
            )
        return {"parts": self.parts}

    def words(self, on: str = "the answer", who: str = "person") -> str:
        said = [part.words(on, who) if isinstance(part, Mechanism) else type(part).__name__ for part in self.parts]
        return f"{len(said)} releases: " + "; ".join(said)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        coin, count = RandomizedResponse(epsilon=1), TruncatedGeometric(epsilon="1/2", sensitivity=1, n=3)
        return (
            Example(cls(count, TruncatedGeometric(epsilon=1, sensitivity=1, n=2)), 1, (0, 2)),
            Example(cls.repeat(coin, 3), 0, (1,)),
            Example(cls(coin, count, Channel([["2/3", "1/3"], ["1/2", "1/2"]])), 0, (1,)),
            Example(cls(Channel([["9/10", "1/10", 0], ["9/10", 0, "1/10"]]), coin), 0, (1,)),
            Example(cls(*(Exponential(epsilon=e, sensitivity=1) for e in (1, "1/2"))), (3, 1), ((2, 2), (4, 1))),
        )


@dataclass(frozen=True)
class Adaptive:
    """Releases the data through `first`, then through the mechanism that `choose` makes of the first answer.

    Guarantee: the first's loss and `second`, the most that any choice costs. Without `second` it is found by asking `choose`
    about every answer the first can give, which must be few.
    Relies on: `choose` looking at the answer only, never at the data. A choice dearer than that is refused before it runs.

    >>> yes = RandomizedResponse(epsilon=1)
    >>> follow = Adaptive(yes, lambda answer: RandomizedResponse(epsilon=2 if answer else "1/2"))
    >>> follow.loss().epsilon(), len(follow.release(1))
    (Fraction(3, 1), 2)
    """

    first: Releasing
    choose: Callable[[Any], Any]
    second: Loss | None = None

    def __post_init__(self) -> None:
        check_releasing(self.first, "first")
        choose: Any = self.choose
        second: Any = self.second
        if not callable(choose):
            what = f"choose must be callable, and it is a {type(choose).__name__}."
            raise ArgumentError(what, fix="pass a function from the first answer to a mechanism.")
        if second is not None and not isinstance(second, Loss):
            what = f"second must be a loss, and it is a {type(second).__name__}."
            raise ArgumentError(what, fix="pass the most that a choice costs, such as Pure(1).")

    @cached_property
    def dearest(self) -> Loss:
        """Returns the most that a choice costs: `second`, or the largest loss over every answer that the first can give."""
        if self.second is not None:
            return self.second
        first, last = self._ends(0)
        return largest([self._choice(self.first.outcome(k)).loss() for k in range(first, last + 1)])

    def _choice(self, answer: Any) -> Any:
        return check_releasing(self.choose(answer), "the choice")

    def chosen(self, answer: Any) -> Any:
        """Returns the mechanism that follows this answer. Refuses one that costs more than `dearest`."""
        then = self._choice(answer)
        if not _covers(self.dearest, then.loss()):
            raise ArgumentError("The choice costs more than the price of this mechanism counts.", fix="raise `second`.")
        return then

    def release(self, exact: Any) -> tuple[Any, Any]:
        self.loss()  # without a price nothing is released
        answer = self.first.release(exact)
        return answer, self.chosen(answer).release(exact)

    def loss(self) -> Loss:
        return total([self.first.loss(), self.dearest])

    def curve(self) -> Curve:
        return self.loss().curve()

    def _ends(self, exact: Any) -> tuple[int, int]:
        try:
            first, last = self.first.law(exact).span()
        except ArgumentError:  # asked for the price, without data
            first = last = None
        if first is None or last is None or last - first >= MOST_OUTCOMES:
            raise ArgumentError(
                "The first answer has too many values to ask `choose` about each.",
                fix=Fix("state the most that a choice costs: {second}.", second=Python("second=Pure(1)")),
            )
        return first, last

    def law(self, exact: Any) -> Branching:
        """Returns the joint law of the pairs, numbered as in exact/laws/joint.py; `outcome` reads a number."""
        first, last = self._ends(exact)
        branches = (self.chosen(self.first.outcome(k)).law(exact) for k in range(first, last + 1))
        return Branching(self.first.law(exact), tuple(branches))

    def outcome(self, k: int) -> tuple[Any, Any]:
        place, then = values(numbers.whole(k, "k", least=0), 2)
        answer = self.first.outcome(place)
        return answer, self.chosen(answer).outcome(then)


def _covers(allowed: Loss, loss: Loss) -> bool:
    """Returns whether `allowed` is at least the loss, in both prices: equal epsilons may have different rho."""
    both = largest([allowed, loss])
    return both == allowed and both.zcdp() == allowed.zcdp()
