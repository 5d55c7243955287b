"""Decides whether a question is admitted: every rule, on values read inside one transaction, without looking at rows.

Also finds stored answers and checks their signatures before they are shown again. `preview` applies the same rules without
writing anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

from dither.errors import ApprovalError, ArgumentError, BudgetError, ClosedError, Fix, LedgerError, Python
from dither.exact.numbers import show_about
from dither.ledger import state
from dither.ledger.approvals import Approval, Approvals
from dither.ledger.receipts import Keys, Receipt, entry_message, is_signed, stored_receipt
from dither.ledger.records import (
    Advanced,
    Closed,
    Committed,
    Declaration,
    Entry,
    Replayed,
    Request,
    Reserved,
    hash_of,
    parse,
    plain,
    replay_key,
)
from dither.ledger.state import Fuse, History, Terms, keys_of
from dither.ledger.stores.base import Row, Store
from dither.ledger.streams import Position
from dither.privacy.filters import GRID, MOST_QUESTIONS, Caps, Charge, Sums
from dither.text import folded


class View(Protocol):
    """What the rules read: inside a transaction when reserving, as last committed when previewing."""

    def get(self, key: str) -> str | None: ...

    def used(self, analyst: str) -> Sums: ...

    def entry(self, number: int) -> Row | None: ...

    def latest(self, question: str) -> Row | None: ...


class Admitted(NamedTuple):
    """A question that every rule admits: the terms in force, and the sums including its price."""

    terms: Terms
    caps: Caps
    total: Sums
    rule: str
    used: Sums  # by the analyst
    approval: Approval | None = None


def admit(view: View, request: Request, now: str) -> Admitted:
    """Applies every rule for a new charge. Refuses with BudgetError, ApprovalError, ClosedError, ArgumentError or LedgerError.

    `now`: the time of the entry that would be written."""
    if closed := Fuse.parse(view.get("fuse")).closed:
        row = view.entry(closed)
        raise ClosedError(by_hand=row is not None and row.kind == Closed.KIND)
    terms, caps = allowed_terms(view, request, request.charge)
    charge, spent, before = request.charge, state.decode_sums(view.get("total")), view.used(request.analyst)
    used, total = before.plus(charge), spent.plus(charge)
    rule = caps.rule(total)
    if rule is None:
        raise BudgetError(f"The budget does not allow this question: {cost(charge, caps)}; left {left(caps, spent)}.")
    if terms.per_analyst is not None:
        used = quota(caps, terms.per_analyst, before, request.analyst, charge)
    policy = view.get("approvals")
    approval = None if policy is None else Approvals.parse(policy).approval(request, now)
    return Admitted(terms, caps, total, rule, used, approval)


def allowed_terms(view: View, request: Request, charge: Charge) -> tuple[Terms, Caps]:
    """Returns the terms in force and the caps. Refuses a question or price that they do not allow."""
    terms, stored_caps = view.get("catalog"), view.get("caps")
    if terms is None or stored_caps is None:
        raise LedgerError(
            "This ledger has no catalog yet.",
            fix=Fix("open the catalog with it{call}.", call=Python(": dt.open(catalog, ledger=…)", shell="")),
        )
    caps = state.decode_caps(stored_caps)
    return check_terms(Terms.parse(terms), caps, request, charge), caps


def check_terms(terms: Terms, caps: Caps, request: Request, charge: Charge) -> Terms:
    """Returns the terms. Refuses a question planned with other terms, an undeclared analyst, or a price out of range."""
    now = (terms.catalog, terms.snapshot, terms.neighbours)
    if now != (request.catalog_hash, request.snapshot, request.neighbours):
        raise _catalog_changed()
    if terms.analysts is not None and request.analyst not in terms.analysts:
        raise ArgumentError(
            f"{request.analyst} is none of the catalog's analysts.",
            fix="name yourself as the curator declared you, or ask the curator to add the name to `analysts`.",
        )
    if terms.per_query is not None and (most := caps.share(terms.per_query)).rule(Sums().plus(charge)) is None:
        raise BudgetError(f"One question may cost at most {left(most, Sums())} in this catalog, and {cost(charge, caps)}.")
    check_least_price(terms, caps, charge)
    return terms


def check_least_price(terms: Terms, caps: Caps, charge: Charge) -> None:
    """Refuses a price below the least one. Only public values are free.

    Without a least price an analyst could ask without end, and each question may leak a little beside its answer.
    """
    if not charge.epsilon:
        return
    if charge.epsilon < terms.least_epsilon:
        least = show_about(terms.least_epsilon, up=True)
        raise BudgetError(
            f"One question costs at least ε = {least} in this catalog, and it costs ε = {show_about(charge.epsilon, up=True)}.",
            fix=f"spend ε = {least} or more.",
        )
    if charge.rho is not None and charge.rho * MOST_QUESTIONS < caps.rho_max:
        raise BudgetError(
            f"One question costs at least ρ = {show_about(caps.least_rho, up=True)} in this catalog, and {cost(charge, caps)}.",
            fix="round the rho of its charge up to that.",
        )


def quota(caps: Caps, per_analyst: Fraction | None, used: Sums, analyst: str, charge: Charge) -> Sums:
    """Returns the analyst's sums including this question, or refuses. Quotas are for fairness, not for privacy."""
    after = used.plus(charge)
    if per_analyst is None:
        return after
    most = caps.share(per_analyst)
    if most.rule(after) is None:
        raise BudgetError(
            f"The quota of {analyst} does not allow this question: {cost(charge, caps)}; "
            f"left {left(most, used)} of ε = {show_about(per_analyst, up=False)}.",
            fix="ask at a lower price if something is left; an answer that you have seen before is free.",
        )
    return after


def cost(charge: Charge, caps: Caps) -> str:
    parts = [f"ε = {show_about(charge.epsilon, up=True)}"] + (
        [f"δ = {show_about(charge.delta, up=True)}"] if charge.delta else []
    )
    if caps.rho_max and charge.rho is not None:
        parts.append(f"or ρ = {show_about(charge.rho, up=True)}")
    return "it costs " + ", ".join(parts)


def left(caps: Caps, sums: Sums) -> str:
    """Shows what is left of each sum. A sum may be exceeded while the other admits questions; then nothing is left of it."""
    parts = [f"ε = {_left(caps.epsilon, sums.epsilon)}"]
    if caps.delta_sums:
        parts.append(f"δ = {_left(caps.delta_sums, sums.delta)}")
    if caps.rho_max:
        parts.append(f"or ρ = {'0' if sums.unstated else _left(caps.rho_max, sums.rho)}")
    return ", ".join(parts)


def _left(cap: Fraction, used: int) -> str:
    return show_about(max(Fraction(0), cap - Fraction(used, GRID)), up=False)


def check_in_force(now: str | None, among: tuple[str | None, ...] | None) -> None:
    """Refuses if the catalog in force is not `among` these: an old session must not undo a newer declaration."""
    if among is not None and now not in among:
        raise _catalog_changed()


def _catalog_changed() -> LedgerError:
    return LedgerError(
        "The catalog was changed while this session was open.", fix="open the catalog again; what was spent stays spent."
    )


def check_unchanged(caps: Caps, history: History | None, declared: Declaration) -> None:
    """Refuses a catalog that changes the budget, or the unit or neighbours of tables already asked about."""
    if (caps.epsilon, caps.delta) != (declared.epsilon, declared.delta):
        raise LedgerError(
            "The catalog's budget is not the one this ledger was opened with "
            f"(ε = {show_about(caps.epsilon, up=False)}, δ = {show_about(caps.delta, up=False)}).",
            fix="declare the old budget again. It is permanent: a new ledger would be a second budget for the same people.",
        )
    if history is None:
        return
    if history.neighbours != declared.neighbours:
        raise LedgerError(
            f"The catalog's neighbour relation was {history.neighbours!r} and is {declared.neighbours!r} now: "
            "losses under different relations do not add.",
            fix="declare the old relation again.",
        )
    for table, unit in sorted(history.tables.items()):
        now = declared.units.get(table, unit)
        if now != unit:
            raise LedgerError(
                f"The unit of {table} was {unit!r} when questions were answered and is {now!r} now: "
                "what was promised to the old unit cannot be counted for the new one.",
                fix=_old_unit(table, unit, now),
            )


def _old_unit(table: str, unit: str, now: str) -> str:
    """Returns the fix for a changed unit. A table that was asked about can get references only under another name."""
    if not now.startswith(f"{unit}, which is "):
        return "declare the old unit again."
    return f"declare {table} without references again. To join it, declare its source once more, as another table, with them."


def add_tables(history: History | None, terms: Terms, request: Request) -> History:
    """Returns the history with this question's tables added."""
    tables = history.tables if history else {}
    added = {name: terms.units.get(name, folded(request.unit)) for name in request.tables if name not in tables}
    return History(terms.neighbours, tables | added)


class StoredAnswer(NamedTuple):
    """A stored answer with its receipt."""

    payload: str
    receipt: Receipt
    analyst: str  # who asked first
    time: str
    charged: bool  # whether it was counted in this analyst's quota now
    caps: Caps
    total: Sums  # what everyone had spent when it was shown again


class Replay(NamedTuple):
    """A stored answer about to be shown again. Its price counts once in the quota of each analyst."""

    kept: StoredAnswer
    loss: Charge
    used: Sums | None  # by this analyst including that price; None if this analyst has seen the answer


def replay(view: View, keys: Keys, request: Request, row: Row) -> Replay:
    """Returns the stored answer of this row. Refuses if the terms or the quota do not allow this analyst to see it."""
    reserved, question, payload, receipt = read_answer(view.entry, keys, row, request.digest)
    terms, caps = allowed_terms(view, request, question.loss)
    analyst = request.analyst
    seen = view.latest(replay_key(row.number, analyst)) if question.analyst != analyst else None
    known = question.analyst == analyst or (seen is not None and check_shown(seen, keys, row.number, analyst))
    used = None if known else quota(caps, terms.per_analyst, view.used(analyst), analyst, question.loss)
    total = state.decode_sums(view.get("total"))
    return Replay(StoredAnswer(payload, receipt, question.analyst, reserved.time, not known, caps, total), question.loss, used)


def read_answer(entry: Callable[[int], Row | None], keys: Keys, row: Row, digest: str) -> tuple[Entry, Reserved, str, Receipt]:
    """Returns the reservation, the answer and its receipt. Refuses a wrong signature or an answer to another question.

    The `question` column of a row is not signed, so the digest inside the entry is compared."""
    answer = parse(row).record
    if not isinstance(answer, Committed) or answer.digest != digest or not 0 < answer.reserved < row.number:
        raise _damaged(row)
    before = entry(answer.reserved)
    if before is None:
        raise _damaged(row)
    read = _read_answer if len(row.body) + len(before.body) > SHORT else _read_short_answer
    reserved, question, payload, receipt = read(keys.ledger, keys.at(row.number), row, before)
    return reserved, question, payload, replace(receipt, body=plain(receipt.body, "receipt"))  # whoever gets it may change it


def _read_answer(ledger: str, key: str, row: Row, before: Row) -> tuple[Entry, Reserved, str, Receipt]:
    """Returns the answer of a row and its reservation, `before`, if the key has signed both."""
    committed, reserved = parse(row), parse(before)
    answer, question = committed.record, reserved.record
    if not isinstance(answer, Committed) or hash_of(before.body) != before.hash:
        raise _damaged(row)
    if not isinstance(question, Reserved) or question.digest != answer.digest or committed.hash != row.hash:
        raise _damaged(row)
    receipt = stored_receipt(ledger, reserved, committed, row.signature)
    if not receipt.verify(key):
        raise _damaged(row)
    return reserved, question, answer.payload, receipt


# The same two rows, letter by letter, are checked once for a while. A refusal is not remembered.
SHORT = 100_000  # characters of two rows that may be remembered
_read_short_answer = lru_cache(maxsize=128)(_read_answer)


def read_steps(entry: Callable[[int], Row | None], keys: Keys, key: str, position: Position) -> list[tuple[Advanced, Receipt]]:
    """Returns the entries of a stream, the first one first. Refuses a wrong signature, and a chain that is not its own."""
    found: list[tuple[Advanced, Receipt]] = []
    number, step = position.entry, position.step
    while number:
        row = entry(number)
        advanced = None if row is None else parse(row)
        if row is None or advanced is None:
            raise LedgerError(f"Entry {number} of the ledger is missing.", fix="run `dither verify`.")
        record = advanced.record
        if not isinstance(record, Advanced) or record.stream != key or not record.before < record.reserved < number:
            raise _damaged(row)
        before = entry(record.reserved)
        if before is None or hash_of(before.body) != before.hash or advanced.hash != row.hash:
            raise _damaged(row)
        receipt = stored_receipt(keys.ledger, parse(before), advanced, row.signature)
        if not receipt.verify(keys.at(row.number)) or (not found and record.step != step):
            raise _damaged(row)
        found.append((record, receipt))
        number = record.before
    return found[::-1]


def check_shown(row: Row, keys: Keys, committed: int, analyst: str) -> bool:
    """Returns True if a signed row says that this answer was shown to this analyst and counted. Refuses any other row."""
    entry = parse(row)
    if not isinstance(entry.record, Replayed) or (entry.record.committed, entry.record.analyst) != (committed, analyst):
        raise _damaged(row)
    if entry.hash != row.hash or not is_signed(keys.at(row.number), entry_message(row.hash), row.signature):
        raise _damaged(row)
    return True


def not_stored() -> BudgetError:
    """Returns the refusal of a question that may only be answered from what is stored."""
    return BudgetError(
        "This question has no stored answer, and it was asked without permission to spend.",
        fix="ask it once with permission to spend; then its answer is given again for nothing.",
    )


def not_seen(analyst: str) -> BudgetError:
    """Returns the refusal of a stored answer that would count in a quota, asked for without permission to spend."""
    return BudgetError(
        f"The stored answer would count in the quota of {analyst}, and it was asked for without permission to spend.",
        fix="ask it once with permission to spend; then its answer is given again for nothing.",
    )


def _damaged(row: Row) -> LedgerError:
    return LedgerError(f"Entry {row.number} of the ledger was changed after it was written.", fix="run `dither verify`.")


class Preview(NamedTuple):
    """What reserving would do. `again`: the entry of the stored answer that would be shown; `counted`: whether its price would
    count in the analyst's quota; `refusal`: why the ledger would refuse, or empty; `waits`: why it would wait for a curator."""

    again: int | None = None
    refusal: str = ""
    counted: bool = False
    waits: str = ""


def preview(
    store: Store,
    keys: Callable[[str | None], Keys],
    request: Request,
    declaration: Declaration,
    expected: tuple[str | None, ...],
    now: str,
) -> Preview:
    """Returns what reserving this request would do now, with this declaration in force if it may follow the `expected` ones.

    `keys` reads the ledger's keys from their stored text.

    Raises ArgumentError for an undeclared analyst, as reserving does: another price would not help.
    """
    row = None if request.fresh else store.latest(request.digest)
    number = None if row is None else row.number
    try:
        view = _in_force(store, request, declaration, expected)
        if row is None:
            admit(view, request, now)
            return Preview()
        counted = replay(view, keys(view.get("keys")), request, row).used is not None and declaration.per_analyst is not None
    except (BudgetError, ApprovalError, LedgerError) as error:
        return Preview(number, error.what, waits=error.why if isinstance(error, ApprovalError) else "")
    return Preview(number, counted=counted)


class SharePreview(NamedTuple):
    """What sharing a stored answer would do. `seen`: this analyst has got it before, so nothing is counted."""

    refusal: str = ""
    seen: bool = False


def preview_share(
    store: Store,
    keys: Callable[[str | None], Keys],
    entry: int,
    request: Request,
    declaration: Declaration,
    expected: tuple[str | None, ...],
) -> SharePreview:
    """Returns what sharing this entry would do now. Writes nothing. Raises ArgumentError for an undeclared analyst."""
    row = store.entry(entry)
    try:
        if row is None:
            raise LedgerError(f"There is no entry {entry}.", fix="run `dither verify`.")
        view = _in_force(store, request, declaration, expected)
        return SharePreview(seen=replay(view, keys(view.get("keys")), request, row).used is None)
    except (BudgetError, LedgerError) as error:
        return SharePreview(error.what)


def _in_force(store: Store, request: Request, declaration: Declaration, expected: tuple[str | None, ...]) -> _Committed:
    """Returns the ledger as it would be with this declaration in force. Refuses if it may not follow the one that is."""
    texts = store.several("catalog", "caps", "total", "fuse", "approvals", "keys", keys_of(request.analyst)[0])
    wanted = state.Terms.of(declaration).text()
    check_in_force(texts.get("catalog"), (*expected, wanted))
    caps = texts.get("caps") or state.encode_caps(declaration.caps)
    return _Committed(store, texts | {"catalog": wanted, "caps": caps})


class _Committed:
    """The ledger as last committed."""

    def __init__(self, store: Store, texts: dict[str, str]) -> None:
        self._texts = texts
        self.entry, self.latest = store.entry, store.latest

    def get(self, key: str) -> str | None:
        return self._texts.get(key)

    def used(self, analyst: str) -> Sums:
        return state.decode_sums(self.get(keys_of(analyst)[0]))
