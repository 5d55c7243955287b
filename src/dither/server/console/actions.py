"""What pages call while they are open: a quote while typing, an answer, whether it is there, the verdict on the ledger.

Each returns JSON with `html`, a part of the page that its template escaped, and what the page must know besides. The question
takes the same way as through /v1: the same forms, the same desk, the same problems. Several questions in the editor, separated
by semicolons, are a list at one price.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dither.errors import ApprovalError, DitherError, QueryError
from dither.query.sql.gate import statement_spans
from dither.server.accounts import Who
from dither.server.console.pages import shown, template_of
from dither.server.console.render import fragment
from dither.server.desk import Desk
from dither.server.http import metrics
from dither.server.http.api import budget_data, key_of, wait_of
from dither.server.http.forms import AskForm, QuoteForm, SuggestForm
from dither.server.http.guard import desk_of, form_of, note, still_there, who_asks
from dither.server.http.problems import status_of
from dither.server.requests import ANSWERING, Job

F = TypeVar("F", bound=QuoteForm)


def listed(form: F) -> tuple[F, dict[str, int]]:
    """Returns the form with several questions as a list, and the place of each in what was typed."""
    text = form.question if isinstance(form.question, str) else ""
    try:
        spans = statement_spans(text)
    except QueryError:  # it is refused when it is read
        return form, {}
    if len(spans) < 2:
        return form, {}
    places = {text[start:end]: start for start, end in reversed(spans)}
    return msgspec.structs.replace(form, question=[text[start:end] for start, end in spans]), places


async def quote(request: Request) -> Response:
    """POST /console/quote: the price of what is being typed, or what is wrong with it. Free."""
    who, desk = who_asks(request), desk_of(request)
    form, places = listed((await form_of(request, QuoteForm))[0])
    note(request, question=form.question)
    try:
        data = await desk.quote(who, form.asked(), still_there(request))
    except DitherError as error:
        if status_of(error) != 422:
            raise
        metrics.count_question("quote", error.code)
        return JSONResponse(refused(error, places, where=False))  # the editor underlines it
    metrics.count_question("quote", "quoted")
    return await quoted(who, desk, data, "parts/quote.html")


async def quoted(who: Who, desk: Desk, data: dict[str, Any], template: str) -> Response:
    """Returns a quote as part of a page, and whether it may be asked."""
    left = await desk.read(who, lambda: _left(desk, who))
    html = fragment(template, quote=data, share=_share(data["price"]["epsilon"], left))
    free, waits = data["entry"] is not None, data["waits"] is not None
    may = data["refused"] is None or free or waits  # asking files a request where a curator must approve
    return JSONResponse({"html": html, "span": None, "may": may, "free": free, "waits": waits})


def refused(error: DitherError, places: dict[str, int] | None = None, *, where: bool = True) -> dict[str, Any]:
    """Returns a refusal as part of a page, with the place of the mistake in what was typed. `where`: also show the place."""
    found = refusal(error.as_data(), where)
    if found["span"] is not None and isinstance(error, QueryError):
        start = (places or {}).get(error.text, 0)
        found["span"] = [start + each for each in found["span"]]
    return found


def refusal(problem: dict[str, Any], where: bool = True) -> dict[str, Any]:
    html = fragment("parts/problem.html", problem=problem, where=where)
    return {"html": html, "span": problem.get("span"), "message": problem["what"], "may": False, "free": False}


def _left(desk: Desk, who: Who) -> Fraction:
    return Fraction(budget_data(desk, who)["rules"]["sum"]["epsilon"]["left"])


def _share(epsilon: str, left: Fraction) -> str:
    """Says which share of what is left a price is, rounded up."""
    if not left or Fraction(epsilon) > left:
        return ""
    percent = 100 * Fraction(epsilon) / left
    return "less than 1 %" if percent < 1 else f"{-(-percent // 1)} %"


async def ask(request: Request) -> Response:
    """POST /console/ask: the answer as part of the page."""
    who, desk = who_asks(request), desk_of(request)
    form, body = await form_of(request, AskForm)
    form, places = listed(form)
    note(request, question=form.question)
    wait = min(wait_of(request, desk), 5.0)
    try:
        job = await desk.ask(who, form.asked(), key_of(request), body, wait=wait, still=still_there(request))
    except DitherError as error:
        return _not_answered(request, error, places)
    return await job_response(request, who, job)


def _not_answered(request: Request, error: DitherError, places: dict[str, int] | None = None) -> Response:
    """Returns why there is no answer: a curator must approve it, or it is refused."""
    metrics.count_question("ask", error.code)
    if isinstance(error, ApprovalError):
        note(request, outcome="waits for a curator", entry=error.request)
        return JSONResponse({"html": fragment("parts/approval.html", waits=error), "state": "waiting", "id": error.request})
    return JSONResponse(refused(error, places) | {"state": "refused"}, 401 if status_of(error) == 401 else 200)


async def quote_suggestion(request: Request) -> Response:
    """POST /console/suggest/quote: what a proposal for a column costs, or what is wrong with asking for it. Free."""
    who, desk = who_asks(request), desk_of(request)
    form, _ = await form_of(request, SuggestForm)
    terms = {"epsilon": form.epsilon, "delta": form.delta, "by": form.by}
    try:
        data = await desk.preview_suggestion(who, form.column, terms, still_there(request))
    except DitherError as error:
        if status_of(error) not in (400, 422):
            raise
        return JSONResponse(refused(error))
    return await quoted(who, desk, data, "parts/suggestion.html")


async def suggest(request: Request) -> Response:
    """POST /console/suggest: the proposal as part of the page."""
    who, desk = who_asks(request), desk_of(request)
    form, body = await form_of(request, SuggestForm)
    terms = {"epsilon": form.epsilon, "delta": form.delta, "by": form.by, "fresh": form.fresh}
    wait = min(wait_of(request, desk), 5.0)
    try:
        job = await desk.suggest(who, form.column, terms, key_of(request), body, wait=wait, still=still_there(request))
    except DitherError as error:
        return _not_answered(request, error)
    return await job_response(request, who, job)


async def look(request: Request) -> Response:
    """GET /console/answers/{id}: an answer as part of the page, or that it is not there yet."""
    who, desk = who_asks(request), desk_of(request)
    ident = request.path_params["id"]
    job: Job = await desk.read(who, lambda: desk.job(who, ident))
    return await job_response(request, who, job)


async def job_response(request: Request, who: Who, job: Job) -> Response:
    """Returns an answer, or how far it is, with the budget as it stands now."""
    desk = desk_of(request)
    if job.state == ANSWERING:
        html = fragment("parts/waiting.html", ticks=job.ticks)
        return JSONResponse({"html": html, "state": "answering", "id": job.id})
    if job.body is None:
        return JSONResponse(refusal(dict(job.problem or {})) | {"state": "refused"})
    metrics.count_question("ask", "answered")
    note(request, outcome="answered")
    values = shown(job)
    budget = await desk.read(who, lambda: budget_data(desk, who))
    made = {"html": fragment(template_of(values), **values), "budget": fragment("parts/meter.html", budget=budget)}
    return JSONResponse(made | {"state": "answered", "id": values["ident"]})


async def verify(request: Request) -> Response:
    """GET /console/verify: checks every entry, sum and signature of the ledger."""
    who, desk = who_asks(request), desk_of(request)
    report = await desk.verify(who)
    smooth = bool(desk.survey.session.caps.rho_max)  # the budget adds up ρ
    return JSONResponse({"html": fragment("parts/verdict.html", report=report.as_data(), smooth=smooth), "ok": report.ok})
