"""Until its tick, a paid question tells nobody that its rows were read: by no answer, entry, error or place in the line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.catalog.file import parse
from dither.errors import ArgumentError, CatalogError
from dither.server import effect
from dither.server.clock import Delay, wait_for_tick
from dither.server.effect import rows_of
from dither.server.settings import Settings, check, read_settings
from journey.hospital import run
from server.serving import BY_WARD, COUNT, Running, ages, make, serving

QUICK = {"tick": "10 ms", "epsilon": "1", "effect": "0.1 ms"}


class Gate:
    """Makes the clock wait for a test instead of a tick."""

    def __init__(self, running: Running) -> None:
        self.reached, self.go, self.delays = threading.Event(), threading.Event(), list[Delay]()
        clock = running.desk.clock
        assert clock is not None
        clock.wait = self.wait

    def wait(self, delay: Delay) -> None:
        self.delays.append(delay)
        self.reached.set()
        self.go.wait(30)


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[Running]:
    with serving(make(tmp_path, clock=QUICK)) as running:
        yield running


def seen(running: Running) -> dict[str, Any]:
    """Everything that an analyst or an auditor can look at."""
    budget, key = running.get("/v1/budget", "otto").json, running.get("/v1/key", "ada").json
    history = running.get("/v1/history?everyone=1", "otto").json
    return {"entries": budget["entries"], "head": key["head"], "history": history, "clock": budget.get("clock")}


def test_nothing_can_be_seen_before_the_tick(clocked: Running) -> None:
    stored = clocked.ask("ada", BY_WARD, "0.01").json
    gate = Gate(clocked)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(clocked.ask, "ada", COUNT, "0.02")
        assert gate.reached.wait(30)
        before = seen(clocked)
        late = clocked.post("/v1/ask", "ada", {"question": ages(1), "epsilon": "0.01"}, {"Prefer": "respond-async"})
        assert (late.status, late.json["state"]) == (202, "answering")
        assert clocked.ask("ada", BY_WARD, "0.01").json["id"] == stored["id"]  # a stored answer waits for nobody
        assert "clock" in clocked.post("/v1/quote", "ada", {"question": COUNT, "epsilon": "0.02"}).json
        assert clocked.get(late.headers["location"], "ada").status == 202
        assert not first.done()
        assert seen(clocked)["entries"] == before["entries"]
        gate.go.set()
        assert first.result().status == 200
    assert seen(clocked)["entries"] > before["entries"]


def test_that_check_notices_a_delay_after_the_commit(clocked: Running) -> None:
    gate, desk = Gate(clocked), clocked.desk
    assert desk.clock is not None
    desk.survey.session.clock = nullcontext  # as if the server waited only before it sends
    assert clocked.ask("ada", BY_WARD, "0.02").status == 200  # which puts the catalog in force
    before = seen(clocked)["entries"]
    assert clocked.ask("ada", COUNT, "0.02").status == 200
    assert not gate.reached.is_set()
    assert seen(clocked)["entries"] == before + 2


def test_a_failure_after_rows_were_read_waits_too(clocked: Running) -> None:
    gate, survey = Gate(clocked), clocked.desk.survey

    def fail(engine: Any, work: Any) -> Any:
        raise MemoryError

    survey.steps = replace(survey.steps, run=fail)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(clocked.ask, "ada", COUNT, "0.02")
        assert gate.reached.wait(30)
        before = seen(clocked)
        assert not asked.done()
        assert not survey.closed
        gate.go.set()
        assert (asked.result().status, asked.result().json["code"]) == (500, "engine")
    assert survey.closed
    assert seen(clocked)["entries"] > before["entries"]


def test_what_is_refused_before_rows_are_read_does_not_wait(clocked: Running) -> None:
    gate = Gate(clocked)
    assert clocked.ask("ada", "SELECT SUM(income) FROM people", "0.1").status == 422
    assert clocked.ask("ada", COUNT, "5").status == 402
    assert clocked.ask("ada", COUNT, "0.1", token=replay_token(clocked)).status == 402
    assert not gate.reached.is_set()
    assert seen(clocked)["clock"]["spent"] == {"epsilon": "0", "delta": "0"}


def replay_token(running: Running) -> str:
    return running.desk.accounts.make_token("ada", ("replay",))[1]


def test_a_closed_connection_changes_nothing(clocked: Running) -> None:
    gate = Gate(clocked)
    asked = clocked.post("/v1/ask", "ada", {"question": COUNT, "epsilon": "0.02"}, {"Prefer": "respond-async"})
    assert gate.reached.wait(30)
    before = seen(clocked)["entries"]
    gate.go.set()
    while clocked.get(asked.headers["location"], "ada").status == 202:
        pass
    assert seen(clocked)["entries"] == before + 1
    assert clocked.ask("ada", COUNT, "0.02").json["replayed"]


def test_the_clock_has_an_account_of_its_own(tmp_path: Path) -> None:
    with serving(make(tmp_path, clock=QUICK | {"total": "3"})) as running:
        assert running.ask("ada", COUNT, "0.01").status == 200
        assert running.ask("ada", COUNT, "0.01").status == 200  # stored: its time tells nothing
        quoted = running.post("/v1/quote", "ada", {"question": [BY_WARD, ages(1)], "epsilon": "0.01"}).json
        assert quoted["clock"]["epsilon"] == "2"
        assert running.ask("ada", [BY_WARD, ages(1)], "0.01").status == 200
        clock = running.get("/v1/budget", "ada").json["clock"]
        assert (clock["spent"], clock["total"]) == ({"epsilon": "3", "delta": "2e-6"}, "3")
        refused = running.ask("ada", ages(2), "0.01")
        assert (refused.status, refused.json["charged"]) == (402, "nothing")
        assert running.ask("ada", COUNT, "0.01").status == 200


def test_the_account_outlives_the_server(tmp_path: Path) -> None:
    service = make(tmp_path, clock=QUICK)
    for number in (1, 2):
        with serving(service) as running:
            assert running.ask("ada", ages(number), "0.01").status == 200
            assert running.get("/v1/budget", "ada").json["clock"]["spent"]["epsilon"] == str(number)


def test_a_list_waits_for_longer(clocked: Running) -> None:
    gate = Gate(clocked)
    gate.go.set()
    clocked.ask("ada", [COUNT, BY_WARD, ages(3)], "0.03")
    clocked.ask("ada", f"{ages(4)} AND age > 1 {' ' * 1000}", "0.03")
    assert [delay.epsilon for delay in gate.delays] == [3, 2]


CUBE = "SELECT ward, COUNT(*) AS n FROM people GROUP BY CUBE (ward)"  # counts as two


def test_one_turn_counts_as_a_hundred_questions_at_most(clocked: Running) -> None:
    """Whoever asks for more would hold the one turn for longer, and everybody else would wait."""
    gate = Gate(clocked)
    gate.go.set()
    before = seen(clocked)
    for question in ([CUBE] * 51, f"{CUBE} {' ' * 50_500}"):
        refused = clocked.ask("ada", question, "0.01")
        assert refused.status == 422
        assert (refused.json["code"], refused.json["charged"]) == ("argument", "nothing")
        assert "counts as 10" in str(refused.json)
    assert seen(clocked) == before
    assert not gate.delays
    assert clocked.ask("ada", [CUBE, COUNT], "0.01").status == 200
    assert [delay.epsilon for delay in gate.delays] == [3]


def test_one_question_at_a_time_reads_rows(clocked: Running) -> None:
    inside, most, lock = 0, 0, threading.Lock()
    clock = clocked.desk.clock
    assert clock is not None

    def enter() -> None:
        nonlocal inside, most
        with clock.hold():
            with lock:
                inside, most = inside + 1, max(most, inside + 1)
            threading.Event().wait(0.01)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_it_leaves_at_a_tick_after_its_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    now, delay = 0, Delay(2500, 50, Fraction(1, 10), Fraction(1, 10**6))

    def sleep(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 10**9) - 1000  # wakes a little early, as clocks do
        now += 2000

    monkeypatch.setattr("dither.server.clock.time.monotonic_ns", lambda: now)
    monkeypatch.setattr("dither.server.clock.time.sleep", sleep)
    for _ in range(20):
        begun = now = now + 123_456_789
        wait_for_tick(delay)
        assert 0 <= now % 250_000_000 <= 10_000
        assert begun <= now <= begun + delay.longest * 10**9 + 10_000


# --- what one person adds -----------------------------------------------------------------------------------------


def test_the_rows_of_a_person_are_bounded_by_what_is_declared() -> None:
    text = """
    [budget]
    epsilon = 1
    [tables.people]
    source = "p.csv"
    unit = "household"
    most_rows = 6
    key = "id"
    [tables.visits]
    source = "v.csv"
    unit = { column = "person", references = "people.id" }
    most_rows = 50
    [tables.rooms]
    source = "r.csv"
    unit = "id"
    max_rows = 1
    [tables.beds]
    source = "b.csv"
    unit = "id"
    key = "id"
    [tables.events]
    source = "e.csv"
    unit = "row"
    """
    catalog = parse(text)
    found = {name: rows_of(catalog, table) for name, table in catalog.tables.items()}
    assert found == {"people": 6, "visits": 300, "rooms": None, "beds": 1, "events": 1}


def test_a_row_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect, "_ROWS", 5000)
    monkeypatch.setattr(effect, "_RUNS", 1)
    assert effect.time_of_row(0) > 0


def test_serve_check_says_what_the_clock_hides_and_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Path(make(tmp_path).settings.catalog)
    assert "clock     off" in run("serve", str(catalog), "--check").stdout
    monkeypatch.setattr(effect, "time_of_row", lambda longest: 1000.0)
    catalog.write_text(catalog.read_text() + "\n[service]\nclock = {}\n")
    said = run("serve", str(catalog), "--check").stdout
    assert "ε = 0.1 and δ = 1e-6 for each paid question, if one person adds at most 5 ms" in said
    assert "costs 0.67 s on average, 1.34 s at most" in said
    assert "people: nothing bounds the rows of one person" in said
    for most, covered in ((1000, True), (2000, False)):
        catalog.write_text(catalog.read_text().replace("max_rows = 1\n", f"max_rows = 1\nmost_rows = {most}\n"))
        said = run("serve", str(catalog), "--check").stdout
        assert f"people: {most:,} rows of one person at most" in said
        assert ("more than clock.effect covers" not in said) is covered
        catalog.write_text(catalog.read_text().replace(f"most_rows = {most}\n", ""))


# --- settings -----------------------------------------------------------------------------------------------------


def test_it_is_on_wherever_other_machines_ask() -> None:
    assert Settings("c").delay is None
    assert Settings("c", tls=("a", "b")).delay is None  # loopback all the same
    for exposed in (Settings("c", host="0.0.0.0"), Settings("c", behind_proxy=("127.0.0.1",))):
        assert exposed.delay == Delay(2500, 50, Fraction(1, 10), Fraction(1, 10**6))
        assert replace(exposed, clock="off").delay is None
        assert Settings.parse(exposed.text()) == exposed
    own = Settings("c", clock={"epsilon": "1"})
    assert own.delay == Delay(2500, 50, Fraction(1), Fraction(1, 10**6))
    assert Settings.parse(own.text()) == own


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("clock = 1", "write clock = {"),
        ('clock = { tick = "1" }', 'write tick = "0.25 s"'),
        ('clock = { effect = "0.01 ms" }', "a whole number of 0.1 ms"),
        ("clock = { epsilon = 0 }", 'write epsilon = "0.1"'),
        ("clock = { epsilom = 1 }", "epsilon"),
        ("clock = { delta = 2 }", 'write delta = "1e-6"'),
        ('clock = { epsilon = "1e-9" }', "larger epsilon"),
    ],
)
def test_a_setting_that_is_wrong_is_refused_with_its_line(tmp_path: Path, written: str, fix: str) -> None:
    service = make(tmp_path)
    catalog = Path(service.settings.catalog)
    catalog.write_text(catalog.read_text() + f"\n[service]\n{written}\n")
    with pytest.raises(CatalogError, match=r"service\.clock is not right") as refused:
        read_settings(catalog)
    assert fix in str(refused.value)


def test_a_delay_that_stopping_would_cut_is_refused() -> None:
    with pytest.raises(ArgumentError, match="would lose them"):
        check(Settings("c", clock={"epsilon": "0.01"}))
    check(Settings("c", clock={"epsilon": "0.01"}, stop=60.0))


def test_a_suggestion_counts_as_the_questions_it_asks_and_as_their_length(tmp_path: Path) -> None:
    with serving(make(tmp_path, clock=QUICK | {"total": "7"})) as running:
        spent = lambda: running.get("/v1/budget", "ada").json["clock"]["spent"]["epsilon"]  # noqa: E731
        body = {"column": "people.income", "epsilon": "0.01"}
        assert running.post("/v1/suggest", "ada", body).status == 200
        assert spent() == "2"  # values, and rows of a person
        assert running.post("/v1/suggest", "ada", body | {"by": "age + 0" + " " * 1000}).status == 200
        assert spent() == "6"
        assert running.post("/v1/suggest", "ada", body | {"by": "age + 1"}).status == 402
        assert running.post("/v1/suggest", "ada", body | {"by": "age" + " + 0" * 20_000}).json["code"] == "argument"
