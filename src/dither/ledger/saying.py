"""What a failure of the store means for who asked: what was charged, or may have been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dither.errors import LedgerError

SPENT = "the price of the question"
SHARED = "nothing, except perhaps in the quota of whoever had not seen this answer"
UNSURE = "the price of the question, unless it was still given back: see `dither history`"


@contextmanager
def saying(charged: str, unsure: str = "") -> Iterator[None]:
    try:
        yield
    except LedgerError as error:
        raise meaning(error, charged, unsure) from None


def meaning(error: LedgerError, charged: str, unsure: str) -> LedgerError:
    """What an error of the store means here; `unsure` where the store cannot tell whether it has written."""
    says = unsure if unsure and error.charged != "nothing" else charged
    return LedgerError(error.what, where=error.where, fix=error.fix, charged=says)
