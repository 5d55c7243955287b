"""One family of errors: what went wrong, where, how to fix it, what was charged.

An error is built from the question and the catalog, never from rows, so it may be shown to anyone.
"""

from __future__ import annotations

from collections.abc import Sequence


class DitherError(Exception):
    """Anything a user of dither can cause. Catch this one to catch them all."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", charged: str = "nothing") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        self.charged = charged
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [self.what]
        if self.where:
            lines += ["    " + line for line in self.where.splitlines()]
        last = f"  Fix: {self.fix}   " if self.fix else "  "
        return "\n".join([*lines, f"{last}Charged: {self.charged}."])


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


class PriceError(DitherError):
    """A loss was asked for a price it cannot state, such as a pure epsilon of Gaussian noise."""


class QueryError(DitherError):
    """A question that is not answered. `span` is where in `text` the reason stands; a caret line shows it.

    >>> print(QueryError("SUM(x) has no bounds.", text="SELECT SUM(x) FROM t", span=(11, 12), fix="declare bounds for t.x."))
    SUM(x) has no bounds.
        SELECT SUM(x) FROM t
                   ^
      Fix: declare bounds for t.x.   Charged: nothing.
    """

    def __init__(self, what: str, *, text: str = "", span: tuple[int, int] | None = None, fix: str = "") -> None:
        self.text = text
        self.span = span
        super().__init__(what, where=_caret(text, span), fix=fix)

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

    def __init__(
        self,
        problems: Sequence[tuple[int | None, str, str]],
        *,
        name: str = "The catalog",
        diagnosis: Sequence[str] = (),
    ) -> None:
        self.problems = tuple(problems)
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


class EngineError(DitherError):
    """The engine failed. The text is constant: an engine's own message may quote a value of the data.

    What was reserved for the question stays charged, because the data had been touched.

    >>> print(EngineError("ε = 0.1"))
    The question could not be computed, and the catalog is closed to new questions until it is reopened.
      Fix: ask the curator to look into it and run `dither reopen`.   Charged: ε = 0.1.
    """

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


class ClosedError(LedgerError):
    """Failures closed the catalog to new questions. The text is constant, whatever had failed.

    >>> print(ClosedError())
    This catalog is closed to new questions: an earlier one could not be computed.
      Fix: ask the curator to look into it and run `dither reopen`. Stored answers are still given.   Charged: nothing.
    """

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

    def __init__(self, name: str, *, looked: str = "") -> None:
        place = f" (looked for {looked}; a path is relative to the working folder)" if looked else ""
        fix = (
            f"name the right one{place}. If it was lost, restore a backup: a new ledger is a second budget for the same "
            "people. The first one is made by `dither init`, or by dt.open(…, make=True)."
        )
        super().__init__(f"There is no ledger {name}.", fix=fix)
