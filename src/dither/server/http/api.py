"""/v1: quotes, answers, the catalog, the budget, history, receipts and verification.

A question that is refused is an answer to a quote, so /v1/quote returns 200 with `error`. /v1/ask returns 200 with the answer,
202 with an id while it is being answered, or a problem.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dither.errors import AccessError, ApprovalError, DitherError, LedgerError, RequestError
from dither.history import questions
from dither.server.accounts import Who
from dither.server.describe import describe
from dither.server.desk import Desk
from dither.server.http import metrics
from dither.server.http.forms import AskForm, DecisionForm, QuoteForm, SuggestForm
from dither.server.http.guard import desk_of, form_of, note, still_there, who_asks
from dither.server.http.problems import STATUS, as_problem, reply, status_of
from dither.server.requests import ANSWERING, FAILED, Job

PAGE = 50
MOST = 500


async def quote(request: Request) -> Response:
    """POST /v1/quote: price, margins, whether the budget allows it. Free."""
    who = who_asks(request)
    form, _ = await form_of(request, QuoteForm)
    note(request, question=form.question)
    try:
        data = await desk_of(request).quote(who, form.asked(), still_there(request))
    except DitherError as error:
        if status_of(error) != 422:
            raise
        metrics.count_question("quote", error.code)
        return JSONResponse({"error": as_problem(error.as_data(), 422)})
    metrics.count_question("quote", "quoted")
    return JSONResponse(data)


async def ask(request: Request) -> Response:
    """POST /v1/ask: the answer, charged before any row is read; or 202 while it is being answered."""
    who, desk = who_asks(request), desk_of(request)
    form, body = await form_of(request, AskForm)
    note(request, question=form.question)
    try:
        job = await desk.ask(who, form.asked(), key_of(request), body, wait=wait_of(request, desk), still=still_there(request))
    except ApprovalError as error:
        return _waits(request, error)
    except DitherError as error:
        metrics.count_question("ask", error.code)
        raise
    return job_response(request, job, "ask")


def _waits(request: Request, error: ApprovalError) -> Response:
    """Returns 202 and where to look, for a question that waits for a curator."""
    metrics.count_question("ask", error.code)
    note(request, outcome="waits for a curator", entry=error.request)
    waiting = {"id": error.request, "state": "waiting", "why": error.why}
    where = {"Location": f"/v1/approvals/{error.request}"}
    return JSONResponse({"approval": waiting, "what": error.what, "charged": error.charged}, 202, where)


async def suggest(request: Request) -> Response:
    """POST /v1/suggest: bounds for a column, proposed from the data at a price."""
    who, desk = who_asks(request), desk_of(request)
    form, body = await form_of(request, SuggestForm)
    terms = {"epsilon": form.epsilon, "delta": form.delta, "by": form.by, "fresh": form.fresh}
    wait = wait_of(request, desk)
    try:
        job = await desk.suggest(who, form.column, terms, key_of(request), body, wait=wait, still=still_there(request))
    except ApprovalError as error:
        return _waits(request, error)
    return job_response(request, job, "suggest")


def key_of(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise RequestError("There is more than one Idempotency-Key.", status=400, fix="send one.")
    return keys[0] if keys else None


def wait_of(request: Request, desk: Desk) -> float:
    """Returns how long to wait for an answer: Prefer: respond-async, or wait=SECONDS."""
    for part in request.headers.get("prefer", "").split(","):
        name, _, value = part.strip().partition("=")
        if name == "respond-async":
            return 0.0
        if name == "wait" and value.isascii() and value.isdecimal() and len(value) < 5:
            return min(float(value), desk.settings.wait)
    return desk.settings.wait


def job_response(request: Request, job: Job, kind: str) -> Response:
    """Returns an answer, its problem, or how far it is: in ticks, never as a share of the work."""
    if job.state == ANSWERING:
        note(request, outcome="answering")
        where = f"/v1/answers/{job.id}"
        return JSONResponse(
            {"id": job.id, "state": job.state, "ticks": job.ticks}, 202, {"Location": where, "Retry-After": "1"}
        )
    if job.state == FAILED or job.body is None:
        data = dict(job.problem or {})
        return reply(as_problem(data, 500), 500) if "code" not in data else _failed(data)
    metrics.count_question(kind, "answered")
    note(request, outcome="answered")
    return Response(job.body, media_type="application/json")


def _failed(data: dict[str, Any]) -> Response:
    status = STATUS.get(str(data["code"]), 500)
    return reply(as_problem(data, status), status)


async def approvals(request: Request) -> Response:
    """GET /v1/approvals: questions that wait or waited for a curator; your own, or everyone's for curators and auditors."""
    who, desk = who_asks(request), desk_of(request)
    return JSONResponse({"approvals": await desk.approvals(who)})


async def approval(request: Request) -> Response:
    """GET /v1/approvals/{id}: one of them."""
    who, desk, ident = who_asks(request), desk_of(request), request.path_params["id"]
    found = next((each for each in await desk.approvals(who) if str(each["id"]) == ident), None)
    if found is None:
        raise AccessError("There is no such request for you.", status=404, fix="look at /v1/approvals.")
    return JSONResponse(found)


async def decide(request: Request) -> Response:
    """POST /v1/approvals/{id}: approves or refuses it, for curators. Nobody decides on their own question."""
    who, desk, ident = who_asks(request), desk_of(request), request.path_params["id"]
    form, _ = await form_of(request, DecisionForm)
    who.require("curate")
    if form.decision not in ("approve", "refuse") or not (ident.isascii() and ident.isdecimal() and len(ident) < 19):
        raise RequestError("A decision is approve or refuse.", status=422, fix="send one of the two, for a number.")
    note(request, decision=form.decision, entry=int(ident))
    return JSONResponse(await desk.decide(who, int(ident), form.decision == "approve", form.words, form.days))


async def answer(request: Request) -> Response:
    """GET /v1/answers/{id}: an answer that you got, by its entry or its job; or how far it is."""
    who, desk = who_asks(request), desk_of(request)
    ident = request.path_params["id"]
    job = await desk.read(who, lambda: desk.job(who, ident))
    return job_response(request, job, "look")


async def catalog(request: Request) -> Response:
    """GET /v1/catalog: the declaration without its sources, for people and for programs that plan themselves."""
    who, desk = who_asks(request), desk_of(request)
    return JSONResponse(await desk.read(who, lambda: describe(desk.survey)))


async def budget(request: Request) -> Response:
    """GET /v1/budget: total, spent and left; your own quota; that of your project."""
    who, desk = who_asks(request), desk_of(request)
    return JSONResponse(await desk.read(who, lambda: budget_data(desk, who)))


def budget_data(desk: Desk, who: Who) -> dict[str, Any]:
    """Returns how the budget stands, with this person's quota and their project's."""
    survey, found = desk.survey, desk.survey.budget.as_data()
    head = survey.ledger.head()
    found |= {"entries": head.number, "head": str(head), "closed": survey.closed}
    if survey.catalog.budget.per_analyst is not None and who.may("ask"):
        own = survey.quota(who.name).as_data()
        found["analyst"] = {"name": who.name, "epsilon": own["rules"]["sum"]["epsilon"]} | own
    if who.project is not None:
        project = next((each for each in desk.accounts.projects() if each["name"] == who.project), None)
        found["project"] = None if project is None else {name: project[name] for name in ("name", "quota", "spent")}
    if desk.clock is not None:
        found["clock"] = desk.clock.spent()
    return found


async def history(request: Request) -> Response:
    """GET /v1/history?before=&limit=&everyone=: the last questions, newest last; your own, or with `audit` everyone's."""
    who, desk = who_asks(request), desk_of(request)
    before = number_of(request, "before", None)
    limit = min(number_of(request, "limit", PAGE) or PAGE, MOST)
    everyone = request.query_params.get("everyone", "") in ("1", "true")
    everyone = everyone or not who.may("replay")  # an auditor asks nothing
    if everyone:
        who.require("audit")
    name = None if everyone else who.name

    def read() -> dict[str, Any]:
        store, head = desk.survey.ledger.store, desk.survey.ledger.head().number
        last = head if before is None else min(before - 1, head)
        rows, more = questions(store, last, limit, name)
        return {"questions": rows, "more": more}

    return JSONResponse(await desk.read(who, read))


def number_of(request: Request, name: str, default: int | None) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise RequestError(f"{name} must be a whole number above 0.", status=422, fix="write a number such as 50.")
    return int(text)


async def receipt(request: Request) -> Response:
    """GET /v1/receipts/{id}: the signed receipt of an answer that you got; with `audit`, of any answer."""
    who, desk = who_asks(request), desk_of(request)
    ident = request.path_params["id"]
    if not (ident.isascii() and ident.isdecimal() and 0 < len(ident) < 19):
        raise _no_receipt()

    def read() -> str:
        try:
            found, seen = desk.survey.ledger.receipt(int(ident), who.name)
        except LedgerError:
            raise _no_receipt() from None
        if not seen and not who.may("audit"):
            raise _no_receipt()
        return found.to_json()

    return Response(await desk.read(who, read), media_type="application/json")


def _no_receipt() -> AccessError:
    return AccessError("You have no such receipt.", status=404, fix="name the entry of an answer that you got.")


async def verify(request: Request) -> Response:
    """GET /v1/verify: checks every entry, sum and signature of the ledger."""
    who, desk = who_asks(request), desk_of(request)
    report = await desk.verify(who)
    return JSONResponse(report.as_data() | {"public_key": desk.survey.ledger.public_key})


async def key(request: Request) -> Response:
    """GET /v1/key: what a client keeps: the ledger's name, public key and newest head; with ?at=N the hash of entry N.

    `rotations` are the entries that lead from the ledger's first key to this one, for a client that knows an earlier one.
    """
    who, desk = who_asks(request), desk_of(request)
    at = number_of(request, "at", None)

    def read() -> dict[str, Any]:
        ledger = desk.survey.ledger
        found: dict[str, Any] = {"ledger": ledger.ident, "public_key": ledger.public_key, "head": str(ledger.head())}
        found["catalog"] = desk.survey.session.declaration.catalog_hash
        found["rotations"] = [{"body": body, "signature": signature} for body, signature in ledger.rotations()]
        if at is not None:
            row = ledger.store.entry(at)
            found["at"] = None if row is None else f"{row.number}:{row.hash}"
        return found

    return JSONResponse(await desk.read(who, read))
