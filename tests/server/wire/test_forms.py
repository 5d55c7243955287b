"""SQL as BI tools are known to write it: forms.sql has the tool, the columns of the answer, and the statement; connecting.sql
has what tools send before anybody asks a question."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from server.wire.talking import Raw, Wire, names

pytestmark = pytest.mark.slow
FORMS = re.findall(r"^# (.+): (.+)\n(.+)$", Path(__file__).with_name("forms.sql").read_text(encoding="utf-8"), re.M)
CONNECTING = {
    part.splitlines()[0]: part.splitlines()[1:]
    for part in re.split(r"^# ", Path(__file__).with_name("connecting.sql").read_text(encoding="utf-8"), flags=re.M)[1:]
}
REFUSED = ["SELECT * FROM people LIMIT 100", 'SELECT "public"."people"."age" FROM "public"."people" LIMIT 2000', "TABLE people"]


def test_all_forms_are_read() -> None:
    assert len(FORMS) == 32
    assert list(CONNECTING) == ["DBeaver", "Npgsql and Power BI", "Metabase", "Superset", "Tableau", "Grafana"]


@pytest.mark.parametrize(("tool", "columns", "text"), FORMS, ids=[tool for tool, _, _ in FORMS])
def test_the_forms_of_tools_are_understood(wire: Wire, tool: str, columns: str, text: str) -> None:
    """Described, as tools do before they run it, and quoted. Neither charges."""
    before = wire.spent()
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"])
        raw.send(b"P", b"\0" + text.encode() + b"\0\0\0")
        raw.send(b"D", b"S\0")
        raw.send(b"S")
        found = dict(raw.until(b"Z"))
        assert b"T" in found, found
        assert names(found[b"T"]) == columns.split(", ")
    with wire.connect() as link:
        assert link.execute(f"EXPLAIN {text}").fetchall()
    assert wire.spent() == before


@pytest.mark.parametrize("tool", CONNECTING)
def test_what_tools_send_when_they_connect_is_answered(wire: Wire, tool: str) -> None:
    """In one connection, as they do. Nothing of it charges."""
    before = wire.spent()
    with wire.connect() as link:
        for text in filter(None, CONNECTING[tool]):
            link.execute(text)
    assert wire.spent() == before


def test_a_cursor_is_declared_and_fetched_as_tableau_does(wire: Wire) -> None:
    """In one text, with a name in quotes, held beyond its transaction."""
    question = 'SELECT "people"."ward" AS "ward", COUNT(1) AS "cnt" FROM "public"."people" "people" GROUP BY 1'
    with wire.connect() as link:
        found = link.execute(f'BEGIN;declare "SQL_CUR0x7f" cursor with hold for {question};fetch 1 in "SQL_CUR0x7f"')
        found.nextset()
        found.nextset()
        assert found.fetchall()[0][0] == "north"
        link.execute("COMMIT")
        assert link.execute('fetch 2048 in "SQL_CUR0x7f"').fetchall()[0][0] == "south"
        link.execute('close "SQL_CUR0x7f"')


@pytest.mark.parametrize("text", REFUSED)
def test_a_preview_of_rows_is_refused_with_a_hint(wire: Wire, text: str) -> None:
    with wire.connect() as link, pytest.raises(psycopg.Error) as refused:
        link.execute(text)
    assert refused.value.diag.message_hint
    assert refused.value.diag.message_detail == "Charged: nothing."


def test_a_cast_limit_is_the_same_limit(wire: Wire) -> None:
    """SQLAlchemy writes LIMIT 1::INTEGER."""
    question = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward ORDER BY ward LIMIT {}"
    with wire.connect() as link:
        plain = link.execute(question.format("1")).fetchall()
        before = wire.spent()
        for text in ("1::INTEGER", "CAST(1 AS BIGINT)", "1::INTEGER OFFSET 0::INTEGER"):
            assert link.execute(question.format(text)).fetchall() == plain
        assert wire.spent() == before
        for text in ("'1'::INTEGER", "1::TEXT", "1.5::INTEGER", "age::INTEGER"):
            with pytest.raises(psycopg.Error, match="LIMIT takes a whole number"):
                link.execute(question.format(text))
