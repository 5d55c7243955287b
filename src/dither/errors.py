"""One family of errors: what went wrong, where, how to fix it, what was charged.

An error is built from the question and the catalog, never from rows, so it may be shown to anyone. Its fix is data: words
with places for arguments, so that Python spells `epsilon="0.1"`, a shell `--epsilon 0.1`, and a server a field of a request.

    class            code       exit code
    DitherError      usage      2    wrong usage that no class below names
    ArgumentError    argument   2    an argument breaks its rule
    PriceError       price      1    a loss has no such price
    QueryError       query      1    the question is not answered
    CatalogError     catalog    1    the catalog has problems
    BudgetError      budget     3    the budget does not pay for it
    LedgerError      ledger     4    the ledger cannot be used
    NoLedgerError    no_ledger  4    there is no ledger
    ClosedError      closed     4    a failure closed the catalog
    EngineError      engine     4    the question could not be computed
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar

# --- fixes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blank:
    """A value that is for the reader to choose; `word` stands for it where a shell needs one, as in --key FILE."""

    word: str = ""


@dataclass(frozen=True)
class Argument:
    """An argument with its value: `epsilon="0.1"` in Python, `--epsilon 0.1` in a shell."""

    name: str
    value: str | int | Blank


@dataclass(frozen=True)
class Name:
    """An argument's name alone: `epsilon` in Python, `--epsilon` in a shell."""

    name: str


@dataclass(frozen=True)
class Python:
    """Python code. A shell shows it as it is, unless it has words of its own for it."""

    code: str
    shell: str | None = None


@dataclass(frozen=True)
class Shell:
    """What is typed in a shell: a command or an option. It is shown as it is."""

    code: str


@dataclass(frozen=True)
class Text:
    """A name or a path in the words of a fix, which may hold braces."""

    text: str


Part = Argument | Name | Python | Shell | Text
Dialect = Callable[[Part], str]  # spells a part of a fix


class Fix(str):
    """How to get past an error. As a str it is the text for Python; `spell` gives it in another dialect.

    `words` has a place in braces for each of `parts`; a plain value is an argument of the place's name.

    >>> fix = Fix("write {epsilon}, or {margin} for the smallest price.", epsilon="0.1", margin=50)
    >>> print(fix)
    write epsilon="0.1", or margin=50 for the smallest price.
    >>> fix.as_data()
    {'words': 'write {epsilon}, or {margin} for the smallest price.', 'parts': {'epsilon': {'argument': 'epsilon', 'value': '0.1'}, 'margin': {'argument': 'margin', 'value': 50}}}
    """  # noqa: E501 - one line of output

    words: str
    parts: Mapping[str, Part]

    def __new__(cls, words: str, /, **parts: Part | Blank | str | int) -> Fix:
        known = {place: _part(place, given) for place, given in parts.items()}
        made = super().__new__(cls, _filled(words, known, python))
        made.words, made.parts = words, known
        return made

    @classmethod
    def of(cls, fix: str) -> Fix:
        """A fix from plain text, which spells no argument and may hold braces."""
        return fix if isinstance(fix, Fix) else cls(fix.replace("{", "{{").replace("}", "}}"))

    def spell(self, dialect: Dialect) -> str:
        return _filled(self.words, self.parts, dialect)

    def as_data(self) -> dict[str, Any]:
        """Words and parts, for a program that spells them its own way."""
        return {"words": self.words, "parts": {place: _as_data(part) for place, part in self.parts.items()}}

    def __reduce__(self) -> tuple[Any, ...]:
        return _fix, (self.words, dict(self.parts))


def _fix(words: str, parts: dict[str, Part]) -> Fix:
    return Fix(words, **parts)


def _part(place: str, given: Part | Blank | str | int) -> Part:
    return Argument(place, given) if isinstance(given, (str, int, Blank)) else given


def _filled(words: str, parts: Mapping[str, Part], dialect: Dialect) -> str:
    """The words with every part in its place. A place without a part is a KeyError: a fix is written by us."""
    return "".join(text + ("" if place is None else dialect(parts[place])) for text, place, _, _ in Formatter().parse(words))


def python(part: Part) -> str:
    """A part of a fix as Python writes it.

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
    """Anything a user of dither can cause. Catch this one to catch them all.

    `code` names the class for programs, and stays; `exit_code` is how the command line ends.
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
        """The whole error, with its fix in the words of a dialect."""
        lines = [self.what]
        if self.where:
            lines += ["    " + line for line in self.where.splitlines()]
        last = f"  Fix: {self.fix.spell(dialect)}   " if self.fix else "  "
        return "\n".join([*lines, f"{last}Charged: {self.charged}."])

    def as_data(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "fix": self.fix.as_data() if self.fix else None,
            "charged": self.charged,
        }

    def to_json(self) -> str:
        """The error for programs: what, where, fix and charge, and nothing that could quote the data."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2)


def extra(name: str) -> str:
    """How to get an optional part, for a fix: in a clone, and where the package is installed.

    >>> extra("plots")
    "pip install -e '.[plots]' in the clone, or pip install 'dither[plots]'."
    """
    return f"pip install -e '.[{name}]' in the clone, or pip install 'dither[{name}]'."


class DitherWarning(UserWarning):
    """Something the curator should know, and that stops nothing."""


class ArgumentError(DitherError, ValueError):
    """An argument breaks its rule; the text names the argument, the rule and the value."""

    code = "argument"


class PriceError(DitherError):
    """A loss was asked for a price it cannot state, such as a pure epsilon of Gaussian noise."""

    code, exit_code = "price", 1


class QueryError(DitherError):
    """A question that is not answered. `span` is where in `text` the reason stands; a caret line shows it.

    >>> print(QueryError("SUM(x) has no bounds.", text="SELECT SUM(x) FROM t", span=(11, 12), fix="declare bounds for t.x."))
    SUM(x) has no bounds.
        SELECT SUM(x) FROM t
                   ^
      Fix: declare bounds for t.x.   Charged: nothing.
    """

    code, exit_code = "query", 1

    def __init__(self, what: str, *, text: str = "", span: tuple[int, int] | None = None, fix: str = "") -> None:
        self.text = text
        self.span = span
        super().__init__(what, where=_caret(text, span), fix=fix)

    def as_data(self) -> dict[str, Any]:
        """With the place in the question, from the first character to the one after the last."""
        return super().as_data() | {"span": None if self.span is None else list(self.span)}

    def located(self, text: str) -> QueryError:
        """The same error with the question's text, for code that knew only the span."""
        return self if self.text or not text else QueryError(self.what, text=text, span=self.span, fix=self.fix)


def _caret(text: str, span: tuple[int, int] | None) -> str:
    if span is None or not 0 <= span[0] < span[1] <= len(text):
        return ""
    start = text.rfind("\n", 0, span[0]) + 1
    line = text[start:].split("\n", 1)[0]
    # Long lines are cut around the caret, so that the two lines stay readable on a terminal.
    left = max(0, span[0] - start - 60) if len(line) > 120 else 0
    shown = "".join(c if c.isprintable() else " " for c in line[left : left + 120])
    width = max(1, min(span[1] - start, left + 120, len(line)) - (span[0] - start))
    return f"{shown}\n{' ' * (span[0] - start - left)}{'^' * width}"


class CatalogError(DitherError):
    """What is wrong with a catalog, everything at once: (line or None, what, fix) for each problem.

    The text depends on no row. `diagnosis` may: it is for the curator, and `dither check --data` prints it.

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
        """With every problem. The diagnosis stays out: it may quote the data."""
        each = [{"line": line, "what": what, "fix": fix.as_data() if fix else None} for line, what, fix in self.problems]
        return super().as_data() | {"problems": each}


class EngineError(DitherError):
    """The engine failed. The text is constant: an engine's own message may quote a value of the data.

    What was reserved for the question stays charged, because the data had been touched.

    >>> print(EngineError("ε = 0.1"))
    The question could not be computed, and the catalog is closed to new questions until it is reopened.
      Fix: ask the curator to look into it and run `dither reopen`.   Charged: ε = 0.1.
    """

    code, exit_code = "engine", 4

    def __init__(self, charged: str = "the price of the question", *, diagnosis: str = "") -> None:
        self.diagnosis = diagnosis  # what the engine said, between the engine and the session: it may quote a value
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


class LedgerError(DitherError):
    """The ledger cannot do what was asked: it is missing, locked, full, not ours, or the catalog is another one now.

    >>> print(LedgerError("survey.ledger is locked by another process.", fix="ask again in a moment."))
    survey.ledger is locked by another process.
      Fix: ask again in a moment.   Charged: nothing.
    """

    code, exit_code = "ledger", 4


class ClosedError(LedgerError):
    """Failures closed the catalog to new questions. The text is constant, whatever had failed.

    >>> print(ClosedError())
    This catalog is closed to new questions: an earlier one could not be computed.
      Fix: ask the curator to look into it and run `dither reopen`. Stored answers are still given.   Charged: nothing.
    """

    code = "closed"

    def __init__(self) -> None:
        super().__init__(
            "This catalog is closed to new questions: an earlier one could not be computed.",
            fix="ask the curator to look into it and run `dither reopen`. Stored answers are still given.",
        )


class Interrupted(KeyboardInterrupt):
    """A question was stopped (Ctrl-C) after its price was paid. `charged` says what it cost.

    A KeyboardInterrupt of any other class does not know: nothing was charged, unless `dither history` shows a new entry.

    >>> print(Interrupted("ε = 0.1, and it stays charged"))
    charged ε = 0.1, and it stays charged
    """

    def __init__(self, charged: str) -> None:
        self.charged = charged
        super().__init__(f"charged {charged}")

    @classmethod
    def at(cls, stopped: KeyboardInterrupt, charged: str) -> Interrupted:
        """The same interruption with its charge. An engine's error that was being handled is not passed on with it."""
        stopped.__context__ = stopped.__cause__ = None
        return cls(charged)


class NoLedgerError(LedgerError):
    """There is no ledger where one was looked for; one that is there and cannot be used is another matter.

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
