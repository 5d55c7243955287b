"""The results of a list of questions at one price: `Quotes` and `Answers`, sequences of `Quote` and `Answer`."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as stored
from fractions import Fraction
from typing import Any, overload

from dither.answer import Answer, Quote
from dither.ledger.receipts import Receipt
from dither.planning.price import Price


@dataclass(frozen=True, repr=False)
class Quotes(Sequence[Quote]):
    """The price of a list of questions, with the share of each and the margins to expect."""

    quotes: tuple[Quote, ...]
    total: Price
    refusal: str = ""  # why the budget would refuse it now
    again: int | None = None  # the entry of the stored answers that asking would return for free
    counted: bool = False  # the stored answers would count in the analyst's quota
    together: str = ""  # how the questions are measured together, and what that is worth
    waits: str = ""  # why they would wait for a curator's approval

    def __len__(self) -> int:
        return len(self.quotes)

    @overload
    def __getitem__(self, place: int) -> Quote: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Quote, ...]: ...
    def __getitem__(self, place: int | slice) -> Quote | tuple[Quote, ...]:
        return self.quotes[place]

    @property
    def price(self) -> str:
        """The whole price, as text."""
        return str(self.total)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that would be charged."""
        return self.total.epsilon

    @property
    def delta(self) -> Fraction:
        return self.total.delta

    def explain(self) -> str:
        """Shows the whole price and the plan of each question."""
        lines = [f"{'in all':<14} {self.price} for {len(self)} questions, charged before any row is read"]
        lines += [f"{'together':<14} {self.together}"] if self.together else []
        for number, quote in enumerate(self.quotes, start=1):
            lines += ["", f"question {number}", quote.explain()]
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        return {
            "quotes": [quote.as_data() for quote in self.quotes],
            "price": _price(self.total),
            "together": self.together or None,
            "refused": self.refusal or None,
            "waits": self.waits or None,
            "entry": self.again,
        }

    def to_json(self) -> str:
        """Returns JSON: each quote, the whole price, and what asking now would do."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        text = self.explain()
        if self.refusal:
            return f"{text}\n\nasked now      they would be refused: {self.refusal}"
        if self.again is None:
            return text
        counts = "; their price counts in the quota of an analyst who has not seen them" if self.counted else ""
        return f"{text}\n\nasked now      they are the answers of entry {self.again} again: charged nothing{counts}"


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """Noisy tables, one for each question of a list, at one price and with one receipt.

    `replayed`: they are the stored answers of an earlier, equal list.
    """

    answers: tuple[Answer, ...]
    receipt: Receipt
    total: Price
    replayed: bool = False
    left: Callable[[], str] = stored(default=str, compare=False)  # what was left of the budget after the charge

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...
    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[place]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def consistent(self) -> Answers:
        """Returns the answers with whole counts that are never negative and add up to the same total. Free."""
        return replace(self, answers=tuple(answer.consistent() for answer in self.answers))

    @property
    def price(self) -> str:
        """The whole price, as text."""
        return str(self.total)

    @property
    def warning(self) -> str:
        """What to read before the numbers, of all answers."""
        return "; ".join(dict.fromkeys(answer.warning for answer in self.answers if answer.warning))

    def notes(self) -> list[str]:
        """Returns what to know about all answers: warnings first, then the whole price and what is left."""
        return [*([self.warning] if self.warning else []), self.footer()]

    def footer(self) -> str:
        """Shows in one line the whole price and what is left."""
        left = self.left()
        if self.replayed:
            entry = self.receipt.body["entry"]["number"]
            charged = f"these are the answers of entry {entry}, given again: charged nothing"
        else:
            charged = f"charged {self.price} for {len(self)} questions"
        return f"in all: {charged}" + (f"; {left}" if left else "")

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        parts = [answer.as_data() for answer in self.answers]
        return {
            "answers": [{name: value for name, value in part.items() if name != "receipt"} for part in parts],
            "price": _price(self.total),
            "charged": _price(Price(Fraction(0))) if self.replayed else _price(self.total),
            "replayed": self.replayed,
            "receipt": self.receipt.as_data(),
        }

    def to_json(self) -> str:
        """Returns JSON: each answer with its share of the price, the whole price and the receipt."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self.answers) + f"<p>{html.escape(self.footer())}</p>"

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.answers), self.footer()])


def _price(price: Price) -> dict[str, str]:
    return {"epsilon": str(price.epsilon), "delta": str(price.delta)}
