"""Every type that PostgreSQL stores with its extreme values, and the kinds of relations that a table of a catalog can be.

As in zoo.py, each specimen is stored in ordinary rows with and without odd values, and an analyst must not be able to tell the
two apart by whether a catalog opens or a question is answered.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stored:
    """A type. `usual` and `odd` are SQL; `kind`: the kind in which questions read it, "" if they cannot.

    `needs`: a type or collation of MADE. `extension`: it needs one that a server may not have.
    """

    type: str
    kind: str
    usual: str
    odd: tuple[str, ...]
    needs: str = ""
    extension: str = ""


MADE = {
    "blind": "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",  # to case
    "mood": "CREATE TYPE mood AS ENUM ('a', '', 'Ä b', 'with ''quotes''')",
    "digits": "CREATE DOMAIN digits AS text CHECK (VALUE ~ '^[0-9]*$')",
    "share": "CREATE DOMAIN share AS numeric NOT NULL CHECK (VALUE BETWEEN 0 AND 1)",
    "inner_mood": "CREATE TYPE mood AS ENUM ('a', ''); CREATE DOMAIN inner_mood AS mood",
    "shares": "CREATE DOMAIN shares AS numeric[]",
    "pair": "CREATE TYPE pair AS (a int, b text)",
}

_TINY = "5e-324"
_TEXTS = (
    "''",
    "' '",
    "'a '",
    "'A'",
    "U&'\\00E9'",
    "U&'e\\0301'",  # the same letter, spelled otherwise
    "U&'\\FEFFa'",
    "U&'\\202Ea'",
    "U&'\\+01F600'",
    "U&'\\+10FFFF'",
    "U&'\\FFFF'",
    "'\\'",
    "'%_'",
    "E'a\\nb'",
    "E'\\x01'",
    "repeat('y', 100000)",
    "repeat(U&'\\00E9', 5000)",
)
_MOMENTS = (
    "'infinity'",
    "'-infinity'",
    "'4713-01-01 00:00:00 BC'",
    "'0044-03-15 00:00:00 BC'",
    "'0001-01-01 00:00:00'",
    "'9999-12-31 23:59:59.999999'",
    "'10000-01-01 00:00:00'",
    "'294276-12-31 23:59:59.999999'",
)
_REALS = ("'NaN'", "'inf'", "'-inf'", "-0.0")

NUMBERS = [
    Stored("smallint", "int", "1", ("-32768", "32767", "0")),
    Stored("integer", "int", "1", ("-2147483648", "2147483647", "0")),
    Stored("bigint", "int", "1", ("-9223372036854775808", "9223372036854775807", "4611686018427387905")),
    Stored(
        "numeric", "real", "1", ("'NaN'", "'inf'", "'-inf'", "1e-16383", "'1e131071'", "-1e-400", "0.1", "9e308", "2.5e-324")
    ),
    Stored("numeric(38,10)", "real", "1", ("'NaN'", "9999999999999999999999999999.9999999999", "-0.0000000001")),
    Stored("numeric(1000,0)", "real", "1", ("'1e999'", "'-1e999'", "'NaN'")),
    Stored("numeric(3,-2)", "real", "100", ("99900", "'NaN'")),
    Stored("numeric(18,0)", "real", "1", ("999999999999999999", "-999999999999999999")),
    Stored("real", "real", "1", (*_REALS, "'3.4028235e38'", "'1e-45'", "'1.1754944e-38'")),
    Stored(
        "double precision",
        "real",
        "1",
        (*_REALS, "'1.7976931348623157e308'", f"'{_TINY}'", f"'-{_TINY}'", "'2.2250738585072014e-308'"),
    ),
    Stored("money", "", "1", ("'-92233720368547758.08'", "'92233720368547758.07'")),
    Stored("oid", "", "1", ("4294967295", "0")),
    Stored("boolean", "bool", "true", ("false",)),
]
TEXTS = [
    Stored("text", "text", "'a'", _TEXTS),
    Stored("varchar", "text", "'a'", _TEXTS),
    Stored("varchar(5)", "text", "'a'", ("''", "'a    '", "repeat(U&'\\+01F600', 5)")),
    Stored("char(5)", "text", "'a'", ("''", "'a '", "'     '", "U&'\\00E9'")),
    Stored('text COLLATE "C"', "text", "'a'", _TEXTS[:6]),
    Stored("text COLLATE blind", "text", "'a'", _TEXTS[:6], "blind", "icu"),
    Stored('"char"', "text", "'a'", ("''", "E'\\\\377'")),
    Stored("name", "text", "'a'", ("''", "repeat('x', 63)")),
    Stored("citext", "text", "'a'", _TEXTS[:6], extension="citext"),
    Stored("uuid", "text", "'00000000-0000-0000-0000-000000000001'", ("'ffffffff-ffff-ffff-ffff-ffffffffffff'",)),
    Stored("mood", "text", "'a'", ("''", "'Ä b'", "'with ''quotes'''"), "mood"),
    Stored("digits", "text", "'1'", ("'0123456789'",), "digits"),
    Stored("share", "real", "0.5", ("1", "0"), "share"),
    Stored("inner_mood", "text", "'a'", ("''",), "inner_mood"),
    Stored("shares", "", "'{0.5}'", ("'{}'",), "shares"),
]
MOMENTS = [
    Stored("date", "date", "'2020-01-01'", tuple(moment.replace("294276", "5874897") for moment in _MOMENTS)),
    Stored("timestamp", "timestamp", "'2020-01-01 12:00:00'", _MOMENTS),
    Stored("timestamp(0)", "timestamp", "'2020-01-01 12:00:00'", _MOMENTS),
    Stored("timestamptz", "timestamp", "'2020-01-01 12:00:00+00'", _MOMENTS),
    Stored("time", "", "'12:00:00'", ("'24:00:00'", "'00:00:00'")),
    Stored("timetz", "", "'12:00:00+02'", ("'24:00:00-15:59'",)),
    Stored("interval", "", "'1 day'", ("'-178000000 years'", "'178000000 years'", "'1 month -30 days'")),
]
OTHERS = [
    Stored("integer[]", "", "'{1}'", ("'{}'", "'{{1,2},{3,4}}'", "'{NULL}'", "'[-2:0]={1,2,3}'")),
    Stored("text[]", "", "'{a}'", ("'{}'", "'{NULL,\"NULL\"}'")),
    Stored("json", "", "'{}'", ("'{\"a\": 1e400}'", '\'[{"a": "\\u0000"}]\'')),
    Stored("jsonb", "", "'{}'", ("'null'", "'[1e400]'")),
    Stored("bytea", "", "'\\x01'", ("''", "'\\x00'", "decode(repeat('00', 70000), 'hex')")),
    Stored("inet", "", "'10.0.0.1'", ("'::/0'",)),
    Stored("macaddr", "", "'08:00:2b:01:02:03'", ("'00:00:00:00:00:00'",)),
    Stored("bit(3)", "", "B'101'", ("B'000'",)),
    Stored("point", "", "'(1,2)'", ("'(NaN,inf)'",)),
    Stored("int4range", "", "'[1,2)'", ("'empty'", "'(,)'")),
    Stored("tsvector", "", "'a'", ("''",)),
    Stored("xml", "", "'<a/>'", ("''",), extension="xml"),
    Stored("pair", "", "'(1,a)'", ("'(,)'",), "pair"),
    Stored("regclass", "", "'pg_class'::regclass", ("4294967295::oid::regclass",)),
    Stored("hstore", "", "'a=>1'", ("''",), extension="hstore"),
]
SPECIMENS = [*NUMBERS, *TEXTS, *MOMENTS, *OTHERS]

_SPELLED = (
    *("''", "' 12 '", "'1e3'", "'0x1F'", "'1_000'", "'99999999999999999999'", "'-9223372036854775809'", "'1e999'", "'1e-999'"),
    *("'NaN'", "'infinity'", "'-inf'", "'now'", "'today'", "'epoch'", "'2023-02-29'", "'2024-02-30 25:61:61'", "'10000-01-01'"),
    *(
        "'0000-01-01'",
        "'2024-01-01 BC'",
        "'yes'",
        "'t'",
        "'TRUE'",
        "U&'\\0661'",
        "repeat('9', 100000)",
        "'2024-01-01T00:00:00+99'",
    ),
)
# Columns that a catalog may declare as another kind than they are stored in.
READ_AS = {
    Stored("text", "text", "'1'", _SPELLED): ("int", "real", "bool", "date", "timestamp"),
    Stored("varchar(40)", "text", "'1'", _SPELLED[:10]): ("int", "date"),
    Stored("numeric", "real", "1", NUMBERS[3].odd): ("int",),
    Stored("double precision", "real", "1", NUMBERS[9].odd): ("int",),
    Stored("bigint", "int", "1", NUMBERS[2].odd): ("real",),
    Stored("timestamptz", "timestamp", "'2020-01-01 12:00:00+00'", _MOMENTS): ("date",),
    Stored("date", "date", "'2020-01-01'", MOMENTS[0].odd): ("timestamp",),
}
IDENTIFYING = [each for each in SPECIMENS if each.kind in ("int", "text")]

# Relations: each makes a relation t whose column x is a real number, out of a table `base` of the same columns.
RELATIONS: dict[str, str] = {
    "table": "CREATE TABLE t AS TABLE base",
    "generated column": (
        "CREATE TABLE t (pid bigint, flag boolean, y double precision, x double precision GENERATED ALWAYS AS (y) STORED);"
        "INSERT INTO t SELECT pid, flag, x FROM base"
    ),
    "dropped column": "CREATE TABLE t AS SELECT pid, 1 AS gone, flag, x FROM base; ALTER TABLE t DROP COLUMN gone",
    "added column": "CREATE TABLE t AS SELECT pid, flag FROM base; ALTER TABLE t ADD COLUMN x double precision DEFAULT 'NaN'",
    "view": "CREATE VIEW t AS SELECT pid, flag, x FROM base WHERE pid > 0",
    "view of a view": "CREATE VIEW v AS TABLE base; CREATE VIEW t WITH (security_barrier) AS TABLE v",
    "materialised view": "CREATE MATERIALIZED VIEW t AS TABLE base",
    "partitions": (
        "CREATE TABLE t (x double precision, pid bigint, flag boolean) PARTITION BY LIST (flag);"
        "CREATE TABLE t_yes PARTITION OF t FOR VALUES IN (true);"
        "CREATE TABLE t_no (flag boolean, pid bigint, x double precision);"
        "ALTER TABLE t ATTACH PARTITION t_no DEFAULT; INSERT INTO t (pid, flag, x) TABLE base"
    ),
    "inheritance": (
        "CREATE TABLE t (pid bigint, flag boolean, x double precision); CREATE TABLE child (more text) INHERITS (t);"
        "INSERT INTO t SELECT pid, flag, x FROM base WHERE flag;"
        "INSERT INTO child SELECT pid, flag, x, 'a' FROM base WHERE NOT flag"
    ),
    "row-level security": (
        "CREATE TABLE t AS TABLE base; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t FOR SELECT USING (pid > 2)"
    ),
}  # fmt: skip
FOREIGN: dict[str, str] = {  # where the server has the extension
    "postgres_fdw": (
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA public;"
        "CREATE SERVER IF NOT EXISTS here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', dbname 'postgres');"
        "CREATE USER MAPPING IF NOT EXISTS FOR reader SERVER here OPTIONS (user 'postgres', password_required 'false');"
        "CREATE FOREIGN TABLE t (pid bigint, flag boolean, x double precision) SERVER here"
        " OPTIONS (schema_name '{schema}', table_name 'base')"
    ),
    "file_fdw": (
        "CREATE EXTENSION IF NOT EXISTS file_fdw SCHEMA public;"
        "CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw; COPY base TO '{folder}/base.csv' (FORMAT csv);"
        "CREATE FOREIGN TABLE t (pid bigint, flag boolean, x double precision) SERVER files"
        " OPTIONS (filename '{folder}/base.csv', format 'csv')"
    ),
}
