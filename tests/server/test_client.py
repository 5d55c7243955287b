"""`dt.connect`: the methods of `dt.open` against a real server, and what it does not believe."""

from __future__ import annotations

import datetime
import ipaddress
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import dither as dt
from dither.client import remote as client
from dither.client.known import Known
from dither.client.remote import reach
from dither.client.transport import RemoteError, Reply, Transport, error_of, origin_of
from dither.errors import ApprovalError
from dither.planning.proposal import Proposal
from server.serving import BY_WARD, COUNT, PEOPLE, Running, Service, ages, make, process, serving

MEAN = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY ward"
UNION = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward UNION ALL SELECT 'all', COUNT(*) FROM people"
MEDIAN = "SELECT MEDIAN(age) AS age FROM people"
SETS = "SELECT ward, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((ward), ())"


@pytest.fixture
def remote(running: Running, tmp_path: Path) -> dt.Remote:
    return joined(running, tmp_path)


def joined(running: Running, folder: Path, who: str = "ada", **more: Any) -> dt.Remote:
    return dt.connect(f"http://127.0.0.1:{running.port}", running.tokens[who], known=folder / "known.json", **more)


# --- the same as beside the data --------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [COUNT, BY_WARD, MEAN, UNION, MEDIAN, SETS, [COUNT, MEAN]], ids=str)
def test_a_quote_is_the_curators(shared: Running, tmp_path: Path, question: Any) -> None:
    own = joined(shared, tmp_path).quote(question, epsilon="0.1", assume_rows=100).as_data()
    assert own == shared.desk.survey.quote(question, epsilon="0.1", assume_rows=100, analyst="ada").as_data() | {
        name: own[name] for name in ("free",) if name in own
    }


@pytest.mark.parametrize("question", [COUNT, BY_WARD, MEAN, UNION, MEDIAN, SETS], ids=str)
def test_an_answer_is_the_curators(shared: Running, tmp_path: Path, question: str) -> None:
    remote = joined(shared, tmp_path)
    first = remote.ask(question, epsilon="0.2")
    beside = shared.desk.survey.ask(question, epsilon="0.2", analyst="ada")
    assert first.as_data() | {"replayed": True, "charged": {"epsilon": "0", "delta": "0"}} == beside.as_data()
    assert first.margins("0.5") == beside.margins("0.5")
    assert str(remote.ask(question, epsilon="0.2")) == str(beside)


def test_a_list_is_answered_at_one_price(remote: dt.Remote) -> None:
    answers = remote.ask([COUNT, BY_WARD], epsilon="0.2")
    assert [len(each) for each in answers] == [1, 2]
    assert str(remote.budget.spent) == "ε = 0.2"


def test_questions_built_in_python_and_parameters_are_asked(remote: dt.Remote) -> None:
    built = remote.table("people").where("age >= ?", params=[18]).group_by("ward").agg(n=dt.count(), age=dt.mean("age"))
    assert remote.ask(built, epsilon="0.1").columns == ("ward", "n", "age")
    asked = remote.ask("SELECT COUNT(*) AS n FROM people WHERE age > ? AND ward = ?", epsilon="0.1", params=[18, "north"])
    assert "ward = 'north'" in asked.receipt.body["question"]
    with pytest.raises(dt.DitherError):
        remote.ask("SELECT COUNT(*) AS n FROM people WHERE age > ?", epsilon="0.1", params=[object()])


def test_a_margin_finds_the_smallest_price_here(remote: dt.Remote) -> None:
    answer = remote.ask(COUNT, margin=40)
    assert answer.margins()["n"][0] <= 40
    assert remote.ask(COUNT, margin=40).replayed


def test_free_answers_and_public_lists_come_as_they_were_sent(remote: dt.Remote) -> None:
    remote.ask(BY_WARD, epsilon="0.5")
    total = remote.ask(COUNT, free=True)
    assert total.as_data()["made_of"]
    assert total.margins()["n"][0] is not None
    assert total.to_dict(margins=True).keys() == {"n", "n_margin"}
    with pytest.raises(dt.DitherError, match="one confidence"):
        total.margins("0.5")
    listed = remote.ask("SELECT DISTINCT ward FROM people")
    assert listed.rows == (("north",), ("south",))
    assert remote.quote("SELECT DISTINCT ward FROM people").epsilon == 0


def test_suggest_budget_history_and_receipts(remote: dt.Remote, running: Running) -> None:
    proposal = remote.suggest("people.age", epsilon="0.3")
    assert (proposal.table, proposal.column) == ("people", "age")
    assert remote.ask(COUNT, epsilon="0.1").receipt.body["analyst"] == "ada"
    beside = running.desk.survey.budget
    assert (str(remote.budget), remote.budget.as_data()) == (str(beside), beside.as_data())
    rows = remote.history()
    assert [row["state"] for row in rows] == ["answered", "answered"]
    assert remote.receipt(rows[-1]["answer"]).body["question"] == COUNT
    assert not remote.closed
    assert repr(remote) == f"<Remote of people at http://127.0.0.1:{running.port}; analyst ada>"


# --- tables that only the server has ----------------------------------------------------------------------------


@pytest.fixture
def with_public(tmp_path: Path) -> Iterator[Running]:
    """A server with a public table, whose rows decide questions."""
    service = make(tmp_path)
    pq.write_table(
        pa.table({"ward": ["north", "south"], "beds": [10, 90], "day": [datetime.date(2026, 1, 1)] * 2}), tmp_path / "w.parquet"
    )
    catalog = Path(service.settings.catalog)
    more = '[tables.wards]\nsource = "w.parquet"\npublic = true\n[tables.wards.columns]\nward = {}\nbeds = {}\nday = {}\n'
    catalog.write_text(catalog.read_text(encoding="utf-8") + more, encoding="utf-8")
    with serving(service) as running:
        yield running


def test_a_question_that_public_tables_decide_is_planned_there(with_public: Running, tmp_path: Path) -> None:
    remote = joined(with_public, tmp_path)
    inner = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
    asked = f"SELECT ward, n FROM ({inner}) AS t WHERE ward IN (SELECT ward FROM wards WHERE beds > 50)"
    beside = with_public.desk.survey.quote(asked, epsilon="0.1", analyst="ada")
    quote = remote.quote(asked, epsilon="0.1")
    assert (quote.price, quote.margins()) == (beside.price, beside.margins())
    answer = remote.ask(asked, epsilon="0.1")
    assert [row[0] for row in answer.rows] == ["south"]
    assert "south" in str(answer)
    joined_up = "SELECT w.beds, COUNT(*) AS n FROM people p JOIN wards w ON p.ward = w.ward GROUP BY w.beds"
    assert {row[0] for row in remote.ask(joined_up, epsilon="0.1").rows} == {10, 90}


# --- errors -----------------------------------------------------------------------------------------------------


def test_a_mistake_is_refused_here_with_its_place(remote: dt.Remote, running: Running) -> None:
    with pytest.raises(dt.QueryError) as refused:
        remote.ask("SELECT SUM(income) FROM people", epsilon="0.1")
    assert refused.value.span == (11, 17)
    assert "CLAMP" in str(refused.value)
    assert running.spent() == "0"


def test_the_servers_errors_are_those_of_open(remote: dt.Remote, running: Running) -> None:
    with pytest.raises(dt.BudgetError, match=r"(?s)left ε = 1.*Charged: nothing"):
        remote.ask(COUNT, epsilon=5)
    assert "costs" in remote.quote(COUNT, epsilon=5).refusal
    with pytest.raises(dt.ArgumentError, match="says that you are ada"):
        remote.ask(COUNT, epsilon="0.1", analyst="ben")
    assert running.spent() == "0"


def test_every_error_travels_whole() -> None:
    for error in (
        dt.QueryError("No bounds.", text="SELECT x", span=(7, 8), fix="declare them."),
        dt.BudgetError("Nothing is left."),
        dt.EngineError("ε = 0.1"),
        dt.LedgerError("Locked.", fix="wait."),
        dt.ArgumentError("Name the price.", fix=dt.errors.Fix("write {epsilon}.", epsilon="0.1")),
    ):
        back = error_of(json.loads(error.to_json()), "SELECT x")
        assert (type(back), str(back), back.as_data()) == (type(error), str(error), error.as_data())
    assert error_of({"code": "busy", "what": "Full."}).code == "busy"
    assert error_of({"code": "new", "what": "Another."}).code == "new"
    assert "refused" in error_of(["nonsense"]).what


def test_a_question_that_waits_for_a_curator_says_so(tmp_path: Path) -> None:
    with serving(make(tmp_path, approve_above="0.1")) as running:
        remote = joined(running, tmp_path)
        with pytest.raises(ApprovalError, match="waits for a curator") as waits:
            remote.ask(COUNT, epsilon="0.2")
        running.post(f"/v1/approvals/{waits.value.request}", "cora", {"decision": "approve"})
        assert not remote.ask(COUNT, epsilon="0.2").replayed


def test_a_token_that_may_only_replay_never_spends(running: Running, service: Service, tmp_path: Path) -> None:
    origin, token = f"http://127.0.0.1:{running.port}", service.token("ada", "replay")
    reader = dt.connect(origin, token, known=tmp_path / "known.json")
    with pytest.raises(dt.BudgetError):
        reader.ask(COUNT, epsilon="0.1")
    joined(running, tmp_path).ask(COUNT, epsilon="0.1")
    assert reader.ask(COUNT, epsilon="0.1").replayed
    assert running.spent() == "1/10"


def test_a_wrong_token_and_a_wrong_address(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DITHER_TOKEN", raising=False)
    origin = f"http://127.0.0.1:{running.port}"
    wrong = "dth_" + "A" * 43
    with pytest.raises(dt.DitherError, match="Nobody is logged in") as refused:
        dt.connect(origin, wrong, known=tmp_path / "k.json")
    assert refused.value.code == "access"
    assert 'token="dth_…"' in str(refused.value)
    assert "dither login http://127.0.0.1" in str(refused.value)
    assert wrong not in str(refused.value) + repr(Transport(origin, wrong))
    for url in (
        "http://survey.example",
        "ftp://x",
        "https://u:p@survey.example",
        "https://survey.example/path",
        "",
        "https://x:99999",
    ):
        with pytest.raises(dt.ArgumentError):
            dt.connect(url, wrong)
    with pytest.raises(dt.ArgumentError, match="token"):
        dt.connect(origin)
    with pytest.raises(RemoteError, match="nothing listens there") as away:
        dt.connect("http://127.0.0.1:9", wrong, known=tmp_path / "k.json")
    assert away.value.charged == "nothing"
    assert origin_of("http://[::1]:80") == "http://[::1]:80"


def test_the_token_of_one_server_is_not_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DITHER_TOKEN", "dth_secret")
    assert reach("https://one.example", None)[0].token == "dth_secret"
    monkeypatch.setenv("DITHER_SERVER", "https://one.example/")
    assert reach("https://one.example", None)[0].token == "dth_secret"
    with pytest.raises(dt.ArgumentError, match="needs your token"):
        reach("https://another.example", None)


def test_a_proposal_keeps_what_else_is_declared(remote: dt.Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pastes it into a catalog must not lose how its cells are read."""
    told = Proposal("people", "age", 1, 99, None, None, 1.0, "nothing", settings=('decimal = ","',)).as_data()
    monkeypatch.setattr(remote, "_waited", lambda reply: told)
    assert remote.suggest("people.age", epsilon="0.3").toml == told["toml"]
    assert 'decimal = ","' in told["toml"]


def test_a_cut_connection_is_tried_again_and_paid_once(remote: dt.Remote, running: Running) -> None:
    remote.transport._connection().sock.shutdown(socket.SHUT_RDWR)
    assert len(remote.ask(COUNT, epsilon="0.1")) == 1
    assert running.spent() == "1/10"


# --- what it does not believe -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Liar(Transport):
    """A server that changes what it returns."""

    change: Callable[[Any], None] = lambda data: None

    def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        reply = super().send(method, path, body, key)
        self.change(reply.data)
        return reply


def lying(remote: dt.Remote, change: Callable[[Any], None]) -> dt.Remote:
    return replace(remote, transport=Liar(remote.transport.origin, remote.transport.token, change=change))


def test_a_changed_receipt_is_refused(remote: dt.Remote) -> None:
    def lower(data: Any) -> None:
        if "receipt" in data:  # the client asks whether the key was rotated, too
            data["receipt"]["body"]["loss"]["epsilon"] = "1/1000"

    with pytest.raises(dt.LedgerError, match="not signed by the curator's key"):
        lying(remote, lower).ask(COUNT, epsilon="0.1")
    assert lying(remote, lambda data: None).ask(COUNT, epsilon="0.1").replayed  # the same path, unchanged


def test_a_signed_receipt_of_another_question_is_refused(remote: dt.Remote) -> None:
    other = json.loads(remote.ask(BY_WARD, epsilon="0.3").receipt.to_json())

    def swap(data: Any) -> None:
        data["receipt"] = other

    with pytest.raises(dt.LedgerError, match=r"another (unit|mechanisms|loss)"):
        lying(remote, swap).ask(COUNT, epsilon="0.1")


def more(data: Any) -> None:
    """Adds a million to the numbers, everywhere in the answer."""
    stored = json.loads(data["payload"])
    stored["released"][0]["cells"][0]["values"][0] += 10**6
    data["payload"] = json.dumps(stored)
    if data.get("committed"):
        data["committed"] = json.dumps(json.loads(data["committed"]) | {"payload": data["payload"]})


def test_changed_numbers_are_refused(remote: dt.Remote) -> None:
    with pytest.raises(dt.LedgerError, match="another entry"):
        lying(remote, more).ask(COUNT, epsilon="0.1")


def test_numbers_without_their_entry_are_refused(remote: dt.Remote) -> None:
    with pytest.raises(dt.LedgerError, match="another entry"):
        lying(remote, lambda data: data.pop("committed")).ask(COUNT, epsilon="0.1")


def test_that_this_check_refuses_them(remote: dt.Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    true = remote.ask(COUNT, epsilon="0.1").rows[0][0]
    monkeypatch.setattr(client, "committed_numbers", lambda data, receipt, question: data["payload"])
    assert lying(remote, more).ask(COUNT, epsilon="0.1").rows[0][0] == true + 10**6


def test_the_answer_of_another_question_is_refused(remote: dt.Remote) -> None:
    """One of the same price and noise, so that its receipt says what the plan says."""
    kept: dict[str, Any] = {}
    lying(remote, kept.update).ask(ages(5), epsilon="0.1")

    def swap(data: Any) -> None:
        data |= {name: kept[name] for name in ("receipt", "payload", "committed")}

    with pytest.raises(dt.LedgerError, match="another question"):
        lying(remote, swap).ask(ages(6), epsilon="0.1")


def test_numbers_of_another_shape_are_refused(remote: dt.Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = '{"format":1,"released":[]}'
    monkeypatch.setattr(client, "committed_numbers", lambda data, receipt, question: payload)
    with pytest.raises(dt.LedgerError, match="do not fit the plan"):
        remote.ask(MEAN, epsilon="0.1")


def test_another_price_is_refused_in_a_quote(remote: dt.Remote) -> None:
    def cheaper(data: Any) -> None:
        data["price"]["epsilon"] = "1/20"

    with pytest.raises(dt.LedgerError, match="another price"):
        lying(remote, cheaper).quote(COUNT, epsilon="0.1")


def test_another_catalog_than_its_hash_is_refused(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Transport.send

    def send(self: Transport, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        reply = plain(self, method, path, body, key)
        if path == "/v1/catalog":
            reply.data["declared"] = reply.data["declared"].replace("100", "900")
        return reply

    monkeypatch.setattr(Transport, "send", send)
    with pytest.raises(dt.LedgerError, match="not the one that it names"):
        joined(running, tmp_path)


def test_an_older_copy_of_the_ledger_is_noticed(tmp_path: Path) -> None:
    """Every analyst is a witness. The twin: the same server without the old copy is recognised."""
    service, copy = make(tmp_path), tmp_path / "old.ledger"
    with serving(service) as running:
        joined(running, tmp_path).ask(COUNT, epsilon="0.1")
    shutil.copy(service.ledger, copy)
    with serving(service) as running:
        remote = reached(running, tmp_path)
        remote.ask(BY_WARD, epsilon="0.1")
        seen = remote.seen
    with serving(service) as running:
        assert reached(running, tmp_path).seen.number >= seen.number
    shutil.copy(copy, service.ledger)
    with serving(service) as running, pytest.raises(dt.LedgerError, match=f"lacks entry {seen.number}"):
        reached(running, tmp_path)


def reached(running: Running, folder: Path) -> dt.Remote:
    """Connects to the same server at another port: what is known of it moves along."""
    known = Known(folder / "known.json")
    (old,) = json.loads(known.path.read_text(encoding="utf-8"))["servers"]
    seen = known.find(old)
    assert seen is not None
    known.path.unlink()
    known.keep(f"http://127.0.0.1:{running.port}", seen)
    return joined(running, folder)


def test_another_key_or_ledger_is_refused(running: Running, tmp_path: Path) -> None:
    remote = joined(running, tmp_path)
    origin, right = remote.transport.origin, remote.seen
    path = tmp_path / "other.json"
    for changed, words in (
        (replace(right, public_key="00" * 32), "another key"),
        (replace(right, ledger="ab"), "another ledger"),
    ):
        path.unlink(missing_ok=True)
        Known(path).keep(origin, changed)
        with pytest.raises(dt.LedgerError, match=words):
            dt.connect(origin, running.tokens["ada"], known=path)
    with pytest.raises(dt.LedgerError, match="the one you named"):
        joined(running, tmp_path, public_key="00" * 32)
    path.unlink()
    Known(path).keep(origin, replace(right, public_key="00" * 32))
    dt.connect(origin, running.tokens["ada"], known=path, public_key=right.public_key)  # told by the curator


def test_a_damaged_file_of_what_is_known_is_not_replaced(running: Running, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text("{", encoding="utf-8")
    with pytest.raises(dt.LedgerError, match="cannot be read"):
        joined(running, tmp_path)


def test_an_older_head_never_replaces_a_newer_one(remote: dt.Remote, tmp_path: Path) -> None:
    remote.ask(COUNT, epsilon="0.1")
    newest = remote.seen
    remote.known.keep(remote.transport.origin, replace(newest, number=1, hash="00"))
    assert remote.known.find(remote.transport.origin) == newest


# --- TLS --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tls_is_verified(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    service = make(tmp_path, tls=(str(certificate), str(key)))
    with process(service) as running:
        origin = f"https://127.0.0.1:{running.port}"
        with pytest.raises(RemoteError, match=r'certificate is not trusted[\s\S]*ca="ca.pem"'):
            dt.connect(origin, service.tokens["ada"], known=tmp_path / "known.json")
        with dt.connect(origin, service.tokens["ada"], known=tmp_path / "known.json", ca=certificate) as remote:
            assert len(remote.ask(COUNT, epsilon="0.1")) == 1


def certified(folder: Path) -> tuple[Path, Path]:
    """Makes a certificate for 127.0.0.1 that nobody trusts."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, key


def test_values_of_parameters_travel_in_their_kind() -> None:
    from dither.client.encoding import params_of
    from dither.server.http.forms import _params

    given = {"a": datetime.date(2026, 1, 31), "b": datetime.datetime(2026, 1, 31, 5), "c": Decimal("1.50"), "d": None, "e": 1.5}
    assert _params(json.loads(json.dumps(params_of(given)))) == given
    assert set(PEOPLE) >= {"ada", "cora"}
