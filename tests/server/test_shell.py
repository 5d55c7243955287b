"""`--server`: the commands of the shell against a real server, beside the same commands on the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dither.cli import app
from server.serving import BY_WARD, COUNT, Running, Service, make, serving

TOOL = CliRunner()


@pytest.fixture
def there(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server that Ada is logged in to."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("DITHER_SERVER", "DITHER_LEDGER", "DITHER_KEY", "DITHER_ANALYST", "DITHER_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DITHER_TOKEN", running.tokens["ada"])
    return running


def run(running: Running, *words: str) -> Result:
    return TOOL.invoke(app, [*words, "--server", f"http://127.0.0.1:{running.port}"])


def said(done: Result) -> str:
    """Returns what a command wrote to stderr, without the log of the server, which runs in this process."""
    return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith('{"time"'))


def test_ask_prints_what_it_prints_beside_the_data(there: Running, service: Service) -> None:
    asked = ("ask", BY_WARD, "--epsilon", "0.1")
    first = run(there, *asked)
    assert first.exit_code == 0, first.output
    again, here = run(there, *asked), TOOL.invoke(app, [*asked, "--catalog", service.settings.catalog, "--analyst", "ada"])
    assert here.exit_code == 0, here.output
    assert again.stdout == here.stdout == first.stdout
    assert "charged ε = 0.1; left ε = 0.9" in first.stderr
    assert said(again) == said(here)
    assert "given again: charged nothing" in again.stderr
    assert there.spent() == "1/10"


def test_formats_files_and_lists(there: Running, tmp_path: Path) -> None:
    out, receipt, questions = tmp_path / "a.csv", tmp_path / "r.json", tmp_path / "q.sql"
    done = run(there, "ask", BY_WARD, "-e", "0.1", "--out", str(out), "--receipt", str(receipt))
    assert done.exit_code == 0, done.output
    assert out.read_text().splitlines()[0] == "ward,n,n_margin"
    assert json.loads(receipt.read_text())["body"]["analyst"] == "ada"
    again = run(there, "ask", BY_WARD, "-e", "0.1", "--out", str(out))
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    questions.write_text(f"{COUNT};\n{BY_WARD};\n")
    several = run(there, "ask", "--file", str(questions), "-e", "0.2", "--format", "json")
    assert [len(each["rows"]) for each in json.loads(several.stdout)["answers"]] == [1, 2]
    for name in ("known.json", "tokens.json"):
        mine = run(there, "ask", COUNT, "-e", "0.1", "--force", "--out", str(tmp_path / "home" / "dither" / name))
        assert (mine.exit_code, "nothing may take its place" in mine.stderr) == (2, True)
    assert there.spent() == "3/10"


def test_quote_and_suggest(there: Running, service: Service) -> None:
    asked = ("quote", BY_WARD, "--margin", "20")
    here = TOOL.invoke(app, [*asked, "--catalog", service.settings.catalog, "--analyst", "ada"])
    assert run(there, *asked).stdout == here.stdout
    assert there.spent() == "0"
    found = run(there, "suggest", "people.income", "--epsilon", "0.1")
    assert found.exit_code == 0, found.output
    assert "income = { between = [" in found.stdout
    assert "charged ε = 0.1" in found.stderr
    assert there.spent() == "1/10"


def test_budget_and_history(there: Running, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for above in range(3):
        there.ask("ada", f"SELECT COUNT(*) AS n FROM people WHERE age > {above}", "0.1")
    there.ask("ben", COUNT, "0.1")
    for form in ("table", "json", "csv"):
        here = TOOL.invoke(app, ["budget", "-f", form, "--catalog", service.settings.catalog])
        assert run(there, "budget", "-f", form).stdout == here.stdout
    own = run(there, "history", "-f", "json").stdout.splitlines()
    assert [json.loads(each)["analyst"] for each in own] == ["ada"] * 3
    assert [json.loads(each)["question"][-1] for each in own] == ["0", "1", "2"]
    assert run(there, "history", "-f", "json", "--limit", "2").stdout.splitlines() == own[1:]
    assert run(there, "history", "--everyone").exit_code == 1  # she is no auditor
    monkeypatch.setenv("DITHER_TOKEN", there.tokens["cora"])
    everyone = run(there, "history", "--everyone", "-f", "csv")
    here = TOOL.invoke(app, ["history", "-f", "csv", "--catalog", service.settings.catalog])
    assert everyone.stdout == here.stdout
    entries = run(there, "history", "--entries")
    assert (entries.exit_code, "does not go with --server" in entries.stderr) == (2, True)


def test_a_long_history_is_read_page_by_page(there: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from dither.cli import remote

    for above in range(5):
        there.ask("ada", f"SELECT COUNT(*) AS n FROM people WHERE age > {above}", "0.01")
    whole = run(there, "history", "-f", "json").stdout
    monkeypatch.setattr(remote, "_PAGE", 2)
    assert run(there, "history", "-f", "json").stdout == whole
    assert run(there, "history", "-f", "json", "--limit", "3").stdout.splitlines() == whole.splitlines()[2:]


def test_verify_compares_what_was_kept(there: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt, other = tmp_path / "r.json", tmp_path / "other.json"
    assert run(there, "ask", COUNT, "-e", "0.1", "--receipt", str(receipt)).exit_code == 0
    alone = run(there, "verify")
    assert (alone.exit_code, "audit" in alone.stderr) == (1, True)
    kept = run(there, "verify", "--receipt", str(receipt))
    assert kept.exit_code == 0, kept.output
    assert "the ledger has its entries" in kept.stdout
    changed = json.loads(receipt.read_text())
    changed["body"]["loss"]["epsilon"] = "1/100"
    other.write_text(json.dumps(changed))
    forged = run(there, "verify", "--receipt", str(other))
    assert (forged.exit_code, "is not signed" in forged.stdout) == (1, True)
    monkeypatch.setenv("DITHER_TOKEN", there.tokens["otto"])
    whole = run(there, "verify", "--receipt", str(receipt))
    assert whole.exit_code == 0, whole.output
    assert "nothing wrong" in whole.stdout
    assert "answered   1, and 0 shown again" in whole.stdout
    late = run(there, "verify", "--head", f"999:{'0' * 64}")
    assert (late.exit_code, "is missing" in late.stdout) == (1, True)
    wrong = run(there, "verify", "--head", f"2:{'0' * 64}")
    assert (wrong.exit_code, "is not the one" in wrong.stdout) == (1, True)
    key = run(there, "verify", "--public-key", "0" * 64)
    assert (key.exit_code, "another key" in key.stderr) == (4, True)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("ask", "SELECT COUNT(*) FROM peopl", "-e", "0.1"), 1, "did you mean people?"),
        (("ask", COUNT, "-e", "5"), 3, "The budget does not allow"),
        (("quote", COUNT, "-e", "5"), 3, ""),
        (("ask", COUNT), 2, "--epsilon"),
        (("ask", COUNT, "-e", "0.1", "--analyst", "ben"), 2, "your login says who you are"),
        (("ask", COUNT, "-e", "0.1", "--ledger", "x"), 2, "--ledger does not go with --server"),
        (("verify", "--witness", "x"), 2, "--witness does not go with --server"),
    ],
)
def test_errors_are_in_words_and_nothing_is_charged(there: Running, words: tuple[str, ...], code: int, says: str) -> None:
    done = run(there, *words)
    assert done.exit_code == code, done.output
    assert says in done.stderr
    assert "Traceback" not in done.output
    assert "dt.connect" not in done.stderr
    assert there.spent() == "0"


def test_a_server_that_is_not_there_and_a_token_that_is_not_right(there: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = TOOL.invoke(app, ["budget", "--server", "http://127.0.0.1:9"])
    assert (gone.exit_code, "cannot be reached" in gone.stderr) == (4, True)
    clear = TOOL.invoke(app, ["budget", "--server", "http://survey.example"])
    assert (clear.exit_code, "in the clear" in clear.stderr) == (2, True)
    monkeypatch.setenv("DITHER_TOKEN", "dth_wrong")
    wrong = run(there, "budget")
    assert (wrong.exit_code, "dither login http://127.0.0.1" in wrong.stderr) == (1, True)
    monkeypatch.delenv("DITHER_TOKEN")
    nobody = run(there, "budget")
    assert (nobody.exit_code, "dither login http://127.0.0.1" in nobody.stderr) == (2, True)
    assert "dt.connect" not in wrong.stderr + nobody.stderr


def test_the_environment_names_the_server_unless_files_are_named(
    there: Running, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DITHER_SERVER", f"http://127.0.0.1:{there.port}")
    there.ask("ada", COUNT, "0.25")
    assert "0.25 of 1" in TOOL.invoke(app, ["budget"]).stdout
    other = service.folder / "other"
    other.mkdir()
    apart = make(other, epsilon="7")
    assert "of 7" in TOOL.invoke(app, ["budget", "--catalog", apart.settings.catalog]).stdout
    named = TOOL.invoke(app, ["ask", COUNT, "-e", "0.1", "--analyst", "ben"])
    assert (named.exit_code, "DITHER_SERVER" in named.stderr) == (2, True)
    monkeypatch.setenv("DITHER_LEDGER", "nowhere.ledger")
    assert "0.25 of 1" in TOOL.invoke(app, ["budget"]).stdout


def test_a_question_that_waits_for_a_curator_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    with serving(make(tmp_path, approve_above="0.1")) as careful:
        monkeypatch.setenv("DITHER_TOKEN", careful.tokens["ada"])
        waits = run(careful, "ask", COUNT, "-e", "0.2")
        assert (waits.exit_code, "waits for a curator" in waits.stderr) == (3, True)
        (request,) = careful.get("/v1/approvals", "cora").json["approvals"]
        careful.post(f"/v1/approvals/{request['id']}", "cora", {"decision": "approve"})
        assert run(careful, "ask", COUNT, "-e", "0.2").exit_code == 0


def test_quotas_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    with serving(make(tmp_path, budget='per_analyst = 0.5\nanalysts = ["ada", "ben"]')) as fair:
        monkeypatch.setenv("DITHER_TOKEN", fair.tokens["ada"])
        asked = run(fair, "ask", COUNT, "-e", "0.2")
        assert asked.exit_code == 0, asked.output
        assert "ada's quota" in asked.stderr
        assert "ada's quota" in run(fair, "budget").stdout
