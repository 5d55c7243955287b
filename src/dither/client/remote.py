"""Asks a server: the methods of `dt.open`, without the data.

    question ─▶ planned here, refused here ─▶ asked there ─▶ receipt compared with the plan ─▶ noisy numbers ─▶ table, made here

The public catalog comes once. Prices and margins are computed from it, so a wrong question is refused without a request, and a
server that charges another price, or adds other noise than the plan says, is found out by its own signed receipt.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

from dither.answer import Answer, Quote
from dither.answers import Answers, Quotes
from dither.catalog import file
from dither.catalog.values import Catalog
from dither.client.encoding import key_of, new_key, number, params_of, sql, text_of_question
from dither.client.known import Known, Seen, check_seen, default_file, shown_keys
from dither.client.logins import Logins
from dither.client.planner import Planner, Questions, filled_list
from dither.client.received import committed_numbers, received_answer, received_quote
from dither.client.transport import Reply, Transport, error_of, origin_of
from dither.errors import ApprovalError, Argument, ArgumentError, Fix, LedgerError, Name, Python, Shell
from dither.exact.numbers import Number, positive
from dither.finish import AskOptions, Options, answer_list, answer_of, answer_union, quote_each, quote_of, quote_union
from dither.ledger.receipts import Keys, Receipt
from dither.ledger.records import Request
from dither.ledger.rules import StoredAnswer
from dither.planning.outputs import table
from dither.planning.program import Program
from dither.planning.proposal import Proposal
from dither.planning.terms import Terms
from dither.privacy.filters import GRID, Caps, Sums
from dither.query import fluent
from dither.query.fluent import FluentQuestion
from dither.query.read import Question, show_question, with_params
from dither.query.resolve.relations import Resolved
from dither.session import Paid
from dither.standing import Standing

Shown = TypeVar("Shown")
_LONGEST = 86_400  # seconds
_LOOK = 1.0  # seconds between looks at an answer that is not there yet


class _OnServerError(Exception):
    """Public tables decide the question, and they are on the server."""


def connect(
    url: str,
    token: str | None = None,
    *,
    public_key: str | None = None,
    known: str | PathLike[str] | None = None,
    ca: str | PathLike[str] | None = None,
    timeout: float = 60.0,
) -> Remote:
    """Connects to a server (`dither serve`). Returns an object that asks as `dt.open` does.

    `token`: yours, by default from the environment variable DITHER_TOKEN, or what `dither login` stored. `public_key`: the
    curator's, if you were given it; otherwise the first one that the server shows is pinned. `known`: the file with pinned keys
    and newest entries, by default that of DITHER_KNOWN, or one in your configuration folder. `ca`: a file of certificates
    to trust besides the system's. `timeout`: seconds for a request.
    """
    transport, kept = reach(url, token, known=known, ca=ca, timeout=timeout)
    try:
        seen, keys = _recognise(transport, kept, public_key)
        described: Mapping[str, Any] = transport.get("/v1/catalog")
        who: Mapping[str, Any] = transport.get("/v1/me")
        return Remote(_catalog(described), transport, kept, seen, str(described["hash"]), str(who["name"]), keys)
    except BaseException:
        transport.close()
        raise


def _token_of(origin: str) -> str:
    """Returns the token of the environment. It is that of DITHER_SERVER, and of no other server, if that is set, too."""
    server = os.environ.get("DITHER_SERVER")
    return os.environ.get("DITHER_TOKEN", "") if not server or origin_of(server) == origin else ""


def reach(
    url: str,
    token: str | None,
    *,
    known: str | PathLike[str] | None = None,
    ca: str | PathLike[str] | None = None,
    timeout: float = 60.0,
) -> tuple[Transport, Known]:
    """Checks the arguments of `connect`. Returns the way to the server, and the file with pinned keys. Sends nothing."""
    origin = origin_of(url)
    secret = _token_of(origin) if token is None else token
    if token is None and not secret:
        login = Logins().find(origin)
        secret = "" if login is None else login.token
    if not isinstance(secret, str) or not secret.strip() or not secret.isascii() or not secret.isprintable():
        it = Python('write dt.connect(url, token="dth_…"), set DITHER_TOKEN,', "set DITHER_TOKEN,")
        fix = Fix("{it} or log in: {login}.", it=it, login=Shell(f"dither login {origin}"))
        raise ArgumentError("A server needs your token.", fix=fix)
    for name, path in (("known", known), ("ca", ca)):
        if path is not None and (not isinstance(path, (str, PathLike)) or not str(path) or "\0" in str(path)):
            raise ArgumentError(f"{name} must be the path of a file.", fix=Fix("write {it}.", it=Argument(name, f"a/{name}")))
    seconds = positive(timeout, "timeout")
    if seconds > _LONGEST:
        raise ArgumentError("timeout is more than a day.", fix=Fix("write {timeout}.", timeout=60))
    transport = Transport(origin, secret.strip(), None if ca is None else os.fspath(ca), float(seconds))
    return transport, Known(Path(known or os.environ.get("DITHER_KNOWN") or default_file()))


def _recognise(transport: Transport, known: Known, public_key: str | None) -> tuple[Seen, Keys]:
    """Returns what the server shows of its ledger, and its keys. Refuses one that is not what it was."""
    before = known.find(transport.origin)
    shown = transport.get("/v1/key" if before is None or not before.number else f"/v1/key?at={before.number}")
    number, _, hash = str(shown["head"]).partition(":")
    now = Seen(str(shown["ledger"]), str(shown["public_key"]), int(number), hash)
    keys = shown_keys(transport.origin, now, shown.get("rotations"))
    if public_key is not None and public_key not in (key for _, key in keys.terms):
        raise LedgerError(
            f"{transport.origin} signs with another key than the one you named.",
            fix=Fix("check {it} with the curator.", it=Name("public_key")),
        )
    if before is not None:
        named = public_key is not None and public_key not in before.retired  # an earlier key proves no more than the known one
        trusted = replace(before, public_key=str(public_key)) if named else before
        check_seen(transport.origin, trusted, now, before.head if not before.number else shown.get("at"), keys)
    now = replace(now, retired=tuple(key for _, key in keys.terms[:-1]))
    known.keep(transport.origin, now)
    return now, keys


def _catalog(described: Mapping[str, Any]) -> Catalog:
    """Returns the catalog to plan with. Refuses a text that is not the one whose hash receipts have."""
    if hashlib.sha256(str(described["declared"]).encode()).hexdigest() != described["hash"]:
        raise LedgerError("The server's catalog is not the one that it names.", fix="tell the curator.")
    catalog = file.parse(str(described["toml"]), name="The server's catalog")
    tables = {}
    for name, declared in catalog.tables.items():
        columns = dict(declared.columns)
        for column, facts in described["tables"][name]["columns"].items():
            if facts["found"] is not None and column in columns:  # all values in a public table
                found = tuple(key_of(value, columns[column].kind) for value in facts["found"])
                columns[column] = replace(columns[column], found=found)
        made = object.__new__(type(declared))
        for part in declared.__dataclass_fields__:
            object.__setattr__(made, part, columns if part == "columns" else getattr(declared, part))
        tables[name] = made
    return replace(catalog, tables=tables)


@dataclass(repr=False)
class Remote:
    """Asks a server about a catalog's tables, as `dt.open` does beside the data."""

    catalog: Catalog
    transport: Transport = field(repr=False)
    known: Known = field(repr=False)
    seen: Seen
    catalog_hash: str
    analyst: str
    keys: Keys = field(repr=False)

    @property
    def caps(self) -> Caps:
        return Caps.of(self.catalog.budget.epsilon, self.catalog.budget.delta)

    # --- questions ----------------------------------------------------------------------------------------------

    @overload
    def ask(
        self, question: Question, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[AskOptions]
    ) -> Answer: ...
    @overload
    def ask(
        self, question: Questions, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[AskOptions]
    ) -> Answers: ...
    def ask(
        self,
        question: Question | Questions,
        epsilon: Number | None = None,
        delta: Number | None = None,
        **terms: Any,
    ) -> Answer | Answers:
        """Returns a noisy table, as `Curator.ask` does: plans it here, asks it there, compares the receipt with the plan."""
        fresh, free = terms.pop("fresh", False), terms.pop("free", False)
        self._check_terms(terms)
        flags = {name: True for name, value in (("fresh", fresh), ("free", free)) if value}
        body = self._body(question, epsilon, delta, terms) | flags | {"payload": True}
        if free or (epsilon is None and terms.get("margin") is None and self._is_list(question, terms)):
            return received_answer(self._asked(body, text_of_question(question)))
        try:
            program, show, asked = self._planned(question, _terms(epsilon, delta, terms), terms)
        except _OnServerError:
            data = self._asked(body, text_of_question(question))
            if "answers" in data:
                raise ArgumentError(
                    "Public tables decide a question of this list, and they are on the server.", fix="ask each question alone."
                ) from None
            self._check_receipt(_receipt(data), None)
            return received_answer(data)
        if show is None:  # a list of public values
            return received_answer(self._asked(body, text_of_question(question)))
        made: Answer | Answers = self._shown(self._asked(body, text_of_question(question)), program, asked, show)
        return made

    @overload
    def quote(
        self, question: Question, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[Options]
    ) -> Quote: ...
    @overload
    def quote(
        self, question: Questions, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[Options]
    ) -> Quotes: ...
    def quote(
        self,
        question: Question | Questions,
        epsilon: Number | None = None,
        delta: Number | None = None,
        **terms: Any,
    ) -> Quote | Quotes:
        """Returns the plan, its price and margins, made here; and from the server, whether the budget allows it now. Free."""
        self._check_terms(terms)
        listed = epsilon is None and terms.get("margin") is None and self._is_list(question, terms)
        try:
            found = None if listed else self._quoted(question, _terms(epsilon, delta, terms), terms)
        except _OnServerError:
            found = None
        body = self._body(question, epsilon, delta, terms)
        data = self.transport.post("/v1/quote", body, question=text_of_question(question)).data
        if "error" in data:
            raise error_of(data["error"], text_of_question(question))
        if found is None:
            return received_quote(data)
        stated = Fraction(data["price"]["epsilon"]), Fraction(data["price"]["delta"])
        if stated != (found.epsilon, found.delta):
            raise LedgerError(
                f"The server states another price than the plan of this question has: {found.price}.",
                fix="update dither here or there, so that both plan alike; otherwise tell the auditor.",
            )
        return replace(found, refusal=data["refused"] or "", again=data["entry"], waits=data["waits"] or "")

    def suggest(
        self, column: str, epsilon: Number, delta: Number | None = None, *, by: str | None = None, fresh: bool = False
    ) -> Proposal:
        """Proposes bounds or values for "table.column" from the data, at a price."""
        body = {"column": column, "epsilon": number(epsilon), "delta": None if delta is None else number(delta), "by": by}
        data = self._waited(self.transport.post("/v1/suggest", body | {"fresh": bool(fresh)}, new_key()))
        low, high = data["between"] or (None, None)
        kind = self.catalog.tables[data["table"]].columns[data["column"]].kind
        return Proposal(
            data["table"],
            data["column"],
            key_of(low, kind),
            key_of(high, kind),
            data["max_rows"],
            data["max_groups"],
            data["rank"],
            data["charged"],
            data["rows"],
            Fraction(data["epsilon"]),
            None if data["step"] is None else Fraction(data["step"]),
            None if data["values"] is None else tuple(data["values"]),
            data["people"],
            tuple(data["settings"]),
        )

    def table(self, name: str, alias: str | None = None) -> FluentQuestion:
        """Starts a question in Python: table("people").where("age >= 18").agg(n=dt.count())."""
        return fluent.table(self.catalog, name, alias)

    # --- standing -----------------------------------------------------------------------------------------------

    @property
    def budget(self) -> Standing:
        """Total, spent and left, for everyone together, as the server says."""
        return self._standing(self.transport.get("/v1/budget"), self.caps, "")

    def quota(self) -> Standing:
        """Returns total, spent and left for you; the budget if there are no quotas."""
        data, share = self.transport.get("/v1/budget"), self.catalog.budget.per_analyst
        if "analyst" not in data or share is None:
            return self._standing(data, self.caps, "")
        return self._standing(data["analyst"], self.caps.share(share), self.analyst)

    @staticmethod
    def _standing(data: Mapping[str, Any], caps: Caps, analyst: str) -> Standing:
        spent = {name: Fraction(part["spent"]) for rule in data["rules"].values() for name, part in rule.items()}
        names = {"epsilon": "epsilon", "delta": "delta", "rho": "rho", "slack": "delta_of_keys"}
        sums = {name: int(spent.get(theirs, Fraction(0)) * GRID) for name, theirs in names.items()}
        unstated = int(bool(caps.rho_max) and "zcdp" not in data["rules"])
        return Standing(caps, Sums(**sums, unstated=unstated), analyst)

    @property
    def closed(self) -> bool:
        """Whether the catalog is closed to new questions."""
        return bool(self.transport.get("/v1/budget")["closed"])

    def history(self, limit: int = 50, *, before: int | None = None, everyone: bool = False) -> list[dict[str, Any]]:
        """Returns your last questions, newest last: entry, time, state, price, question. `before`: only older entries;
        `everyone`: all analysts', for auditors."""
        older = "" if before is None else f"&before={int(before)}"
        found = self.transport.get(f"/v1/history?limit={int(limit)}{older}{'&everyone=1' if everyone else ''}")
        return list(found["questions"])

    def receipt(self, entry: int) -> Receipt:
        """Returns the receipt of an answer that you got, checked against the pinned key."""
        found = Receipt.from_json(json.dumps(self.transport.get(f"/v1/receipts/{int(entry)}")))
        self._check_receipt(found, None)
        return found

    def compare(self, heads: Mapping[str, str], receipts: Mapping[str, Receipt]) -> Iterator[str]:
        """Yields what is wrong with the server's ledger by heads ("number:hash") and receipts that you kept, each with a name
        to show. The server says which entries it has: it cannot invent their hashes, nor signatures."""
        marks = [(source, *head.split(":", 1)) for source, head in heads.items()]
        for source, receipt in receipts.items():
            if receipt.body["ledger"] != self.seen.ledger or not self.keys.signed(receipt):
                yield f"{source} is not signed by the key of this ledger that you know."
            marks += [(source, str(place["number"]), str(place["hash"])) for place in receipt.places]
        for source, at, hash in marks:
            found = self.transport.get(f"/v1/key?at={at}")["at"]
            if found is None:
                yield f"entry {at}, which {source} names, is missing: this is an older copy, or another ledger."
            elif found != f"{at}:{hash}":
                yield f"entry {at} is not the one that {source} names: this is another ledger, or another past."

    def close(self) -> None:
        """Closes the connection. What was asked stays asked."""
        self.transport.close()

    def __repr__(self) -> str:
        return f"<Remote of {', '.join(self.catalog.tables)} at {self.transport.origin}; analyst {self.analyst}>"

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- planning here ------------------------------------------------------------------------------------------

    @property
    def _planner(self) -> Planner:
        return Planner(self.catalog, self.caps, _refuse_public)

    def _check_terms(self, terms: dict[str, Any]) -> None:
        if terms.get("analyst") is not None and terms["analyst"] != self.analyst:
            raise ArgumentError(f"Your token says that you are {self.analyst}.", fix=Fix("leave {it} out.", it=Name("analyst")))
        if terms.pop("stored", False):
            raise ArgumentError(
                "A token with the scope replay never spends.", fix=Fix("use one, and leave {it} out.", it=Name("stored"))
            )
        if isinstance(terms.get("of"), Answer):
            fix = Fix("pass a number from it: {it}.", it=Python("of=answer.rows[0][0]"))
            raise ArgumentError("A server takes a number, not an answer, for what a margin is relative to.", fix=fix)

    def _is_list(self, question: Question | Questions, terms: Mapping[str, Any]) -> bool:
        try:
            return self._planner.free_list(question, terms.get("params")) is not None
        except _OnServerError:
            return False

    def _planned(
        self, question: Question | Questions, priced: Terms, terms: Mapping[str, Any]
    ) -> tuple[Program, Callable[[Paid], Any] | None, str]:
        """Returns the plan, what makes the answer of its noisy numbers (None: public values), and the question's text."""
        params, weights = terms.get("params"), terms.get("weights")
        if isinstance(question, (list, tuple)):
            several, shapes, asked = self._planner.several(filled_list(question, params), priced, weights)
            return several, partial(answer_list, table, several, shapes, priced), asked
        filled = with_params(question, params)
        union = self._planner.union(filled, priced)
        if union is not None:
            return union[0], partial(answer_union, table, *union, priced), show_question(filled)
        program, query = self._planner.one(filled, priced)
        return program, None if query.lists else partial(answer_of, table, program, priced), show_question(filled)

    def _quoted(self, question: Question | Questions, priced: Terms, terms: Mapping[str, Any]) -> Quote | Quotes | None:
        params, weights = terms.get("params"), terms.get("weights")
        if isinstance(question, (list, tuple)):
            several, shapes, _ = self._planner.several(filled_list(question, params), priced, weights)
            together = "" if several.bundled is None else several.bundled.summary
            return Quotes(quote_each(several, shapes, priced), several.total, together=together)
        filled = with_params(question, params)
        union = self._planner.union(filled, priced)
        if union is not None:
            return quote_union(*union, priced, "", None, False)
        program, query = self._planner.one(filled, priced)
        return None if query.lists else quote_of(program, priced)

    # --- asking there -------------------------------------------------------------------------------------------

    def _body(
        self, question: Question | Questions, epsilon: Number | None, delta: Number | None, terms: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the request. Numbers travel as text, exactly."""
        asked = [sql(each) for each in question] if isinstance(question, (list, tuple)) else sql(question)
        numbers = {"epsilon": epsilon, "delta": delta, "margin": terms.get("margin"), "of": terms.get("of")}
        numbers |= {"sample": terms.get("sample")}
        body: dict[str, Any] = {"question": asked}
        body |= {name: number(value) for name, value in numbers.items() if value is not None}
        body |= {"confidence": number(terms["confidence"])} if "confidence" in terms else {}
        plain = ("assume_rows", "max_rows", "max_groups", "left_out")
        body |= {name: terms[name] for name in plain if terms.get(name) is not None}
        if terms.get("weights") is not None:
            body["weights"] = [number(each) for each in terms["weights"]]
        if terms.get("params") is not None:
            body["params"] = params_of(terms["params"])
        return body

    def _asked(self, body: Mapping[str, Any], text: str) -> Any:
        return self._waited(self.transport.post("/v1/ask", body, new_key(), text))

    def _waited(self, reply: Reply) -> Any:
        """Returns an answer, once it is there. What was charged is answered even if the connection is cut meanwhile."""
        while reply.status == 202:
            if "approval" in reply.data:
                raise ApprovalError(str(reply.data["approval"]["why"]), request=int(reply.data["approval"]["id"]))
            time.sleep(_LOOK)
            reply = self.transport.send("GET", f"/v1/answers/{reply.data['id']}")
            if reply.status >= 400:
                raise error_of(reply.data)
        return reply.data

    def _shown(self, data: Mapping[str, Any], program: Program, asked: str, show: Callable[[Paid], Shown]) -> Shown:
        """Checks what the server returned against the plan, and makes the answer of its noisy numbers."""
        request = self._request(program, asked)
        receipt = _receipt(data)
        self._check_receipt(receipt, request)
        payload = committed_numbers(data, receipt, request.digest)
        try:
            noisy = program.read(payload)
        except (ValueError, TypeError, KeyError, IndexError, LedgerError):
            raise LedgerError(
                "The numbers that the server returned do not fit the plan of this question.",
                fix="update dither here or there; the answer is stored on the server, and can be looked up there.",
                charged="the price of the question",
            ) from None
        stored = None
        if data["replayed"]:
            stored = StoredAnswer(payload, receipt, receipt.body["analyst"], receipt.body["time"], False, self.caps, Sums())
        return show(_Received(noisy, receipt, stored, request, None, left_words=str(data.get("left") or "")))

    def _request(self, program: Program, asked: str) -> Request:
        """Returns what a ledger is asked for this plan; the server's must have been asked for the same."""
        return Request(
            question=asked,
            plan=program.identity,
            tables=program.tables,
            unit=program.unit,
            mechanisms=program.mechanisms,
            charge=program.charge.with_least_rho(self.caps.least_rho),
            catalog_hash=self.catalog_hash,
            snapshot=self.catalog.snapshot,
            neighbours=self.catalog.neighbours,
            analyst=self.analyst,
        )

    def _follow_rotation(self) -> None:
        """Asks the server for its keys again, after an answer was charged. Refuses one that is not what it was."""
        try:
            self.seen, self.keys = _recognise(self.transport, self.known, None)
        except LedgerError as error:
            raise LedgerError(error.what, fix=error.fix, charged="the price of the question, on the server") from None

    def _check_receipt(self, receipt: Receipt, request: Request | None) -> None:
        """Refuses a receipt that the pinned key did not sign, or that says another thing than the plan. Keeps its entry."""
        body = receipt.body
        if body["ledger"] == self.seen.ledger and not self.keys.signed(receipt):  # the key may have been rotated since
            self._follow_rotation()
        if body["ledger"] != self.seen.ledger or not self.keys.signed(receipt):
            raise _untrue("is not signed by the curator's key that you know")
        if request is not None:
            encoded = request.reserved("0" * 64).encoded
            own = {"catalog": encoded["catalog"], "snapshot": encoded["snapshot"], "unit": encoded["unit"]}
            own |= {name: encoded[name] for name in ("neighbours", "mechanisms", "loss")}
            wrong = [name for name, value in own.items() if body[name] != value]
            if wrong == ["catalog"]:
                raise LedgerError(
                    "The curator changed the catalog since you connected: the plan made here is not what was paid for.",
                    fix="connect again and ask again: the same question at the same price is free.",
                    charged="the price of the question",
                )
            if wrong:
                raise _untrue(f"states another {wrong[0]} than the plan of this question")
        newest = max(receipt.places, key=lambda place: int(place["number"]))
        self.seen = self.seen.newer(int(newest["number"]), str(newest["hash"]))
        self.known.keep(self.transport.origin, self.seen)


@dataclass(frozen=True)
class _Received(Paid):
    """A noisy answer from the server, with what it said is left."""

    left_words: str = ""

    def left(self) -> str:
        return self.left_words


def _untrue(why: str) -> LedgerError:
    return LedgerError(
        f"The receipt of the answer {why}.",
        fix="do not use the answer; tell the auditor. If dither was updated here or there, update both.",
        charged="the price of the question, on the server",
    )


def _refuse_public(query: Resolved, question: Question) -> Resolved:
    raise _OnServerError


def _receipt(data: Mapping[str, Any]) -> Receipt:
    return Receipt.from_json(json.dumps(data["receipt"]))


def _terms(epsilon: Number | None, delta: Number | None, terms: Mapping[str, Any]) -> Terms:
    names = ("margin", "confidence", "assume_rows", "max_rows", "max_groups", "left_out", "of", "sample")
    return Terms.of(epsilon, delta, **{name: terms[name] for name in names if name in terms})
