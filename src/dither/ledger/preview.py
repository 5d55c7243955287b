"""Tells what reserving a question would come to, by the rules that reserving goes by, and writes nothing."""

from __future__ import annotations

from typing import NamedTuple

from dither.errors import BudgetError, LedgerError
from dither.ledger import admission, state
from dither.ledger.asked import Declaration, Request
from dither.ledger.kept import again
from dither.ledger.sealed import keys_of
from dither.ledger.store import Store
from dither.privacy.filters import Sums


class Preview(NamedTuple):
    """`again`: the entry of the answer that would be shown again, `counted` if its price would count in the asker's quota;
    `refusal`: why the ledger would refuse, empty if it would not."""

    again: int | None = None
    refusal: str = ""
    counted: bool = False


def preview(
    store: Store, identity: state.Identity, request: Request, declaration: Declaration, expected: tuple[str | None, ...]
) -> Preview:
    """What would come of this request now, with this declaration in force if it may follow what is (`expected`).

    A name that may not ask is an ArgumentError here as it is for reserving: another price would not help.
    """
    row = None if request.fresh else store.latest(request.digest)
    number = None if row is None else row.number
    kept = store.several("catalog", "caps", "total", "fuse", keys_of(request.analyst)[0])
    wanted = state.Terms.of(declaration).text()
    try:
        admission.expected(kept.get("catalog"), (*expected, wanted))
        caps = kept.get("caps") or state.caps_text(declaration.caps)
        books = _Committed(store, kept | {"catalog": wanted, "caps": caps})
        if row is None:
            admission.admit(books, request)
            return Preview()
        counted = again(books, identity, request, row).used is not None and declaration.per_analyst is not None
    except (BudgetError, LedgerError) as error:
        return Preview(number, error.what)
    return Preview(number, counted=counted)


class _Committed:
    """The books as last committed."""

    def __init__(self, store: Store, kept: dict[str, str]) -> None:
        self._kept = kept
        self.entry, self.latest = store.entry, store.latest

    def get(self, key: str) -> str | None:
        return self._kept.get(key)

    def used(self, analyst: str) -> Sums:
        return state.sums(self.get(keys_of(analyst)[0]))
