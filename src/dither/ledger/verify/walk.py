"""Recomputes what was spent, and checks that the rules allowed each entry: caps, catalogs, charges, answers, replays.

Each part of a loss is rounded up to a whole number of 1/GRID and added. The rules are those of privacy/filters.py, restated.

Memory holds the open reservations and one set of totals per analyst, however long the ledger is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any

from dither.ledger.receipts import is_signed
from dither.ledger.stores.base import Row, Store
from dither.ledger.verify.entries import CAPS, LOSS, EntryError, entry, load_json, number, sha256, text_of
from dither.privacy.conversion import delta_of_zcdp

QUESTIONS = 10_000  # the most that the sum of rho admits
GRID = 10**36 * 144403552893600  # the second factor is the least common multiple of 1, …, 32

Totals = dict[str, int]


def no_totals() -> Totals:
    return dict.fromkeys((*LOSS, "unstated"), 0)


def add_loss(totals: Totals, loss: dict[str, Any], sign: int = 1) -> Totals:
    """Returns the totals with a loss added, or subtracted for sign -1."""
    after = dict(totals)
    for part in LOSS:
        if loss[part] is not None:
            after[part] += sign * ceil(number(loss[part]) * GRID)
    after["unstated"] += sign * (loss["rho"] is None)
    return after


def caps_of(texts: dict[str, Any], epsilon: Fraction | None = None) -> dict[str, Fraction]:
    """Returns the caps of the first entry. Checks the parts of delta, and rho_max by the certified conversion."""
    limits = {name: number(texts[name]) for name in CAPS}
    delta = limits["delta_sums"] + limits["delta_keys"] + limits["delta_conversion"]
    if limits["epsilon"] <= 0 or delta >= 1:
        raise EntryError("has an epsilon of 0 or less, or a delta of 1 or more")
    if limits["rho_max"] and delta_of_zcdp(limits["rho_max"], limits["epsilon"]) > limits["delta_conversion"]:
        raise EntryError("has a rho_max larger than its delta_conversion allows")
    return limits


def rule_of(limits: dict[str, Fraction], used: Totals) -> str | None:
    """Returns the rule that these totals satisfy, or None."""
    spent = {part: Fraction(used[part], GRID) for part in LOSS}
    if spent["epsilon"] <= limits["epsilon"] and spent["delta"] <= limits["delta_sums"]:
        return "sum"
    concentrated = limits["rho_max"] > 0 and used["unstated"] == 0
    return "zcdp" if concentrated and spent["rho"] <= limits["rho_max"] and spent["slack"] <= limits["delta_keys"] else None


def within_share(limits: dict[str, Fraction], epsilon: Fraction, used: Totals) -> bool:
    """Returns whether these totals satisfy a rule with each cap scaled like epsilon: for one analyst, or one question."""
    return rule_of({name: cap * epsilon / limits["epsilon"] for name, cap in limits.items()}, used) is not None


def meets_least_price(limits: dict[str, Fraction], least: Fraction, loss: dict[str, Any]) -> bool:
    """Returns whether a loss is zero, or at least the least epsilon and, where rho is stated, its share of rho_max."""
    epsilon, rho = number(loss["epsilon"]), loss["rho"]
    return epsilon == 0 or (epsilon >= least and (rho is None or number(rho) * QUESTIONS >= limits["rho_max"]))


TERMS = (
    *("catalog", "epsilon", "delta", "per_analyst", "per_query", "least_epsilon"),
    *("analysts", "neighbours", "snapshot", "units"),
)


class Walk:
    """Replays the ledger entry by entry. `step` yields the problems of the next entry."""

    def __init__(self, store: Store, identity: dict[str, str]) -> None:
        self._store = store
        self._identity = identity
        self._caps: dict[str, Any] | None = None
        self._limits: dict[str, Fraction] = {}
        self._terms: dict[str, Any] | None = None
        self._history: dict[str, Any] | None = None
        self._charged = False
        self.total = no_totals()
        self.analysts: dict[str, Totals] = {}
        self.pending: dict[int, tuple[str, dict[str, Any]]] = {}
        self.closed = 0  # the entry that closed the catalog to new questions, if one did
        self._dead = 0
        self._fused = False
        self.restored = 0
        self.streams: dict[str, list[int]] = {}  # the reservation that paid, the step, the last reservation and entry of each
        self.states: dict[str, str] = {}  # the digest of each stream's encrypted state
        self.keys: list[tuple[int, str]] = [(1, identity["public_key"])]  # each key, and the entry from which on it signs
        self.approvals: dict[str, Any] | None = None  # the policy, the requests that wait, the approvals that were not used
        self._used: dict[int, tuple[int, list[str]]] = {}  # the approvals that reservations used, with their requests

    def step(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        """Yields the problems of this entry, given those before it."""
        kind = fields["kind"].partition("/")[0]
        if (kind == "opened") != (row.number == 1):
            yield "opens the ledger a second time" if kind == "opened" else "is the first and does not open the ledger"
        if kind not in ("committed", "replayed") and row.question:
            yield "is stored under a question that is not its own"
        steps = {
            "opened": self._opened,
            "catalog": self._catalog,
            "reserved": self._reserved,
            "committed": self._committed,
            "advanced": self._advanced,
            "cancelled": self._cancelled,
            "failed": self._failed,
            "lapsed": self._lapsed,
            "replayed": self._replayed,
            "reopened": self._reopened,
            "restored": self._restored,
            "policy": self._policy,
            "requested": self._requested,
            "approved": self._approved,
            "denied": self._denied,
            "closed": self._closed,
            "rotated": self._rotated,
        }
        yield from steps[kind](row, fields)

    def state(self) -> dict[str, str]:
        """Returns the state that must be stored beside the entries."""
        state: dict[str, Any] = {f"analyst:{name}": totals for name, totals in self.analysts.items()}
        rolls: dict[str, dict[str, str]] = {}
        for name, totals in self.analysts.items():
            group = int(sha256("ledger group 1", text_of(name))[:8], 16) % 128
            rolls.setdefault(f"{group:03}", {})[name] = sha256("ledger roll 1", text_of(totals))[:32]
        state |= {f"roll:{group}": roll for group, roll in rolls.items()}
        if rolls:
            state["rolls"] = {group: sha256("ledger roll 1", text_of(roll))[:32] for group, roll in rolls.items()}
        state |= {"total": self.total} if self._charged else {}
        state |= {"streams": self.streams} if self.streams else {}
        state |= {"approvals": self.approvals} if self.approvals is not None else {}
        state |= {"keys": [list(each) for each in self.keys[1:]]} if self.keys[1:] else {}
        state |= {"fuse": {"closed": self.closed, "dead": self._dead}} if self._fused else {}
        for name, value in (("caps", self._caps), ("catalog", self._terms), ("history", self._history)):
            state |= {name: value} if value is not None else {}
        return {key: text_of(value) for key, value in state.items()}

    def leases_match(self, text: Any) -> bool:
        """Returns whether these are the leases of the open reservations."""
        if text is None:
            return not self._charged
        try:
            leases = load_json(text)
            stored = {number: (lease[0], lease[1]) for number, lease in leases.items()}
        except (ValueError, TypeError, AttributeError, IndexError, KeyError):
            return False
        pending = {str(number): reserved for number, (_, reserved) in self.pending.items()}
        expected = {
            n: ("" if reserved["fresh"] else reserved["digest"][:16], reserved["token"][:16]) for n, reserved in pending.items()
        }
        return stored == expected and text_of(leases) == text

    def _opened(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        if {name: fields[name] for name in ("ledger", "public_key")} != self._identity:
            yield "names another ledger"
        if self._caps is None:
            self._caps = fields["caps"]
            self._limits = caps_of(fields["caps"])

    def _catalog(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        limits = self._limits
        if limits:
            delta = limits["delta_sums"] + limits["delta_keys"] + limits["delta_conversion"]
            if (number(fields["epsilon"]), number(fields["delta"])) != (limits["epsilon"], delta):
                yield "changes the budget"
        if not 0 < number(fields["least_epsilon"]) <= number(fields["epsilon"]):
            yield "has a least_epsilon that is not between 0 and epsilon"
        units = {name.casefold(): unit.casefold() for name, unit in fields["units"].items()}
        if len(units) < len(fields["units"]):
            yield "declares a table twice, in capitals and small letters"
        if self._history is not None:
            if fields["neighbours"] != self._history["neighbours"]:
                yield "changes the neighbour relation of tables with history"
            for table, unit in self._history["tables"].items():
                if units.get(table, unit) != unit:
                    yield f"changes the unit of {table}, which has history"
        self._terms = {name: fields[name] for name in TERMS}

    def _reserved(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        yield from self._allowed(fields)
        if self.closed:
            yield f"was asked while entry {self.closed} had closed the catalog"
        if not self._is_approved(row, fields):
            yield "was asked without the approval that it needed"
        if fields["digest"] != sha256("ledger question 1", text_of([fields["plan"], fields["catalog"], fields["snapshot"]])):
            yield "has a digest that is not its question's"
        if number(fields["loss"]["epsilon"]) == 0 and (fields["mechanisms"] or set(fields["loss"].values()) != {"0"}):
            yield "charges nothing for a noisy answer"
        self.total, self._charged = add_loss(self.total, fields["loss"]), True
        if self._limits and rule_of(self._limits, self.total) != fields["rule"]:
            yield "was not allowed by the budget under the rule it names"
        yield from self._quota(fields)
        if self._terms is not None:
            known = self._history["tables"] if self._history else {}
            units = {name.casefold(): unit.casefold() for name, unit in self._terms["units"].items()}
            tables = [name.casefold() for name in fields["tables"]]  # table names are case-insensitive in questions
            new = {name: units.get(name, fields["unit"].casefold()) for name in tables if name not in known}
            self._history = {"neighbours": self._terms["neighbours"], "tables": known | new}
        self.pending[row.number] = (row.hash, fields)

    def _allowed(self, fields: dict[str, Any]) -> Iterator[str]:
        """Checks the catalog in force at that time."""
        terms = self._terms
        if terms is None:
            yield "was asked without a catalog"
            return
        if any(fields[name] != terms[name] for name in ("catalog", "snapshot", "neighbours") if name in fields):
            yield "was asked with a catalog that was not in force"
        if terms["analysts"] is not None and fields["analyst"] not in terms["analysts"]:
            yield "was asked by someone who is not one of the analysts"
        most = number(terms["per_query"]) if terms["per_query"] is not None and self._limits else None
        if most is not None and not within_share(self._limits, most, add_loss(no_totals(), fields["loss"])):
            yield "costs more than one question may"
        if self._limits and not meets_least_price(self._limits, number(terms["least_epsilon"]), fields["loss"]):
            yield "costs less than one question must"

    def _quota(self, fields: dict[str, Any]) -> Iterator[str]:
        used = add_loss(self.analysts.get(fields["analyst"], no_totals()), fields["loss"])
        self.analysts[fields["analyst"]] = used
        quota = self._terms["per_analyst"] if self._terms else None
        if quota is not None and self._limits and not within_share(self._limits, number(quota), used):
            yield "was not allowed by its analyst's quota"

    def _end(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Ends and returns the open reservation that this entry names."""
        hash, reserved = self.pending.pop(fields["reserved"], ("", {}))
        if not reserved:
            raise EntryError("ends a reservation that is not open")
        if hash != fields["reserved_hash"]:
            raise EntryError("names its reservation by another hash")
        return reserved

    def _settle(self, row: Row, fields: dict[str, Any]) -> dict[str, Any]:
        """Ends a reservation, and checks that its maker wrote this entry."""
        reserved = self._end(fields)
        if sha256("ledger token 1", fields["token"]) != reserved["token"]:
            raise EntryError("was not written by the process that reserved")
        return reserved

    def _committed(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        reserved = self._settle(row, fields)
        if fields["digest"] != reserved["digest"]:
            yield "answers another question than was reserved"
        if row.question != fields["digest"]:
            yield "is stored under a question that is not its own"
        if not is_signed(self.key, self._receipt(row, fields, reserved), row.signature):
            yield "has a receipt that is not signed with the ledger's key"

    def _advanced(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        reserved, key, step = self._settle(row, fields), fields["stream"], fields["step"]
        free, before = number(reserved["loss"]["epsilon"]) == 0, self.streams.get(key)
        self.states[f"stream:{key}"] = fields["state"]
        if fields["digest"] != reserved["digest"]:
            yield "answers another question than was reserved"
        if not is_signed(self.key, self._receipt(row, fields, reserved), row.signature):
            yield "has a receipt that is not signed with the ledger's key"
        if before is None:
            own = sha256("ledger stream 1", text_of([reserved["plan"], reserved["analyst"]]))
            if free or step or fields["before"] or key != own:
                yield "releases steps of a stream that nobody paid for"
            self.streams[key] = [fields["reserved"], step, fields["reserved"], row.number]
            return
        opened, last, _, entry_before = before
        if not free or reserved["plan"] != text_of({"continues": key, "step": last}):
            yield "continues a stream from another step than the one it was at"
        if step <= last or fields["before"] != entry_before:
            yield "does not follow the steps before it"
        self.streams[key] = [opened, step, fields["reserved"], row.number]

    def _receipt(self, row: Row, fields: dict[str, Any], reserved: dict[str, Any]) -> str:
        """Returns the text that was signed as the receipt of this answer."""
        same = ("question", "catalog", "snapshot", "unit", "neighbours", "analyst", "mechanisms", "loss", "rule", "time")
        body = {name: reserved[name] for name in same} | {"receipt": 1, "ledger": self._identity["ledger"]}
        body["reserved"] = {"number": fields["reserved"], "hash": fields["reserved_hash"]}
        body["entry"] = {"number": row.number, "hash": row.hash}
        return f"dither receipt 1\n{text_of(body)}"

    def _cancelled(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        reserved = self._settle(row, fields)
        self.total = add_loss(self.total, reserved["loss"], -1)
        self.analysts[reserved["analyst"]] = add_loss(self.analysts.get(reserved["analyst"], no_totals()), reserved["loss"], -1)
        if "approval" not in fields:  # cancelled/1: an approval that it had used stays used
            return
        request, approval = self._used.pop(fields["reserved"], (0, []))
        if self.approvals is None or request != fields["approval"]:
            yield "gives back an approval that its question had not used"
            return
        self.approvals["allowed"][str(request)] = approval

    def _replayed(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        answer = self._earlier(row, fields["committed"], "committed/1")
        reserved = self._earlier(row, answer["reserved"], "reserved/1")
        if (answer["digest"], reserved["loss"]) != (fields["digest"], fields["loss"]):
            yield "shows the answer to another question"
        yield from self._allowed(fields | {name: reserved[name] for name in ("catalog", "snapshot", "neighbours")})
        shown = sha256("ledger replay 1", text_of([fields["committed"], fields["analyst"]]))
        if row.question != shown:
            yield "is stored under a question that is not its own"
        last = self._store.latest(shown)
        if reserved["analyst"] == fields["analyst"] or (last is not None and last.number != row.number):
            yield "counts an answer twice for one analyst"
        yield from self._quota(fields)

    def _failed(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        self._settle(row, fields)
        if fields["why"] == "engine":
            self.closed, self._fused = self.closed or row.number, True
        yield from ()

    def _lapsed(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        self._end(fields)
        self._dead, self._fused = self._dead + 1, True
        if self._dead >= 3:
            self.closed = self.closed or row.number
        yield from ()

    def _reopened(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        if fields["closed"] != self.closed or not (self.closed or self._dead):
            yield "reopens a catalog that was not closed by the entry it names"
        self.closed, self._dead = 0, 0

    def _needs_approval(self, fields: dict[str, Any]) -> bool:
        epsilon, rules = number(fields["loss"]["epsilon"]), self.approvals
        if rules is None or epsilon == 0:
            return False
        dear = rules["above"] is not None and epsilon > number(rules["above"])
        return dear or any(name.casefold() in rules["tables"] for name in fields["tables"])

    def _is_approved(self, row: Row, fields: dict[str, Any]) -> bool:
        """Returns whether a question needs no approval, or has one, which it uses up."""
        if self.approvals is None or not self._needs_approval(fields):
            return True
        for at, (digest, analyst, until) in sorted(self.approvals["allowed"].items(), key=lambda item: int(item[0])):
            if (digest, analyst) == (fields["digest"], fields["analyst"]) and fields["time"] <= until:
                self._used[row.number] = int(at), self.approvals["allowed"].pop(at)
                return True
        return False

    def _policy(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        waiting = self.approvals or {"open": {}, "allowed": {}}
        self.approvals = waiting | {"above": fields["above"], "tables": fields["tables"]}
        if fields["tables"] != sorted({name.casefold() for name in fields["tables"]}):
            yield "does not list its tables once, in order and in small letters"

    def _requested(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        yield from self._allowed(fields)
        if self.approvals is None or not self._needs_approval(fields):
            yield "asks for an approval that it does not need"
            return
        self.approvals["open"][str(row.number)] = [fields["digest"], fields["analyst"]]

    def _decided(self, row: Row, fields: dict[str, Any]) -> list[str]:
        """Ends a request that waits, and returns its question and analyst. Forgets approvals that ended unused."""
        waiting: list[str] = (self.approvals or {"open": {}})["open"].pop(str(fields["requested"]), [])
        before = self._store.entry(fields["requested"])
        if self.approvals is None or not waiting or before is None:
            raise EntryError("decides on a request that does not wait")
        if before.hash != fields["requested_hash"]:
            raise EntryError("names its request by another hash")
        if waiting[1] == fields["by"]:
            raise EntryError("decides on the question of the one who decides")
        allowed = {at: kept for at, kept in self.approvals["allowed"].items() if fields["time"] <= kept[2]}
        self.approvals["allowed"] = allowed
        return waiting

    def _approved(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        waiting = self._decided(row, fields)
        if self.approvals is not None:
            self.approvals["allowed"][str(fields["requested"])] = [*waiting, fields["until"]]
        if fields["until"] < fields["time"]:
            yield "ended before it began"

    def _denied(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        self._decided(row, fields)
        yield from ()

    def _closed(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        self.closed, self._fused = self.closed or row.number, True
        yield from ()

    @property
    def key(self) -> str:
        """The public key in force."""
        return self.keys[-1][1]

    def key_at(self, at: int) -> str:
        """Returns the public key that was in force at this entry."""
        return [key for start, key in self.keys if start <= max(at, 1)][-1]

    def _rotated(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        """From here on another key signs. Both must have signed this: the old one allows it, the new one is there."""
        signed = row.signature.split(" ")
        text = f"dither ledger rotation 1 signature\n{row.hash}"
        if fields["ledger"] != self._identity["ledger"]:
            yield "rotates the key of another ledger"
        if fields["old"] != self.key:
            yield "rotates a key that was not in force"
        if fields["new"] in [key for _, key in self.keys]:
            yield "rotates to a key that was in force before"
        if len(signed) != 2 or not is_signed(self.key, text, signed[0]):
            yield "rotates the ledger's key and is not signed with the key before"
        if len(signed) != 2 or not is_signed(fields["new"], text, signed[1]):
            yield "rotates the ledger's key and is not signed with the new key"
        if self.pending:
            yield "rotates the ledger's key while a question was being answered"
        self.keys.append((row.number, fields["new"]))
        self.states["secrets"] = fields["secrets"]

    def _restored(self, row: Row, fields: dict[str, Any]) -> Iterator[str]:
        self.restored += 1
        if fields["backup"] != row.number - 1:
            yield "goes on from another entry than the one before it"

    def _earlier(self, row: Row, at: int, kind: str) -> dict[str, Any]:
        """Returns an earlier entry, which was checked already."""
        before = self._store.entry(at) if at < row.number else None
        if before is None or before.kind != kind:
            raise EntryError(f"names an entry {at} that is no {kind.partition('/')[0]} entry before it")
        return entry(before)
