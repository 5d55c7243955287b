"""A password of the database comes from the environment, and is found nowhere afterwards. Neither is the secret of a choice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

import dither as dt
from dither.cli import app
from dither.engines.registry import read_schema
from dither.engines.sql.choice import key_of
from dither.query.work import Cell, Sums, Work
from engines.crowd import OWN, own_groups
from engines.places import PostgresPlace
from engines.tables import SECRET
from engines.works import plain
from journey.paid import CATALOG, COUNT, people
from ledger.postgres_server import Server

WORD = "correct-horse-42"
ROLE = "guarded"
PEOPLE = {"person": "int", "household": "int", "age": "int", "region": "text", "town": "text"}


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[PostgresPlace]:
    """People, and a role that needs its password."""
    with closing(PostgresPlace(postgres)) as place, postgres.guarding(ROLE):
        place.make("people", PEOPLE)
        place.fill("people", people().to_dict("records"), PEOPLE)
        place.run(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{WORD}'; GRANT USAGE ON SCHEMA {place.schema} TO {ROLE}")
        place.run(f"GRANT SELECT ON people TO {ROLE}")
        yield place
        place.run(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


@pytest.fixture
def folder(database: PostgresPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path, database.address("people", ROLE))
    return tmp_path


def write(folder: Path, source: str) -> None:
    text = CATALOG.format(epsilon=10, more="", unit="person", high=120).replace('"people.parquet"', f'"{source}"')
    (folder / "survey.toml").write_text(text, encoding="utf-8")


def left_behind(folder: Path, *shown: Any) -> list[str]:
    """Returns where the password stands: in files of the folder, or in what was shown."""
    files = [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    return [*map(str, files), *(text for text in map(repr, shown) if WORD in text)]


def used(folder: Path) -> list[str]:
    """Opens and asks as analysts do, and returns where the password is afterwards."""
    with dt.open(folder / "survey.toml", folder / "survey.ledger", make=True) as survey:
        answer = survey.ask(COUNT, epsilon="0.1")
        (folder / "receipt.json").write_text(answer.receipt.to_json(), encoding="utf-8")
        shown = [answer, answer.receipt, survey, survey.catalog, survey.engine, vars(survey), survey.ledger.history()]
        shown += [list(survey.ledger.history()), survey.quote(COUNT, epsilon="0.1"), str(answer)]
    shown += [run(folder, *words) for words in (["history"], ["budget"], ["check", "--data"], ["verify"])]
    return left_behind(folder, *shown)


def run(folder: Path, *words: str) -> tuple[str, str]:
    line = [*words, "--catalog", str(folder / "survey.toml"), "--ledger", str(folder / "survey.ledger")]
    done = CliRunner().invoke(app, line[:1] + line[1:], prog_name="dither")
    return done.output, repr(done.exception)


def test_a_password_of_the_environment_is_used_and_kept_nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", WORD)
    assert used(folder) == []


def test_a_password_of_a_file_is_used_and_kept_nowhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path_factory.mktemp("home") / "pgpass"
    passwords.write_text(f"*:*:*:{ROLE}:{WORD}\n", encoding="utf-8")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert used(folder) == []


def test_a_password_of_a_service_is_used_and_kept_nowhere(
    folder: Path, database: PostgresPlace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path_factory.mktemp("home") / "services"
    host = re.search(r"host=([^&]*)", database.server.uri)
    assert host is not None
    services.write_text(f"[hospital]\nhost={host[1]}\nuser={ROLE}\ndbname=postgres\npassword={WORD}\n", encoding="utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    write(folder, f"postgresql://?service=hospital&table={database.schema}.people")
    assert used(folder) == []


def test_that_a_password_somewhere_is_found(folder: Path) -> None:
    (folder / "log").write_text(f"password={WORD}", encoding="utf-8")
    assert left_behind(folder, f"password={WORD}") == [str(folder / "log"), f"'password={WORD}'"]


@pytest.mark.parametrize("word", ["", "another"])
def test_a_missing_or_wrong_password_is_told_without_any(folder: Path, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", word)
    with pytest.raises(dt.CatalogError) as told:
        dt.open(folder / "survey.toml", folder / "survey.ledger", make=True)
    assert "another" not in str(told.value)
    assert "PGPASSWORD" in str(told.value)
    assert told.value.__context__ is None


ADDRESSES = [
    "postgresql://{role}:{word}@/postgres?host={host}&table=s.people",
    "postgresql://{role}@/postgres?host={host}&password={word}&table=s.people",
    "postgresql://{role}@/postgres?host={host}&table=s.people&sslpassword={word}",
    "postgresql://{role}:{word}@/postgres?host={host}&nonsense=1&table=s.people",
    "postgresql://{role}:{word}@[::1/postgres?table=s.people",
    "postgresql://{role}:{word}@/postgres?host={host}",
    "postgresql://{role}@/postgres?host={host}&pass%77ord={word}&table=s.people",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_in_the_catalog_is_refused_and_not_repeated(
    address: str, folder: Path, database: PostgresPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = re.search(r"host=([^&]*)", database.server.uri)
    assert host is not None
    source = address.format(role=ROLE, word=WORD, host=quote(host[1]))
    write(folder, source)
    with pytest.raises(dt.CatalogError) as told:
        dt.open(folder / "survey.toml", folder / "survey.ledger", make=True)
    assert WORD not in str(told.value)
    assert WORD not in repr(told.value.__context__)
    with pytest.raises(dt.CatalogError) as told:
        read_schema(source)
    assert WORD not in str(told.value)
    assert WORD not in "".join(run(folder, "check"))


# --- the secret of a choice -----------------------------------------------------------------------------------------


def test_the_secret_is_in_no_statement_and_only_among_logged_parameters(database: PostgresPlace) -> None:
    """A server that logs statements logs no secret. If it logs parameters as well, it does; docs/engines.md says so."""
    work = Work(plain("t", "t"), OWN, None, True, 1, (Sums((Cell(constant=1),), 1),))
    engine = database.engine({"t": own_groups()})
    database.run("ALTER ROLE reader SET log_statement = 'all'; ALTER ROLE reader SET log_parameter_max_length = 0")
    try:
        for logged, secret in ((False, SECRET), (True, b"another")):
            if logged:
                database.run("ALTER ROLE reader RESET log_parameter_max_length")
            database.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
            engine.run(work, secret)
            lines = [line for line in database.server.log.splitlines() if key_of(secret) in line]
            assert bool(lines) == logged
            assert all(re.search(r"(?i)detail:.*parameters", line) for line in lines)
    finally:
        database.run("ALTER ROLE reader RESET ALL")
