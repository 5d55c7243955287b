"""The errors of dither: each says what went wrong, where, how to fix it, and what was charged.

An error is built from the question and the catalog, never from rows, so it may be shown to anyone. Its fix is data: words
with places for arguments. Python shows `epsilon="0.1"`, a shell `--epsilon 0.1`, and a server a field of a request.

    class            code       exit code
    DitherError      usage      2    any other wrong usage
    ArgumentError    argument   2    an argument breaks its rule
    PriceError       price      1    a loss has no such price
    MissingError     missing    2    a private value of a trace has no such attribute
    QueryError       query      1    the question is not answered
    CatalogError     catalog    1    the catalog has problems
    BudgetError      budget     3    the budget does not allow the question
    ApprovalError    approval   3    the question waits for a curator
    LedgerError      ledger     4    the ledger cannot be used
    NoLedgerError    no_ledger  4    there is no ledger
    StreamMovedError moved      4    somebody else advanced the stream meanwhile
    ClosedError      closed     4    a failure closed the catalog
    EngineError      engine     4    the question could not be computed
    AccessError      access     1    a server does not let this person do this
    RequestError     request    2    a server does not understand the request
    ConflictError    conflict   2    an Idempotency-Key was used before
    BusyError        busy       4    a server has too many questions waiting
    RemoteError      remote     4    a server cannot be reached, or reports another error
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar, NamedTuple

# --- fixes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blank:
    """A value that the reader chooses; a shell shows `word` for it, as in --key FILE."""

    word: str = ""


@dataclass(frozen=True)
class Argument:
    """An argument with its value: `epsilon="0.1"` in Python, `--epsilon 0.1` in a shell."""

    name: str
    value: str | int | Blank


@dataclass(frozen=True)
class Name:
    """The name of an argument: `epsilon` in Python, `--epsilon` in a shell."""

    name: str


@dataclass(frozen=True)
class Python:
    """Python code. A shell shows `shell` instead, if given."""

    code: str
    shell: str | None = None


@dataclass(frozen=True)
class Shell:
    """A command or an option for a shell, shown unchanged everywhere."""

    code: str


@dataclass(frozen=True)
class Text:
    """A name or a path in a fix. It may contain braces."""

    text: str


Part = Argument | Name | Python | Shell | Text
Dialect = Callable[[Part], str]  # shows a part of a fix


class Fix(str):
    """How to fix an error. As a str it is the text for Python; `spell` shows it in another dialect.

    `words` has a place in braces for each of `parts`. A plain value is an argument with the place's name.

    >>> fix = Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50)
    >>> print(fix)
    write epsilon="0.1", or margin=50 for the smallest price.
    >>> fix.as_data()
    {'words': 'write {epsilon}, or {margin} for the smallest price.', 'parts': {'epsilon': {'argument': 'epsilon', 'value': '0.1'}, 'margin': {'argument': 'margin', 'value': 50}}}
    """  # noqa: E501 - one line of output

    words: str
    parts: Mapping[str, Part]

    def __new__(cls, words: str, /, **parts: Part | Blank | str | int) -> Fix:
        named = {place: _part(place, given) for place, given in parts.items()}
        fix = super().__new__(cls, _filled(words, named, python))
        fix.words, fix.parts = words, named
        return fix

    @classmethod
    def of(cls, fix: str) -> Fix:
        """Returns a fix from plain text without arguments. It may contain braces."""
        return fix if isinstance(fix, Fix) else cls(fix.replace("{", "{{").replace("}", "}}"))

    def spell(self, dialect: Dialect) -> str:
        return _filled(self.words, self.parts, dialect)

    def as_data(self) -> dict[str, Any]:
        """Returns words and parts, for programs that show them in their own way."""
        return {"words": self.words, "parts": {place: _as_data(part) for place, part in self.parts.items()}}

    def __reduce__(self) -> tuple[Any, ...]:
        return _fix, (self.words, dict(self.parts))


def _fix(words: str, parts: dict[str, Part]) -> Fix:
    return Fix(words, **parts)


def _part(place: str, given: Part | Blank | str | int) -> Part:
    return Argument(place, given) if isinstance(given, (str, int, Blank)) else given


def _filled(words: str, parts: Mapping[str, Part], dialect: Dialect) -> str:
    """Fills every part into its place. Raises KeyError for a place without a part."""
    return "".join(text + ("" if place is None else dialect(parts[place])) for text, place, _, _ in Formatter().parse(words))


def python(part: Part) -> str:
    """Shows a part of a fix in Python.

    >>> python(Argument("analyst", "ada")), python(Argument("fresh", True)), python(Argument("epsilon", Blank()))
    ('analyst="ada"', 'fresh=True', 'epsilon=')
    """
    match part:
        case Argument(name, Blank(word)):
            return f"{name}=…" if word else f"{name}="
        case Argument(name, str() as value):
            return f'{name}="{value}"'
        case Argument(name, value):
            return f"{name}={value}"
        case Name(name):
            return name
        case Text(text):
            return text
        case Python(code) | Shell(code):
            return code


def _as_data(part: Part) -> dict[str, Any]:
    match part:
        case Argument(name, Blank()):
            return {"argument": name, "value": None}
        case Argument(name, value):
            return {"argument": name, "value": value}
        case Name(name):
            return {"argument": name}
        case Text(text):
            return {"text": text}
        case Python(code, None):
            return {"python": code}
        case Python(code, shell):
            return {"python": code, "shell": shell}
        case Shell(code):
            return {"shell": code}


# --- errors -----------------------------------------------------------------------------------------------------


class DitherError(Exception):
    """The base class of all errors that a user of dither can cause.

    `code` names the class for programs, and never changes. `exit_code` is the exit code of the command line.
    """

    code: ClassVar[str] = "usage"
    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, *, where: str = "", fix: str = "", charged: str = "nothing") -> None:
        self.what = what
        self.where = where
        self.fix = Fix.of(fix)
        self.charged = charged
        super().__init__(self.text_in(python))

    def text_in(self, dialect: Dialect) -> str:
        """Shows the whole error, with its fix in a dialect."""
        lines = [self.what]
        if self.where:
            lines += ["    " + line for line in self.where.splitlines()]
        last = f"  Fix: {self.fix.spell(dialect)}   " if self.fix else "  "
        return "\n".join([*lines, f"{last}Charged: {self.charged}."])

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        return {
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "fix": self.fix.as_data() if self.fix else None,
            "charged": self.charged,
        }

    def to_json(self) -> str:
        """Returns the error as JSON: what, where, fix and charge. It never quotes the data."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2)


def extra(name: str) -> str:
    """Returns the fix for a missing extra: how to install it, in a clone and from the package.

    >>> extra("plots")
    "pip install -e '.[plots]' in the clone, or pip install 'dither[plots]'."
    """
    return f"pip install -e '.[{name}]' in the clone, or pip install 'dither[{name}]'."


class DitherWarning(UserWarning):
    """A warning for the curator that does not stop anything."""


class ArgumentError(DitherError, ValueError):
    """An argument breaks its rule. The text names the argument, the rule and the value."""

    code = "argument"


class PriceError(DitherError):
    """A loss has no such price, such as a pure epsilon for Gaussian noise."""

    code, exit_code = "price", 1


class Form(NamedTuple):
    """A question that is answered, for one that is refused. `words` say what it is.

    `complete`: it runs as it is. Otherwise it is a shape, and the reader fills in what the words name.
    """

    words: str
    question: str
    complete: bool = True


class QueryError(DitherError):
    """A question is refused. `span` is the place of the reason in `text`; a caret line marks it.

    `mixes`: what mixes people's rows, for the rewriting that finds `forms`: questions that are answered instead.

    >>> print(QueryError("SUM(x) has no bounds.", text="SELECT SUM(x) FROM t", span=(11, 12), fix="declare bounds for t.x."))
    SUM(x) has no bounds.
        SELECT SUM(x) FROM t
                   ^
      Fix: declare bounds for t.x.   Charged: nothing.
    """

    code, exit_code = "query", 1

    def __init__(
        self,
        what: str,
        *,
        text: str = "",
        span: tuple[int, int] | None = None,
        fix: str = "",
        mixes: str = "",
        forms: tuple[Form, ...] = (),
    ) -> None:
        self.text = text
        self.span = span
        self.mixes = mixes
        self.forms = forms
        super().__init__(what, where=_caret(text, span), fix=fix)

    def text_in(self, dialect: Dialect) -> str:
        """Shows the forms below the fix, each in a line of its own."""
        whole = super().text_in(dialect)
        if not self.forms:
            return whole
        advice, _, charged = whole.rpartition("   Charged: ")
        lines = [f"    {words}:\n      {question}" for words, question, _ in self.forms]
        return "\n".join([f"{advice} You can ask:", *lines, f"  Charged: {charged}"])

    def as_data(self) -> dict[str, Any]:
        """Adds the span in the question (its first character, and the one after its last), and the forms if there are any."""
        forms = {"forms": [each._asdict() for each in self.forms]} if self.forms else {}
        return super().as_data() | {"span": None if self.span is None else list(self.span)} | forms

    def located(self, text: str) -> QueryError:
        """Returns the error with the question's text, for code that knows only the span."""
        return (
            self if self.text or not text else QueryError(self.what, text=text, span=self.span, fix=self.fix, mixes=self.mixes)
        )

    def with_forms(self, forms: tuple[Form, ...]) -> QueryError:
        """Returns the error with questions that are answered instead."""
        return QueryError(self.what, text=self.text, span=self.span, fix=self.fix, mixes=self.mixes, forms=forms)


def _caret(text: str, span: tuple[int, int] | None) -> str:
    if span is None or not 0 <= span[0] < span[1] <= len(text):
        return ""
    start = text.rfind("\n", 0, span[0]) + 1
    line = text[start:].split("\n", 1)[0]
    # Long lines are cut around the caret, so that both lines fit on a terminal.
    left = max(0, span[0] - start - 60) if len(line) > 120 else 0
    shown = "".join(c if c.isprintable() else " " for c in line[left : left + 120])
    width = max(1, min(span[1] - start, left + 120, len(line)) - (span[0] - start))
    return f"{shown}\n{' ' * (span[0] - start - left)}{'^' * width}"


class CatalogError(DitherError):
    """All problems of a catalog at once: (line or None, what, fix) for each.

    The text does not depend on rows. `diagnosis` may: it is for the curator, and `dither check --data` prints it.

    >>> print(CatalogError([(3, "epsilon must be above 0.", "write epsilon = 1."), (7, "unit is missing.", "")]))
    The catalog has 2 problems.
        line 3: epsilon must be above 0.
          Fix: write epsilon = 1.
        line 7: unit is missing.
      Charged: nothing.
    """

    code, exit_code = "catalog", 1

    def __init__(
        self,
        problems: Sequence[tuple[int | None, str, str]],
        *,
        name: str = "The catalog",
        diagnosis: Sequence[str] = (),
    ) -> None:
        self.problems = tuple((line, what, Fix.of(fix)) for line, what, fix in problems)
        self.diagnosis = tuple(diagnosis)
        if len(self.problems) == 1:
            line, what, fix = self.problems[0]
            super().__init__(what, where=f"{name}, line {line}" if line else "", fix=fix)
            return
        shown = [
            f"{f'line {line}: ' if line else ''}{what}" + (f"\n  Fix: {fix}" if fix else "")
            for line, what, fix in self.problems
        ]
        super().__init__(f"{name} has {len(self.problems)} problems.", where="\n".join(shown))

    def as_data(self) -> dict[str, Any]:
        """Adds every problem, but not the diagnosis, which may quote the data."""
        each = [{"line": line, "what": what, "fix": fix.as_data() if fix else None} for line, what, fix in self.problems]
        return super().as_data() | {"problems": each}


class EngineError(DitherError):
    """The engine failed. The text is constant: an engine's own message may quote a value of the data.

    The price of the question stays charged, because the data was read.

    >>> print(EngineError("ε = 0.1"))
    The question could not be computed, and the catalog is closed to new questions until it is reopened.
      Fix: ask the curator to look into it and run `dither reopen`.   Charged: ε = 0.1.
    """

    code, exit_code = "engine", 4

    def __init__(self, charged: str = "the price of the question", *, diagnosis: str = "") -> None:
        self.diagnosis = diagnosis  # the engine's own message, for the session only: it may quote a value
        what = "The question could not be computed, and the catalog is closed to new questions until it is reopened."
        super().__init__(what, fix="ask the curator to look into it and run `dither reopen`.", charged=charged)


class BudgetError(DitherError):
    """The budget does not allow the question. The text depends on earlier questions and the catalog, never on rows.

    >>> print(BudgetError("The budget does not allow this question: left ε = 0.1."))
    The budget does not allow this question: left ε = 0.1.
      Fix: ask at a lower price if something is left; a question that was answered before is free.   Charged: nothing.
    """

    code, exit_code = "budget", 3

    def __init__(
        self, what: str, *, fix: str = "ask at a lower price if something is left; a question that was answered before is free."
    ) -> None:
        super().__init__(what, fix=fix)


class ApprovalError(DitherError):
    """The question needs a curator's approval. `request` is the entry of the request; 0 if none was filed, as for a quote.

    >>> print(ApprovalError("it costs more than ε = 0.1", request=12))
    This question waits for a curator: it costs more than ε = 0.1. Its request is entry 12.
      Fix: ask the same again once it is approved.   Charged: nothing.
    """

    code, exit_code = "approval", 3

    def __init__(self, why: str, *, request: int = 0) -> None:
        self.why = why
        self.request = request
        filed = f" Its request is entry {request}." if request else ""
        fix = "ask the same again once it is approved." if request else "ask it: that files the request."
        super().__init__(f"This question waits for a curator: {why}.{filed}", fix=fix)

    def as_data(self) -> dict[str, Any]:
        """Adds the entry of the request."""
        return super().as_data() | {"request": self.request or None}


class LedgerError(DitherError):
    """The ledger cannot be used: it is missing, locked, full or someone else's, or the catalog has changed.

    >>> print(LedgerError("survey.ledger is locked by another process.", fix="ask again in a moment."))
    survey.ledger is locked by another process.
      Fix: ask again in a moment.   Charged: nothing.
    """

    code, exit_code = "ledger", 4


class ClosedError(LedgerError):
    """A failure, or the curator, closed the catalog to new questions. The text is the same for every failure.

    >>> print(ClosedError())
    This catalog is closed to new questions: an earlier one could not be computed.
      Fix: ask the curator to look into it and run `dither reopen`. Stored answers are still given.   Charged: nothing.
    """

    code = "closed"

    def __init__(self, *, by_hand: bool = False) -> None:
        why = "the curator closed it" if by_hand else "an earlier one could not be computed"
        fix = "ask the curator" if by_hand else "ask the curator to look into it and run `dither reopen`"
        super().__init__(f"This catalog is closed to new questions: {why}.", fix=f"{fix}. Stored answers are still given.")


class AccessError(DitherError):
    """A server does not let somebody do this: they are not logged in, or may not. `status`: of the HTTP response."""

    code, exit_code = "access", 1

    def __init__(self, what: str, *, status: int, fix: str) -> None:
        self.status = status
        super().__init__(what, fix=fix)


class RequestError(DitherError):
    """A server does not understand a request; no question was read. `status`: of the HTTP response."""

    code = "request"

    def __init__(self, what: str, *, status: int, fix: str) -> None:
        self.status = status
        super().__init__(what, fix=fix)


class ConflictError(DitherError):
    """An Idempotency-Key was used before, for another request. `status`: of the HTTP response."""

    code = "conflict"

    def __init__(self, what: str, *, status: int, fix: str) -> None:
        self.status = status
        super().__init__(what, fix=fix)


class BusyError(DitherError):
    """A server has too many questions waiting, or is stopping. Nothing was charged.

    >>> print(BusyError())
    The server has too many questions waiting.
      Fix: ask again in a moment.   Charged: nothing.
    """

    code, exit_code = "busy", 4

    def __init__(self, what: str = "The server has too many questions waiting.") -> None:
        super().__init__(what, fix="ask again in a moment.")


class Interrupted(KeyboardInterrupt):
    """A question was interrupted (Ctrl-C) after its price was charged. `charged` says what was charged.

    After any other KeyboardInterrupt nothing was charged, unless `dither history` shows a new entry.

    >>> print(Interrupted("ε = 0.1, and it stays charged"))
    charged ε = 0.1, and it stays charged
    """

    def __init__(self, charged: str) -> None:
        self.charged = charged
        super().__init__(f"charged {charged}")

    @classmethod
    def at(cls, stopped: KeyboardInterrupt, charged: str) -> Interrupted:
        """Returns the interruption with its charge, and drops an engine's error that was being handled."""
        stopped.__context__ = stopped.__cause__ = None
        return cls(charged)


class NoLedgerError(LedgerError):
    """There is no ledger at this place. A ledger that exists but cannot be used raises LedgerError.

    >>> print(NoLedgerError("survey.ledger"))  # doctest: +ELLIPSIS
    There is no ledger survey.ledger.
      Fix: name the right one. If it was lost, restore a backup: ...   Charged: nothing.
    """

    code = "no_ledger"

    def __init__(self, name: str, *, looked: str = "") -> None:
        fix = Fix(
            "name the right one{place}. If it was lost, restore a backup: a new ledger is a second budget for the same "
            "people. The first one is made by `dither init`{opened}.",
            place=Text(f" (looked for {looked}; a path is relative to the working folder)" if looked else ""),
            opened=Python(", or by dt.open(…, make=True)", shell=""),
        )
        super().__init__(f"There is no ledger {name}.", fix=fix)
