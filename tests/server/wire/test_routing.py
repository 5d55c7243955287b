"""Where statements go. A mistake here can leak nothing; it could give a wrong answer, or charge for a look."""

from __future__ import annotations

import pytest

from dither.errors import ArgumentError
from dither.server.wire.lexing import statements, words
from dither.server.wire.routing import route
from dither.server.wire.terms import Settings, options, sql

TABLES = frozenset({"people", "visits", "tables"})
ROUTES = """
question  SELECT COUNT(*) FROM people
question  select count(*) from People;
question  SELECT COUNT(*) FROM "people"
question  SELECT COUNT(*) FROM "public"."people" AS p
question  (SELECT COUNT(*) FROM people)
question  WITH q AS (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) SELECT * FROM q
question  SELECT * FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) AS t LIMIT 10
question  SELECT 1 /* ; */ FROM people -- pg_class
question  SELECT COUNT(*) FROM people p, visits v WHERE p.person = v.person
question  SELECT COUNT(*) FROM pg_class, (SELECT 1 FROM people) x
question  SELECT COUNT(*) FROM people WHERE age > 0 OR 0 = 1
question  SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM visits WHERE 0 = 1)
question  SELECT COUNT(*) FROM people LIMIT 01
question  SELECT COUNT(*) FROM people UNION ALL SELECT 1 LIMIT 0
probe     SELECT * FROM people LIMIT 0
probe     SELECT * FROM people WHERE 0 = 1
probe     SELECT * FROM "people" AS "q01" WHERE (0 = 1)
probe     SELECT * FROM people WHERE false GROUP BY 1
probe     SELECT * FROM (SELECT COUNT(*) FROM people) AS q LIMIT 0
twin      SELECT 1
twin      SELECT 'people'
twin      SELECT $$FROM people$$
twin      SELECT 'it''s FROM people'
twin      SELECT E'\\' FROM people'
twin      SELECT oid FROM pg_catalog.pg_class WHERE relname = 'people'
twin      SELECT tables FROM pg_catalog.pg_class
twin      SELECT * FROM information_schema.tables
twin      SELECT t.tables FROM information_schema.tables t
twin      VALUES (1)
twin      BEGIN
twin      ROLLBACK TO SAVEPOINT people
deallocate DEALLOCATE PREPARE "x"
twin      SET search_path = public
twin      SET client_encoding TO 'UTF8'
twin      SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
twin      SHOW server_version
twin      EXPLAIN SELECT 1
twin      FETCH ALL FROM c
twin      DECLARE c CURSOR FOR SELECT 1
twin      COPY (SELECT 1) TO STDOUT
explain   EXPLAIN SELECT COUNT(*) FROM people
explain   EXPLAIN (VERBOSE, FORMAT text) SELECT COUNT(*) FROM people
refused   EXPLAIN ANALYZE SELECT COUNT(*) FROM people
refused   EXPLAIN (ANALYZE) SELECT COUNT(*) FROM people
refused   PREPARE q AS SELECT COUNT(*) FROM people
refused   COPY people TO STDOUT
refused   COPY people FROM STDIN
refused   COPY (SELECT COUNT(*) FROM people) TO '/tmp/x'
refused   INSERT INTO people VALUES (1)
refused   DROP TABLE people
refused   ALTER ROLE CURRENT_USER SET statement_timeout = 0
refused   SET client_encoding TO 'LATIN1'
refused   FETCH BACKWARD 1 FROM own
declare   DECLARE c CURSOR FOR SELECT COUNT(*) FROM people
declare   DECLARE "C" BINARY CURSOR WITH HOLD FOR SELECT COUNT(*) FROM people
fetch     FETCH FORWARD 10 FROM own
fetch     MOVE ALL IN own
close     CLOSE own
copy      COPY (SELECT COUNT(*) FROM people) TO STDOUT (FORMAT binary)
set       SET dither.epsilon = 0.1
set       set local "dither".epsilon to '0.1'
show      SHOW dither.budget
reset     RESET dither.epsilon
reset     RESET ALL
discard   DISCARD ALL
ignored   SET statement_timeout = 0
ignored   SET ROLE postgres
ignored   SET default_transaction_read_only = off
ignored   RESET ROLE
ignored   LISTEN x
"""


@pytest.mark.parametrize("line", ROUTES.strip().splitlines())
def test_statements_go_where_they_belong(line: str) -> None:
    kind, text = line.split(maxsplit=1)
    (statement,) = statements(text)
    assert route(statement, TABLES, {"own"}).kind == kind


def test_a_mistake_is_marked_where_it_stands_in_the_whole_text() -> None:
    text = "SELECT 1;\n  EXPLAIN SELECT SUM(x) FROM people"
    found = route(statements(text)[1], TABLES)
    assert found.question is not None
    assert text[found.question.start :] == found.question.text == "SELECT SUM(x) FROM people"


def test_parts_of_statements_are_read() -> None:
    (declared,) = statements('DECLARE "C" BINARY CURSOR WITH HOLD FOR SELECT COUNT(*) FROM people')
    found = route(declared, TABLES)
    assert (found.name, found.hold, found.style) == ("C", True, "binary")
    (copied,) = statements("COPY (SELECT 1 FROM people) TO STDOUT WITH (FORMAT csv, HEADER)")
    found = route(copied, TABLES)
    assert (found.style, found.header, found.question and found.question.text) == ("csv", True, "SELECT 1 FROM people")
    (fetched,) = statements("FETCH FORWARD 10 FROM own")
    assert route(fetched, TABLES, {"own"}).most == 10


@pytest.mark.parametrize(
    "text", ["'", '"', "$$", "/*", "$a$ $b$", "E'\\", "((((", "))", ";;;", "\x00", "é" * 50, "$1$2", "1e", "u&'x"]
)
def test_any_text_is_cut_into_words(text: str) -> None:
    for each in words(text):
        assert 0 <= each.start < each.end <= len(text)
        assert each.depth >= 0
    statements(text)


HIDING = ["SELECT 1 --\r; SET work_mem = '1GB'", "SELECT e'a'\n'b\\' , ' ; SET work_mem = 1048576 -- '"]


@pytest.mark.parametrize("text", [*HIDING, "SELECT e'a' --\n'b\\' , ' ; SET work_mem = 1 -- '"])
def test_no_statement_hides_in_a_comment_or_a_string(text: str) -> None:
    assert [each.words[0].text for each in statements(text)] == ["SELECT", "SET"]


def test_what_is_in_a_string_is_no_statement() -> None:
    for text in ("SELECT ' ; SET x = 1'", "SELECT e'a' 'b\\' , ' ; SET x'", "SELECT 'a'\n'b\\' , ' ; SET x'", "SELECT\u00a0;"):
        assert len(statements(text)) == 1


def test_settings_are_read_and_return_to_where_they_began() -> None:
    settings = Settings()
    for name, value in options("-c dither.epsilon=0.2 -cdither.margins=on"):
        settings.begin(name, value)
    settings.set("dither.epsilon", "'0.1'")
    settings.set("dither.delta", "1e-9", local=True)
    settings.set("dither.max_rows", "auto")
    assert settings.terms() == {"epsilon": "0.1", "delta": "1e-9", "max_rows": "auto"}
    settings.end_transaction()
    assert "delta" not in settings.terms()
    settings.set("dither.epsilon", "DEFAULT")
    assert settings.show("dither.epsilon") == "0.2"
    settings.reset()
    assert (settings.terms(), settings["margins"], settings["notices"]) == ({"epsilon": "0.2"}, True, True)


def begun(text: str) -> Settings:
    settings = Settings()
    for name, value in options(text):
        settings.begin(name, value)
    return settings


@pytest.mark.parametrize("back", ["epsilon", "margin"])
@pytest.mark.parametrize("how", ["reset", "default", "''"])
def test_a_price_clears_the_margin_and_a_margin_the_price(back: str, how: str) -> None:
    settings = begun("-c dither.epsilon=0.05")
    settings.set("dither.margin", "50")
    assert settings.terms() == {"margin": "50"}
    settings.set("dither.epsilon", "0.1")
    assert settings.terms() == {"epsilon": "0.1"}
    settings.set("dither.margin", "20")
    if how == "reset":
        settings.reset(f"dither.{back}")
    else:
        settings.set(f"dither.{back}", how)
    assert settings.terms() == {"epsilon": "0.05"}
    settings.set("dither.epsilon", "0.1")
    settings.reset("dither.margin")
    assert settings.terms() == {"epsilon": "0.1"}  # it was not the margin that was named


def test_a_local_margin_clears_the_price_until_the_transaction_ends() -> None:
    settings = begun("-c dither.epsilon=0.05")
    settings.set("dither.epsilon", "0.1")
    settings.set("dither.margin", "50", local=True)
    assert settings.terms() == {"margin": "50"}
    settings.set("dither.margin", "default", local=True)
    assert settings.terms() == {"epsilon": "0.1"}
    settings.set("dither.margin", "50", local=True)
    settings.end_transaction()
    assert settings.terms() == {"epsilon": "0.1"}


def test_a_connection_that_begins_with_both_is_told_that_a_set_clears_the_other() -> None:
    settings = begun("-c dither.epsilon=0.05 -c dither.margin=50")
    with pytest.raises(ArgumentError) as both:
        settings.terms()
    assert both.value.fix.spell(sql).endswith("SET dither.margin = 50: a SET of one clears the other.")
    settings.set("dither.margin", "20")
    assert settings.terms() == {"margin": "20"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dither.epsilom", "1"),
        ("dither.epsilon", "much"),
        ("dither.epsilon", "1e999999999"),
        ("dither.sample", "1e-999999999"),
        ("dither.margins", "perhaps"),
        ("dither.max_rows", "-1"),
        ("dither.x", ""),
    ],
)
def test_a_wrong_setting_is_refused_with_a_fix(name: str, value: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        Settings().set(name, value)
    assert refused.value.fix


def test_a_setting_that_is_nearly_right_is_proposed_and_no_far_one() -> None:
    for name, near in (("dither.epsilom", "did you mean dither.epsilon? "), ("dither.colour", ""), ("dither.x", "")):
        with pytest.raises(ArgumentError) as refused:
            Settings().set(name, "1")
        assert str(refused.value.fix).partition("take one of")[0] == near
