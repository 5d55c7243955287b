"""The console in a real browser: Debian's Chromium, driven by Playwright. Skipped where there is none.

Every page that a test opens must load nothing from elsewhere, write nothing to the browser's console, and pass axe.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dither.server.console import pages, render, words
from dither.server.describe import describe
from dither.server.requests import Job
from server.serving import BY_WARD, COUNT, Running, make, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright", exc_type=ImportError)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium")
MEAN = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY ward"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Visitor:
    """Somebody at a browser. Collects what the page should not do."""

    page: Any
    base: str
    faults: list[str] = field(default_factory=list)

    def watch(self) -> Visitor:
        self.page.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", lambda request: self._check(request.url))
        return self

    def _check(self, url: str) -> None:
        if not url.startswith((self.base, "data:")):
            self.faults.append(f"outside: {url}")

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def write(self, question: str) -> None:
        self.page.click(".cm-content")
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(question)

    def axe(self) -> list[str]:
        """Returns the violations of the page as it is."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{self.page.url}: {each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(make(tmp_path_factory.mktemp("console"), approve_above="0.5")) as server:
        with_password(server)
        yield server


def with_password(server: Running) -> None:
    server.desk.accounts.set_password("cora", "four words are enough")


@pytest.fixture
def visit(browser: Any, running: Running) -> Iterator[Callable[..., Visitor]]:
    """Returns a function that logs somebody in, with a link that works once."""
    contexts = []

    def enter(who: str | None, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(60_000)
        visitor = Visitor(context.new_page(), f"http://127.0.0.1:{running.port}").watch()
        if who is not None:
            visitor.go(f"/login#{running.desk.accounts.make_code(who)}")
            visitor.page.wait_for_url(re.compile("/(audit)?$"))
        return visitor

    yield enter
    for each in contexts:
        each.close()


# --- in a browser -----------------------------------------------------------------------------------------------


@needs_browser
@pytest.mark.slow
def test_an_analyst_asks(visit: Callable[..., Visitor], running: Running) -> None:
    """Log in by link, a quote while typing, the mistake underlined, an answer with a chart, its export and receipt."""
    ada = visit("ada")
    page = ada.page
    assert "dthl_" not in page.url
    ada.write("SELECT SUM(income) AS s FROM people")
    page.wait_for_selector(".cm-lintRange-error")
    assert page.inner_text(".cm-lintRange-error") == "income"
    assert "has no bounds" in page.inner_text("#quote")
    assert page.is_disabled("#go")
    ada.write(MEAN)
    page.wait_for_selector("#go:not([disabled])")
    quoted = page.inner_text("#quote")
    assert "ε = 0.1" in quoted
    assert "10 % of what is left" in quoted
    assert page.query_selector(".cm-lintRange-error") is None
    assert running.spent() == "0"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer")
    assert page.locator(".answer tbody tr").count() == 2
    assert page.locator(".answer svg.chart").count() == 2
    assert page.locator(".answer svg.chart .whisker").count() >= 6
    assert "0.9 of 1 left" in page.inner_text("#meter")
    page.wait_for_selector("text=Show the answer")
    assert "free" in page.inner_text("#quote .price")
    with page.expect_download() as saved:
        page.click("text=CSV")
    lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "ward,n,n_margin,age,age_margin"
    assert len(lines) == 3
    page.click("text=Receipt")
    page.wait_for_selector("text=Signed by the curator's key")
    assert page.inner_text(".badge.good") == "right"
    assert running.spent() == "1/10"
    assert ada.axe() == []
    assert ada.faults == []


@needs_browser
@pytest.mark.slow
def test_the_editor_completes_columns_by_keyboard(visit: Callable[..., Visitor]) -> None:
    ada = visit("ada")
    ada.write("")
    ada.page.keyboard.type("SELECT COUNT(*) AS n FROM peo")
    ada.page.wait_for_selector(".cm-tooltip-autocomplete [aria-selected]")
    assert ada.page.inner_text(".cm-tooltip-autocomplete [aria-selected] .cm-completionLabel") == "people"
    ada.page.wait_for_timeout(200)  # CodeMirror takes no choice in the first moments
    ada.page.keyboard.press("Enter")
    ada.page.keyboard.type(" WHERE ag")
    ada.page.wait_for_selector("text=age")
    assert "FROM people WHERE ag" in ada.page.inner_text(".cm-content")
    assert ada.faults == []


@needs_browser
@pytest.mark.slow
def test_parameters_have_fields_of_their_own(visit: Callable[..., Visitor]) -> None:
    ada = visit("ada")
    page = ada.page
    ada.write("SELECT COUNT(*) AS n FROM people WHERE age > :low AND ward = :ward AND ward <> ':no'")
    page.wait_for_selector("#values input")
    assert page.locator("#values label").all_inner_texts() == [":low", ":ward"]
    for place, value in enumerate(("30", "north")):
        page.fill(f"#values input >> nth={place}", value)
    page.wait_for_selector("#go:not([disabled])")
    assert "ε = 0.1" in page.inner_text("#quote")
    assert ada.axe() == []
    ada.write(COUNT)
    page.wait_for_selector("#values", state="hidden")
    assert ada.faults == []


@needs_browser
@pytest.mark.slow
@needs_browser
@pytest.mark.slow
def test_several_questions_at_one_price(visit: Callable[..., Visitor], running: Running) -> None:
    """Written one after the other in the editor, by keyboard; a mistake is underlined in the one that has it."""
    visitor = visit("ben")
    page, spent = visitor.page, running.spent()
    second = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
    visitor.write(f"SELECT COUNT(*) AS all_of_them FROM people;\n{second.replace('ward,', 'wrad,')};")
    page.wait_for_selector("#quote .alert.bad")
    assert "Question 2" in page.inner_text("#quote")
    assert page.inner_text(".cm-lintRange-error") == "wrad"
    visitor.write(f"SELECT COUNT(*) AS all_of_them FROM people;\n{second}")
    page.wait_for_selector("#quote h3 >> nth=1")
    assert page.inner_text("#quote .price").startswith("ε = 0.1")
    assert running.spent() == spent
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer .part >> nth=1")
    assert page.inner_text(".answer .badge") == "charged ε = 0.1 in all"
    assert [page.locator(".part").nth(i).locator("thead th").count() for i in (0, 1)] == [1, 2]
    page.locator(".answer a", has_text="Link").click()
    page.wait_for_selector(".answer .part >> nth=1")
    assert visitor.axe() == []
    visitor.go("/history")
    page.click("text=Ask again >> nth=0")
    page.wait_for_selector("#quote .price.free")
    assert page.inner_text("#go") == "Show the answer"


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bounds_are_suggested_for_a_column(visit: Callable[..., Visitor], running: Running, scheme: str) -> None:
    """The price is said before it is paid. On a narrow screen, by keyboard."""
    visitor = visit("ada", color_scheme=scheme, viewport={"width": 360, "height": 740})
    page, spent = visitor.page, running.spent()
    visitor.go("/catalog")
    page.click("text=Suggest bounds")
    page.wait_for_url(re.compile("column=people.income"))
    page.wait_for_selector("#quote .price")
    assert page.eval_on_selector("[name=column]", "each => each.value") == "people.income"
    assert page.inner_text("#quote .price").startswith("ε = 0.1")
    page.focus("[name=epsilon]")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.0000001")
    page.wait_for_selector("#quote .alert")  # less than a question must cost
    assert page.is_disabled("#go")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.01" if scheme == "light" else "0.02")
    page.wait_for_selector("#go:not([disabled])")
    assert page.inner_text("#go").startswith("Pay ε = 0.0")
    assert running.spent() == spent
    page.keyboard.press("Enter")
    page.wait_for_selector(".proposal svg")
    assert "Too noisy" in page.inner_text(".proposal")
    assert "income = { between = [" in page.inner_text(".proposal pre")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visitor.axe() == []
    page.wait_for_selector("#quote .price.free")
    assert running.spent() != spent


def test_a_curator_approves_and_the_analyst_gets_the_answer(visit: Callable[..., Visitor]) -> None:
    ada, cora = visit("ada"), visit(None)
    ada.write(COUNT)
    ada.page.fill("input[name=epsilon]", "0.6")
    ada.page.wait_for_selector("#quote >> text=waits for a curator")
    ada.page.click("#go")
    ada.page.wait_for_selector("#result >> text=It waits for a curator")
    cora.go("/login")
    assert cora.axe() == []
    cora.page.fill("#name", "cora")
    cora.page.fill("#password", "four words are enough")
    cora.page.click("button.main")
    cora.page.wait_for_url(re.compile("/$"))
    cora.go("/approvals")
    assert cora.axe() == []
    cora.page.fill("input[name=words]", "for <b>the</b> report")
    cora.page.click("button[value=approve]")
    cora.page.wait_for_selector(".state.approved")
    assert "for <b>the</b> report" in cora.page.inner_text(".request")
    ada.page.click("#go")
    ada.page.wait_for_selector(".answer")
    assert ada.axe() == []
    assert (ada.faults, cora.faults) == ([], [])


@needs_browser
@pytest.mark.slow
def test_an_auditor_verifies(visit: Callable[..., Visitor]) -> None:
    otto = visit("otto")
    assert otto.page.url.endswith("/audit")
    otto.page.click("#verify")
    otto.page.wait_for_selector("#verdict >> text=Nothing is wrong")
    assert otto.axe() == []
    otto.page.click("#logout")
    otto.page.wait_for_url(re.compile("/login$"))
    otto.go("/audit")
    assert otto.page.url.endswith("/login")
    assert otto.faults == []


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_narrow_screen_and_passes_axe(visit: Callable[..., Visitor], scheme: str) -> None:
    cora = visit("cora", viewport={"width": 360, "height": 740}, color_scheme=scheme)
    for path in (
        "/",
        "/catalog",
        "/suggest",
        "/history",
        "/history?everyone=1",
        "/approvals",
        "/audit",
        "/answers/999",
        "/receipts/999",
    ):
        cora.go(path)
        cora.page.wait_for_load_state("networkidle")
        for each in cora.page.query_selector_all("summary"):
            each.click()
        assert cora.page.evaluate("document.documentElement.scrollWidth") <= 360, path
        assert cora.axe() == []
    missing = [each for each in cora.faults if "404" in each]  # the browser's own note on the last two pages
    assert cora.faults == missing


@needs_browser
@pytest.mark.slow
def test_a_wrong_login_says_so(visit: Callable[..., Visitor]) -> None:
    nobody = visit(None)
    nobody.go("/login")
    nobody.page.click("summary")
    nobody.page.fill("#token", "dth_" + "A" * 43)
    nobody.page.keyboard.press("Enter")
    nobody.page.wait_for_selector("#login-problem:not([hidden])")
    assert nobody.page.inner_text("#login-problem") == "This login is not right."
    assert all("401" in each for each in nobody.faults)


# --- without one ------------------------------------------------------------------------------------------------


def cookie(running: Running, who: str) -> dict[str, str]:
    secret = running.desk.accounts.log_in_by_code(running.desk.accounts.make_code(who), "test", 60)
    return {"Cookie": f"{running.desk.settings.cookie}={secret}"}


def test_pages_are_for_those_who_are_logged_in_and_may_see_them(running: Running) -> None:
    for path in ("/", "/catalog", "/suggest", "/history", "/approvals", "/audit", "/answers/1", "/receipts/1"):
        assert running.get(path).headers["location"] == "/login"
    assert running.get("/audit", headers=cookie(running, "ada")).status == 403
    assert running.get("/history?everyone=1", headers=cookie(running, "ada")).status == 403
    assert running.get("/", headers=cookie(running, "otto")).headers["location"] == "/audit"


def test_pages_keep_to_themselves(running: Running) -> None:
    for path in ("/login", "/", "/catalog"):
        policy = running.get(path, headers=cookie(running, "ada")).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
    found = [running.get("/login").headers["content-security-policy"] for _ in range(2)]
    assert found[0] != found[1]  # the nonce


def test_an_action_needs_the_pages_own_origin(running: Running) -> None:
    body, sent = {"question": COUNT, "epsilon": "0.01"}, cookie(running, "ada")
    for path in ("/console/quote", "/console/ask"):
        assert running.post(path, None, body, sent).status == 403
        assert running.post(path, None, body, sent | {"Origin": "http://elsewhere.example"}).status == 403
    own = sent | {"Origin": f"http://127.0.0.1:{running.port}"}
    assert running.post("/console/quote", None, body, own).status == 200


def test_nobody_sees_another_persons_answer(running: Running) -> None:
    entry = running.ask("ada", BY_WARD, "0.01").json["entry"]
    for path in (f"/answers/{entry}", f"/answers/{entry}/csv", f"/answers/{entry}/json", f"/receipts/{entry}"):
        assert running.get(path, headers=cookie(running, "ada")).status == 200
        assert running.get(path, headers=cookie(running, "ben")).status == 404
    assert running.get(f"/console/answers/{entry}", headers=cookie(running, "ben")).status == 404


def test_only_known_files_are_sent(running: Running) -> None:
    for path in ("/static/../pages.py", "/static/%2e%2e/pages.py", "/static//etc/passwd", "/static/", "/static/none.js"):
        assert running.get(path).status == 404
    found = running.get("/static/console.js", headers={"Accept-Encoding": "gzip"})
    assert (found.status, found.headers["content-encoding"]) == (200, "gzip")


def test_nothing_that_pages_load_names_another_host() -> None:
    """Licences and namespaces are texts; everything else that a browser reads names no host."""
    for path, file in render.static_files().items():
        if path.endswith((".js", ".css")):
            hosts = set(re.findall(rb"https?://([\w.-]+)", file.content)) - {b"www.w3.org"}
            assert not hosts, path
    for name in render.environment().list_templates():
        assert "//" not in re.sub(
            r"<!doctype[^>]*>", "", (Path(render.__file__).parent / "templates" / name).read_text("utf-8")
        )


def test_the_catalog_in_words(running: Running) -> None:
    (people,) = words.tables(describe(running.desk.survey))
    found = {column.name: column for column in people.columns}
    assert found["person"].declared == "who is protected"
    assert (found["ward"].declared, found["ward"].use) == ("north, south", "group by it: 2 public groups")
    assert found["age"].declared == "0 to 100"
    assert "CLAMP(income" in found["income"].use
    assert "at most 1 row in each group" in people.counts
    assert len(people.samples) == words.SAMPLES
    assert all(0 <= int(row[2]) <= 100 for row in people.samples)
    for question in words.examples_of(people):
        assert running.desk.survey.quote(question, epsilon="0.1").epsilon


HOSTILE = "<script>alert(1)</script>\"'&"


def test_hostile_names_and_values_are_escaped() -> None:
    answer: dict[str, Any] = {
        "columns": [HOSTILE, "n"],
        "kinds": ["text", "int"],
        "rows": [[HOSTILE, 5]],
        "cells": [[HOSTILE, "5 ± 2"]],
        "margins": {"n": [2.0]},
        "ranks": {},
        "left_out": [
            {
                "kind": "share not counted",
                "estimate": 0.5,
                "low": 0.4,
                "high": 0.6,
                "seen": True,
                "hidden": False,
                "beyond": None,
            }
            | {"title": HOSTILE, "text": HOSTILE}
        ],
        "notes": [HOSTILE],
        "warning": HOSTILE,
        "replayed": False,
        "made_of": [],
        "charged": {"epsilon": "1/10", "delta": "0"},
        "entry": 4,
    }
    values = pages.shown(Job("4", "ada", "done", body=json.dumps(answer | {"id": "4"})))
    html = render.fragment("parts/answer.html", **values)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    problem = {"code": "query", "what": HOSTILE, "where": HOSTILE, "fix": {"words": HOSTILE, "parts": {}}, "charged": HOSTILE}
    forms = [{"words": HOSTILE, "question": HOSTILE, "complete": True}]
    assert "<script" not in render.fragment("parts/problem.html", problem=problem | {"forms": forms})


def test_charts_show_margins_in_every_case() -> None:
    months = [f"2026-{month:02}-01" for month in range(1, 13)]
    answer: dict[str, Any] = {
        "columns": ["month", "n", "mean"],
        "kinds": ["date", "int", "real"],
        "rows": [[month, 10 * place, None if place else -3.5] for place, month in enumerate(months)],
        "cells": [[month, f"{10 * place} ± 4", "NULL"] for place, month in enumerate(months)],
        "margins": {"n": [4.0] * 12, "mean": [None] * 12},
        "ranks": {},
        "left_out": [],
        "warning": None,
        "notes": [],
    }
    ((first, ((_, line),)), (second, ((_, bars),))) = pages.picture(answer)["columns"]
    assert (first, second) == ("n", "mean")
    assert 'class="band"' in line
    assert 'class="dot hollow"' in bars
    one = answer | {"columns": ["n"], "kinds": ["int"], "rows": [[0]], "cells": [["0 ± 0"]], "margins": {"n": [0.0]}}
    assert "whisker" in pages.picture(one)["columns"][0][1][0][1]
    assert pages.picture(one | {"rows": [], "cells": [], "margins": {"n": []}})["columns"] == []


def test_a_spreadsheet_finds_no_formula_in_an_export() -> None:
    from dither.server.console.pages import _safe

    assert [_safe(cell) for cell in ("=1+1", "@x", "north", 5, None, -3)] == ["'=1+1", "'@x", "north", 5, None, -3]


def test_the_editor_was_built_from_the_locked_packages() -> None:
    """The licences name every package of the bundle, at the versions of the lock file; the lock names no registry."""
    folder = Path(__file__).parents[2] / "scripts" / "console"
    text = (folder / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text
    locked = {
        name.removeprefix("node_modules/"): each["version"] for name, each in json.loads(text)["packages"].items() if name
    }
    licences = render.static_files()["vendor/licences.txt"].content.decode()
    named = dict(re.findall(r"^(@?[\w./-]+) (\d+\.\d+\.\d+)$", licences, re.MULTILINE))
    assert {"@codemirror/view", "@codemirror/lang-sql", "@fontsource-variable/inter"} <= set(named)
    assert all(locked[name] == version for name, version in named.items())


# --- terms ------------------------------------------------------------------------------------------------------


def page_of(running: Running, who: str, path: str) -> str:
    cookie = running.post("/v1/login", None, {"token": running.tokens[who]}).headers["set-cookie"].partition(";")[0]
    return running.get(path, headers={"Cookie": cookie}).body.decode()


def test_asking_again_brings_the_terms_and_pages_show_them(running: Running) -> None:
    asked = running.ask("ben", BY_WARD, "0.05", max_rows=2, sample="1/2", confidence="0.99")
    assert asked.json["terms"] == {"epsilon": "0.05", "confidence": "0.99", "max_rows": 2, "sample": "1/2"}
    listed = page_of(running, "ben", "/history")
    assert "a secret sample of 1/2; most rows per person: 2" in listed
    link = re.findall(r'href="(/\?again=[^"]+)"', listed)[0].replace("&amp;", "&")
    page = page_of(running, "ben", link)
    for name, value in (("epsilon", "0.05"), ("max_rows", "2"), ("sample", "1/2")):
        assert re.search(f'name="{name}" value="{value}"', page), name
    assert '<option value="0.99" selected>' in page
    assert "a secret sample of 1/2" in page_of(running, "ben", f"/receipts/{asked.json['entry']}")
    other = page_of(running, "ada", link)  # somebody else's question
    assert ('value="0.05"' in other, "GROUP BY ward" in other.partition("data-question")[2][:60]) == (False, False)


def test_a_list_of_questions_is_shown_and_saved(running: Running) -> None:
    asked = running.ask("ada", [COUNT, BY_WARD], "0.01")
    entry = asked.json["entry"]
    text = page_of(running, "ada", f"/answers/{entry}")
    assert text.count('<section class="part"') == 2
    assert "charged ε = 0.01 in all" in text
    second = running.get(f"/answers/{entry}/csv?question=2", headers=cookie(running, "ada"))
    assert second.body.decode().splitlines()[0] == "ward,n,n_margin"
    assert second.headers["content-disposition"].endswith(f'"answer-{entry}-2.csv"')
    assert running.get(f"/answers/{entry}/csv?question=3", headers=cookie(running, "ada")).status == 404
    assert "Question 2" not in page_of(running, "ada", f"/answers/{running.ask('ada', COUNT, '0.01').json['entry']}")


def test_a_list_that_was_stored_without_its_texts_is_shown(running: Running) -> None:
    """Servers before this one kept lists without the texts that people read."""
    part = {"columns": ["n"], "kinds": ["int"], "rows": [[3]], "margins": {"n": [1.0]}, "ranks": {}, "warning": None}
    old: dict[str, Any] = {"answers": [part]}
    old |= {"replayed": False, "charged": {"epsilon": "1/2", "delta": "0"}, "entry": 7, "id": "7", "receipt": None}
    values = pages.shown(Job("7", "ada", "done", body=json.dumps(old)))
    assert ">3<" in render.fragment(pages.template_of(values), **values)


def test_a_proposal_is_shown_when_it_is_looked_up(running: Running) -> None:
    made = running.post("/v1/suggest", "ada", {"column": "people.age", "epsilon": "0.01"})
    assert made.json["kind"] == "proposal"
    values = pages.shown(Job(made.json["id"], "ada", "done", body=made.body.decode()))
    assert "Proposal for" in render.fragment(pages.template_of(values), **values)
    nothing = made.json | {"between": None, "values": [], "people": 40, "enough": None}
    values = pages.shown(Job("x", "ada", "done", body=json.dumps(nothing)))
    assert "No value is common enough" in render.fragment(pages.template_of(values), **values)
    values = pages.shown(Job("x", "ada", "done", body=json.dumps(nothing | {"values": ["<b>", "south"]})))
    assert "&lt;b&gt;" in render.fragment(pages.template_of(values), **values)


def test_a_suggestion_is_for_those_who_may_ask(running: Running, tmp_path: Path) -> None:
    asked = {"column": "people.age", "epsilon": "0.01"}
    spent = running.spent()
    assert running.post("/console/suggest/quote", "ada", asked).json["may"]
    assert running.post("/console/suggest/quote", "otto", asked).status == 403
    assert running.get("/suggest", headers=cookie(running, "otto")).status == 403
    wrong = running.post("/console/suggest/quote", "ada", asked | {"column": "people.nothing"}).json
    assert not wrong["may"]
    assert running.spent() == spent
    with serving(make(tmp_path, approve_above="0.5")) as careful:
        waits = careful.post("/console/suggest", "ada", asked | {"epsilon": "0.6"}).json
        assert (waits["state"], careful.spent()) == ("waiting", "0")
