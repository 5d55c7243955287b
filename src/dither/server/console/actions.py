"""What pages call while they are open: a quote while typing, an answer, whether it is there, the verdict on the ledger.

Each returns JSON with `html`, a part of the page that its template escaped, and what the page must know besides. The question
takes the same way as through /v1: the same forms, the same desk, the same problems.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dither.errors import ApprovalError, DitherError
from dither.server.accounts import Who
from dither.server.console.pages import shown
from dither.server.console.render import fragment
from dither.server.desk import Desk
from dither.server.http import metrics
from dither.server.http.api import budget_data, key_of, wait_of
from dither.server.http.forms import AskForm, QuoteForm
from dither.server.http.guard import desk_of, form_of, note, still_there, who_asks
from dither.server.http.problems import status_of
from dither.server.requests import ANSWERING, Job


async def quote(request: Request) -> Response:
    """POST /console/quote: the price of what is being typed, or what is wrong with it. Free."""
    who, desk = who_asks(request), desk_of(request)
    form, _ = await form_of(request, QuoteForm)
    note(request, question=form.question)
    try:
        data = await desk.quote(who, form.asked(), still_there(request))
    except DitherError as error:
        if status_of(error) != 422:
            raise
        metrics.count_question("quote", error.code)
        return JSONResponse(refused(error.as_data()))
    metrics.count_question("quote", "quoted")
    left = await desk.read(who, lambda: _left(desk, who))
    share = _share(data["price"]["epsilon"], left)
    html = fragment("parts/quote.html", quote=data, share=share)
    free, waits = data["entry"] is not None, data["waits"] is not None
    may = data["refused"] is None or free or waits  # asking files a request where a curator must approve
    return JSONResponse({"html": html, "span": None, "may": may, "free": free, "waits": waits})


def refused(problem: dict[str, Any]) -> dict[str, Any]:
    """Returns a refusal as part of a page, with the place of the mistake in the question."""
    html = fragment("parts/problem.html", problem=problem)
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
    note(request, question=form.question)
    wait = min(wait_of(request, desk), 5.0)
    try:
        job = await desk.ask(who, form.asked(), key_of(request), body, wait=wait, still=still_there(request))
    except ApprovalError as error:
        metrics.count_question("ask", error.code)
        note(request, outcome="waits for a curator", entry=error.request)
        return JSONResponse({"html": fragment("parts/approval.html", waits=error), "state": "waiting", "id": error.request})
    except DitherError as error:
        metrics.count_question("ask", error.code)
        return JSONResponse(refused(error.as_data()) | {"state": "refused"}, 401 if status_of(error) == 401 else 200)
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
        return JSONResponse(refused(dict(job.problem or {})) | {"state": "refused"})
    metrics.count_question("ask", "answered")
    note(request, outcome="answered")
    values = shown(job)
    budget = await desk.read(who, lambda: budget_data(desk, who))
    made = {"html": fragment("parts/answer.html", **values), "budget": fragment("parts/meter.html", budget=budget)}
    return JSONResponse(made | {"state": "answered", "id": values["ident"]})


async def verify(request: Request) -> Response:
    """GET /console/verify: checks every entry, sum and signature of the ledger."""
    who, desk = who_asks(request), desk_of(request)
    report = await desk.verify(who)
    return JSONResponse({"html": fragment("parts/verdict.html", report=report.as_data()), "ok": report.ok})
