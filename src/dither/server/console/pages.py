"""The pages: login, ask, catalog, history, answers, receipts, approvals, audit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dither.charts.chart import chart_of
from dither.charts.svg import draw_columns, draw_shares
from dither.errors import AccessError, LedgerError
from dither.exact.numbers import show
from dither.history import questions
from dither.ledger.receipts import Receipt
from dither.server.accounts import Who
from dither.server.console import words
from dither.server.console.render import respond
from dither.server.describe import describe
from dither.server.desk import Desk
from dither.server.http.api import PAGE, budget_data, number_of
from dither.server.http.guard import desk_of
from dither.server.requests import Job


async def login(request: Request) -> Response:
    """GET /login: a code from the fragment, a name and password, or a token."""
    return respond(request, "login.html", oidc=desk_of(request).settings.oidc_issuer)


async def ask(request: Request, who: Who) -> Response:
    """GET /: the editor, the quote and the answer."""
    if not who.may("replay"):
        return RedirectResponse("/audit", 303)
    desk, number, entry = desk_of(request), number_of(request, "again", None), number_of(request, "entry", None)

    def read() -> dict[str, Any]:
        found = words.tables(describe(desk.survey))
        return {
            "tables": found,
            "examples": words.examples(found),
            "completions": words.completions(found),
            "budget": budget_data(desk, who),
            **before(desk, who, number, entry),
        }

    return respond(request, "ask.html", who=who, **await desk.read(who, read))


def before(desk: Desk, who: Who, number: int | None, entry: int | None) -> dict[str, Any]:
    """Returns the text and the terms of a question of this person, by its entry and that of its answer."""
    last = desk.survey.ledger.head().number
    rows = [] if number is None else questions(desk.survey.ledger.store, min(number, last), 1, who.name)[0]
    if not rows or rows[-1]["number"] != number:
        return {"question": "", "terms": {}}
    kept = None if entry is None else desk.requests.answer(entry, who.name)
    paid = {} if rows[-1]["epsilon"] == "0" else {"epsilon": show(Fraction(rows[-1]["epsilon"]))}
    return {"question": rows[-1]["question"], "terms": paid if kept is None else json.loads(kept).get("terms", paid)}


async def catalog(request: Request, who: Who) -> Response:
    """GET /catalog: what is declared, in words."""
    desk = desk_of(request)
    described: Mapping[str, Any] = await desk.read(who, lambda: describe(desk.survey))
    return respond(request, "catalog.html", who=who, tables=words.tables(described), described=described)


async def suggest(request: Request, who: Who) -> Response:
    """GET /suggest?column=: proposes bounds or values for a column, at a price."""
    who.require("ask")
    desk = desk_of(request)

    def read() -> dict[str, Any]:
        described = describe(desk.survey)
        tables = [each for each in words.tables(described) if not each.public]
        first = words.unbounded(tables)
        return {"tables": tables, "first": first, "delta": described["budget"]["delta"], "budget": budget_data(desk, who)}

    column = request.query_params.get("column", "")
    return respond(request, "suggest.html", who=who, column=column, **await desk.read(who, read))


async def history(request: Request, who: Who) -> Response:
    """GET /history: the budget, and the questions that were asked."""
    desk, before = desk_of(request), number_of(request, "before", None)
    everyone = request.query_params.get("everyone") == "1" or not who.may("replay")
    if everyone:
        who.require("audit")
    read = await desk.read(who, lambda: asked(desk, None if everyone else who.name, before))
    budget = await desk.read(who, lambda: budget_data(desk, who))
    return respond(request, "history.html", who=who, budget=budget, everyone=everyone, **read)


def asked(desk: Desk, name: str | None, before: int | None) -> dict[str, Any]:
    """Returns a page of questions, newest first."""
    ledger = desk.survey.ledger
    head = ledger.head().number
    rows, more = questions(ledger.store, head if before is None else min(before - 1, head), PAGE, name)
    terms = desk.requests.terms([row["answer"] for row in rows])
    rows = [row | {"terms": terms.get(row["answer"], {})} for row in rows[::-1]]
    return {"rows": rows, "more": more, "older": rows[-1]["number"] if rows else None}


# --- answers ----------------------------------------------------------------------------------------------------


async def answer(request: Request, who: Who) -> Response:
    """GET /answers/{id}: an answer that this person got."""
    job = await _job(request, who)
    if job.body is None:
        return respond(request, "waiting.html", who=who, job=job)
    values = shown(job)
    return respond(request, "answer.html", who=who, part=template_of(values), **values)


async def _job(request: Request, who: Who) -> Job:
    desk, ident = desk_of(request), request.path_params["id"]
    job: Job = await desk.read(who, lambda: desk.job(who, ident))
    return job


def shown(job: Job) -> dict[str, Any]:
    """Returns what the template of an answer needs: the whole of it, and its parts, one for each question of a list."""
    data: dict[str, Any] = json.loads(job.body or "{}")
    ident = data.get("id") or job.id
    if data.get("kind") == "proposal":
        return {"proposal": data, "ident": ident}
    parts = [_with_cells(each) for each in parts_of(data)]
    return {
        "answer": data,
        "ident": ident,
        "parts": [{"answer": each, "picture": picture(each), "cells": _cells(each)} for each in parts],
    }


def picture(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the drawings of an answer: each noisy column, and what was left out. They escape every text."""
    chart = chart_of(data)
    columns = [(each.name, [(title, Markup(drawn)) for title, drawn in each.panels]) for each in draw_columns(chart)]
    left_out = Markup(draw_shares(chart.shares)) if chart.shares else ""
    return {"columns": columns, "by": chart.inner, "left_out": left_out, "cut": chart.cut}


def template_of(values: Mapping[str, Any]) -> str:
    """Returns the template for what `shown` returned."""
    return "parts/proposal.html" if "proposal" in values else "parts/answer.html"


def parts_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the answer, or each answer of a list."""
    return list(data["answers"]) if "answers" in data else [dict(data)]


def _with_cells(part: dict[str, Any]) -> dict[str, Any]:
    """Returns a part with the texts that people read, and what its picture needs. Lists that were stored earlier lack some."""
    plain = [["" if value is None else str(value) for value in row] for row in part["rows"]]
    return {"question": "", "notes": [], "cells": plain, "ranks": {}, "left_out": [], "warning": None} | part


def _cells(data: Mapping[str, Any]) -> list[list[tuple[str, str, bool]]]:
    """Returns the cells of each row: the value, its margin, and whether it is a number."""
    numeric = [kind in ("int", "real") for kind in data["kinds"]]
    noisy = [name in data["margins"] for name in data["columns"]]
    return [
        [_cell(text, is_noisy, right) for text, is_noisy, right in zip(row, noisy, numeric, strict=True)]
        for row in data["cells"]
    ]


def _cell(text: str, is_noisy: bool, right: bool) -> tuple[str, str, bool]:
    value, _, margin = text.partition(" ± ") if is_noisy else (text, "", "")
    return value, margin, right


async def answer_csv(request: Request, who: Who) -> Response:
    """GET /answers/{id}/csv?question=: the columns, each noisy one followed by its margins; of a list, of one question."""
    job = await _job(request, who)
    whole, number = _whole(job), number_of(request, "question", 1) or 1
    parts = [] if whole.get("kind") == "proposal" else parts_of(whole)
    if not number <= len(parts):
        raise AccessError("There is no such table.", status=404, fix="open the answer, and save it from there.")
    data = parts[number - 1]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    names = _with_margins(data, list(data["columns"]))
    writer.writerow([_safe(name) for name in names])
    for place, row in enumerate(data["rows"]):
        cells: list[Any] = []
        for name, value in zip(data["columns"], row, strict=True):
            cells.append(_safe(value))
            if name in data["margins"]:
                cells.append(data["margins"][name][place])
        writer.writerow(["" if cell is None else cell for cell in cells])
    of = f"-{number}" if len(parts) > 1 else ""
    return _download(out.getvalue(), "text/csv; charset=utf-8", f"answer-{whole['id'] or job.id}{of}.csv")


def _with_margins(data: Mapping[str, Any], columns: list[str]) -> list[str]:
    taken, names = set(columns), []
    for name in columns:
        names.append(name)
        if name in data["margins"]:
            names.append(_label(name, taken))
            taken.add(names[-1])
    return names


def _label(name: str, taken: set[str]) -> str:
    made = f"{name}_margin"
    while made in taken:
        made += "_"
    return made


def _safe(value: Any) -> Any:
    """Returns a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


async def answer_json(request: Request, who: Who) -> Response:
    """GET /answers/{id}/json: the answer as the API returns it."""
    job = await _job(request, who)
    data = _whole(job)
    text = json.dumps(data, ensure_ascii=False, indent=2)
    return _download(text, "application/json", f"answer-{data['id'] or job.id}.json")


def _whole(job: Job) -> dict[str, Any]:
    if job.body is None:
        raise AccessError("This question has no answer yet.", status=409, fix="open it again in a moment.")
    data: dict[str, Any] = json.loads(job.body)
    return data


def _download(text: str, kind: str, name: str) -> Response:
    return Response(text, headers={"Content-Disposition": f'attachment; filename="{name}"'}, media_type=kind)


# --- receipts ---------------------------------------------------------------------------------------------------


async def receipt(request: Request, who: Who) -> Response:
    """GET /receipts/{id}: a receipt in words, and whether its signature is right."""
    desk = desk_of(request)
    ident = request.path_params["id"]
    found: dict[str, Any] = json.loads(await desk.read(who, lambda: _receipt(desk, who, ident)))
    terms = desk.requests.terms([int(ident)]).get(int(ident), {})
    kept, keys = Receipt.from_json(json.dumps(found)), await desk.read(who, desk.survey.ledger.keys)
    key, right = keys.at(kept.answers[-1]["number"]), keys.signed(kept)
    return respond(request, "receipt.html", who=who, **found, key=key, right=right, terms=terms)


async def receipt_json(request: Request, who: Who) -> Response:
    """GET /receipts/{id}/json: the receipt as a file, which `dither verify --receipt` checks."""
    desk, ident = desk_of(request), request.path_params["id"]
    text: str = await desk.read(who, lambda: _receipt(desk, who, ident))
    return _download(text, "application/json", f"receipt-{ident}.json")


def _receipt(desk: Desk, who: Who, ident: str) -> str:
    missing = AccessError("You have no such receipt.", status=404, fix="open one from your history.")
    if not (ident.isascii() and ident.isdecimal() and 0 < len(ident) < 19):
        raise missing
    try:
        found, seen = desk.survey.ledger.receipt(int(ident), who.name)
    except LedgerError:
        raise missing from None
    if not seen and not who.may("audit"):
        raise missing
    return found.to_json()


# --- curators and auditors --------------------------------------------------------------------------------------


async def approvals(request: Request, who: Who) -> Response:
    """GET /approvals: questions that wait for a curator, and how earlier ones were decided."""
    found = (await desk_of(request).approvals(who))[::-1]
    waiting = [each for each in found if each["state"] == "waiting"]
    decided = [each for each in found if each["state"] != "waiting"]
    return respond(request, "approvals.html", who=who, waiting=waiting, decided=decided[:PAGE])


async def audit(request: Request, who: Who) -> Response:
    """GET /audit: the ledger's facts, its verification, and everyone's questions."""
    who.require("audit")
    desk = desk_of(request)

    def read() -> dict[str, Any]:
        survey = desk.survey
        facts = {
            "ledger": survey.ledger.ident,
            "public key": survey.ledger.public_key,
            "newest entry": str(survey.ledger.head()),
            "catalog": survey.session.declaration.catalog_hash,
            "snapshot": survey.catalog.snapshot or "none",
        }
        found = asked(desk, None, None)
        return {"facts": facts, "budget": budget_data(desk, who), "by_analyst": _by_analyst(found["rows"]), **found}

    return respond(request, "audit.html", who=who, **await desk.read(who, read))


def _by_analyst(rows: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    """Returns who asked how many of these questions, and what they were charged."""
    sums: dict[str, tuple[int, Fraction]] = {}
    for row in rows:
        count, paid = sums.get(row["analyst"], (0, Fraction(0)))
        charged = Fraction(0) if row["state"] == "cancelled" else Fraction(row["epsilon"])
        sums[row["analyst"]] = count + 1, paid + charged
    return sorted(((name, count, str(paid)) for name, (count, paid) in sums.items()), key=lambda each: -Fraction(each[2]))
