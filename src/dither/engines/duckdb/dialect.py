"""Spells for DuckDB what the SQL printer leaves to an engine, in the forms that are fastest there.

DuckDB adds up in 128 bits (HUGEINT) unless a narrower sum is proved to be enough; it sorts NaN above all numbers; its LEAST and
GREATEST skip NULL; `//` cuts towards zero; 0.1 is a decimal, 0.1e0 a double.

Groups that a unit keeps: units within the bound L pass by an anti join; only units beyond it lose groups, by a keyed hash. For
small L, `t` has the (L+1)-th smallest hash of each unit, and groups whose hash is not below it are dropped. If hashes are
equal, fewer than L groups stay, never more. For large L, groups are ranked, with ties broken by the key itself.

Keeping the smallest hashes of every unit takes much time and memory. So each unit first gets 62 bits, and the first bits of a
hash say which one it sets. If a unit has as many bits as groups, all its groups are apart, and the (L+1)-th bit selects the
same groups as the (L+1)-th hash. The hashes themselves are compared only for units of which two groups set the same bit.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from dither.engines.sql.dialect import Dialect, Sql
from dither.engines.sql.relations import PURPOSES, group_by
from dither.query.functions.letters import lower, upper
from dither.query.sample import KEY

SHIFT, LAST = 58, 61  # the first 6 bits of a hash are its place among 62; larger values share the last place


def by_smallest(dialect: Dialect, most: int, heads: Sequence[Sql], columns: Sequence[str], *, repeated: bool) -> str:
    """Prints CTEs up to r for a small bound."""
    pairs, once = _pairs(heads, repeated)
    own = dialect.keyed_hash("groups", [replace(head, text=f"b.{head.text}") for head in heads])
    listed = ", ".join([*(head.text for head in heads), *columns])
    return (
        f"{once}{beyond(pairs, dialect.keyed_hash('groups', heads), most)}, "
        f"r AS (SELECT {listed} FROM b ANTI JOIN t ON b.u = t.u AND {own} >= t.beyond)"
    )


def by_rank(dialect: Dialect, most: int, heads: Sequence[Sql], columns: Sequence[str], *, repeated: bool) -> str:
    """Prints CTEs up to r for a large bound. `o` has the units with more groups than that."""
    pairs, once = _pairs(heads, repeated)
    keys = [head.text for head in heads[1:]]
    order = ", ".join([dialect.keyed_hash("groups", heads), *keys])
    place = f"{'dense_rank' if repeated else 'row_number'}() OVER (PARTITION BY u ORDER BY {order})"
    listed = ", ".join(["u", *keys, *columns])
    return (
        f"{once}o AS MATERIALIZED (SELECT u FROM {pairs} GROUP BY u HAVING count(*) > {most}), "
        f"r AS (SELECT {listed} FROM b ANTI JOIN o USING (u) UNION ALL "
        f"SELECT {listed} FROM (SELECT *, {place} AS place FROM b SEMI JOIN o USING (u)) WHERE place <= {most})"
    )


def _pairs(heads: Sequence[Sql], repeated: bool) -> tuple[str, str]:
    """Returns the name of a table with every unit and group once, and the CTE that makes it."""
    listed = ", ".join(head.text for head in heads)
    return ("p", f"p AS MATERIALIZED (SELECT DISTINCT {listed} FROM b), ") if repeated else ("b", "")


def beyond(pairs: str, hashed: str, most: int) -> str:
    """Prints CTEs o and t: t has, for each unit over the bound, a number above all hashes of the groups it keeps.

    Places and bits are BIGINT and at most 2^61, so that no arithmetic on them can overflow, whatever m is.
    """
    place = f"least({hashed} >> {SHIFT}, {LAST})"
    bits = f"bit_or(CAST(1 AS BIGINT) << CAST({place} AS BIGINT)) AS m"
    apart = "SELECT u, m FROM o WHERE bit_count(m) = c"
    for _ in range(most):
        apart = f"SELECT u, m & (m - 1) AS m FROM ({apart})"  # without its lowest bit
    lowest = f"least(bit_count((m & -m) - 1), {LAST})"
    crowded = f"{pairs} SEMI JOIN (SELECT u FROM o WHERE bit_count(m) < c) USING (u)"
    return (
        f"o AS MATERIALIZED (SELECT u, {bits}, count(*) AS c FROM {pairs} GROUP BY u HAVING count(*) > {most}), "
        f"t AS MATERIALIZED (SELECT u, CAST({lowest} AS UBIGINT) << {SHIFT} AS beyond FROM ({apart}) UNION ALL "
        f"SELECT u, min({hashed}, {most + 1})[{most + 1}] FROM {crowded} GROUP BY u)"
    )


def weigh_bins(
    dialect: Dialect, heads: Sequence[str], keys: Sequence[str], most: int, scale: int, *, wide: bool
) -> tuple[str, str]:
    """Prints the weights. `heavy` has the units with more than `most` counted rows in a group: only theirs are scaled."""
    n = dialect.widen("r.n") if wide else "r.n"
    less = dialect.quotient(f"{n} * {most * scale}", "heavy.k", wide=wide)
    weight = f"CASE WHEN heavy.k IS NULL THEN {n} * {scale} ELSE {less} END"
    heavy = group_by(heads, ["CAST(sum(n) AS BIGINT) AS k"], "r WHERE bin IS NOT NULL") + f" HAVING sum(n) > {most}"
    listed = [*(f"r.{key} AS {key}" for key in keys), "r.bin AS bin", f"{weight} AS weight"]
    return f", heavy AS ({heavy})", f"SELECT {', '.join(listed)} FROM r LEFT JOIN heavy ON {_same(heads)}"


def keep_values(dialect: Dialect, heads: Sequence[Sql], value: Sql, most: int) -> tuple[str, str]:
    """Prints the values kept. `heavy` has the units with more than `most` values in a group: only theirs are ranked."""
    names = [head.text for head in heads]
    pair, dotted = ", ".join(names), ", ".join(f"r.{name}" for name in names)
    order = ", ".join([dialect.keyed_hash("values", [*heads, value]), "v"])
    listed = ", ".join([*(f"r.{key} AS {key}" for key in names[1:]), "r.v AS v"])
    ranked = f"SELECT r.*, row_number() OVER (PARTITION BY {dotted} ORDER BY {order}) AS place"
    heavy = f", heavy AS (SELECT {pair} FROM r GROUP BY {pair} HAVING count(v) > {most})"
    return heavy, (
        f"SELECT {listed} FROM r ANTI JOIN heavy ON {_same(names)} UNION ALL SELECT {listed} FROM "
        f"({ranked} FROM r SEMI JOIN heavy ON {_same(names)} WHERE r.v IS NOT NULL) AS r WHERE place <= {most}"
    )


def _same(heads: Sequence[str]) -> str:
    return " AND ".join(f"r.{name} IS NOT DISTINCT FROM heavy.{name}" for name in heads)


_INF = "CAST('inf' AS DOUBLE)"
_UNIT_NUMBERS = {"bool": "CAST({} AS INTEGER)", "date": "({} - DATE '1970-01-01')", "timestamp": "epoch_us({})"}


class DuckDBDialect(Dialect):
    """The SQL of DuckDB."""

    name = "DuckDB"
    types: Mapping[str, str] = {
        "int": "BIGINT",
        "real": "DOUBLE",
        "text": "VARCHAR",
        "bool": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "null": "DOUBLE",
    }
    wide = "HUGEINT"
    widest = 1 << 126
    double_sums = True
    nan_is_largest = True
    few_values = 1 << 12  # files store a column of so few values as a dictionary
    few_groups = 8  # the most groups for which the smallest hashes of a unit are kept in memory at once
    templates: Mapping[str, str] = {
        "trim": "trim({0}, ' ')",
        "length": "length({0})",
        "substr": "substring({0}, {1}, {2})",
        "like": "({0} LIKE {1})",
        "starts_with": "starts_with({0}, {1})",
        "ends_with": "ends_with({0}, {1})",
        "contains": "contains({0}, {1})",
        "regexp_matches": "regexp_matches({0}, {1})",
        "position": "strpos({0}, {1})",
        "right": "right({0}, {1})",
        "split_part": "split_part({0}, {1}, {2})",
        "ltrim": "ltrim({0}, ' ')",
        "rtrim": "rtrim({0}, ' ')",
        "year": "year({0})",
        "month": "month({0})",
        "day": "day({0})",
        "quarter": "quarter({0})",
        "weekday": "isodow({0})",
        "hour": "hour({0})",
        "date_trunc": "CAST(date_trunc({0}, {1}) AS DATE)",
        "days_between": "({1} - {0})",
        "minute": "minute({0})",
        "second": "second({0})",
        "dayofweek": "dayofweek({0})",
        "dayofyear": "dayofyear({0})",
        "week": "weekofyear({0})",
        "isoyear": "isoyear({0})",
        "dayname": "dayname({0})",
        "monthname": "monthname({0})",
        "last_day": "last_day({0})",
        "date_diff": "date_diff({0}, {1}, {2})",
        "strftime": "strftime({0}, {1})",
        "strptime": "try_strptime({0}, {1})",
        "add_days": "({0} + to_days(CAST({1} AS INTEGER)))",
        "add_months": "({0} + to_months(CAST({1} AS INTEGER)))",
        "add_seconds": "({0} + to_seconds({1}))",
        "make_date": "(lpad(CAST({0} AS VARCHAR), 4, '0') || '-' || lpad(CAST({1} AS VARCHAR), 2, '0') || '-' || "
        "lpad(CAST({2} AS VARCHAR), 2, '0'))",
    }

    # --- constants ----------------------------------------------------------------------------------------------

    def string(self, value: str) -> str:
        """Prints a text constant. SQL text cannot hold a zero character, so it becomes chr(0)."""
        parts = [super(DuckDBDialect, self).string(part) for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"

    def double(self, number: float) -> str:
        """Prints a double with an exponent, because DuckDB reads 0.1 as a decimal.

        >>> DIALECT.double(0.1), DIALECT.double(-1e300), DIALECT.double(float("inf"))
        ('0.1e0', '(-1e+300)', "CAST('inf' AS DOUBLE)")
        """
        if math.isnan(number):
            return "CAST('nan' AS DOUBLE)"
        if math.isinf(number):
            return _INF if number > 0 else f"(-{_INF})"
        text = repr(abs(number))
        text = text if "e" in text else text + "e0"
        return f"(-{text})" if math.copysign(1.0, number) < 0 else text

    def number(self, digits: str) -> str:
        return f"{digits}e0"

    # --- numbers ------------------------------------------------------------------------------------------------

    def is_finite(self, x: str) -> str:
        return f"isfinite({x})"

    def share_type(self, most: int) -> str:
        return "INTEGER" if most < 1 << 31 else self.integer_type(most)

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        return f"{x} // {y}"

    def narrow_sum(self, value: str, where: str = "") -> str:
        """Prints a sum in 64 bits. DuckDB adds up in 128 bits, and has a narrower sum for where a file's statistics prove that
        it fits; here the bounds prove it. For millions of units that saves a tenth of the time and of the memory."""
        if has_narrow_sum():
            return self.aggregate("sum_no_overflow", f"CAST({value} AS BIGINT)", where)
        return self.aggregate("sum", value, where)

    def wide_sum(self, value: str, where: str = "") -> str:
        return self.aggregate("sum", value, where)

    def clip_few(self, x: str, low: int, high: int) -> str:
        """Clips with functions, not CASE: DuckDB computes functions once per value in a file's dictionary, but CASE on every
        row. LEAST and GREATEST skip NULL, so NULL becomes the lower bound and q is 0."""
        return f"least(greatest({x}, {low}), {high})"

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        return f"regexp_full_match({x}, {self.string(pattern)})"

    def read(self, x: str, kind: str) -> str:
        return f"TRY_CAST({x} AS {self.type(kind)})"

    def letters(self, x: str, *, upper: bool) -> str:
        """DuckDB's own function is fast, and used if its table is ours."""
        return f"{'upper' if upper else 'lower'}({x})" if has_our_letters() else super().letters(x, upper=upper)

    def number_texts(self, x: str, values: Sequence[object]) -> str | None:
        """Numbers public texts while they are read: grouping by small numbers saves a third of the time."""
        if not all(isinstance(value, str) and "\0" not in value for value in values):
            return None
        return f"TRY_CAST({x} AS ENUM({', '.join(self.literal(value).text for value in values)}))"

    # --- shapes -------------------------------------------------------------------------------------------------

    def test_late(self, test: str, count: str, *, by_unit: bool) -> str:
        """Adds a condition on the count, so that DuckDB cannot test every row's key instead of each group's, which would double
        the time. A count is never negative, but DuckDB does not know that."""
        return f"({test} OR {count} < 0)"

    def cte(self, name: str, text: str, *, again: bool = True) -> str:
        return f"{name} AS {'MATERIALIZED' if again else 'NOT MATERIALIZED'} ({text})"

    def semi(self, listed: str, one: str, two: str, equal: str, *, negated: bool) -> str:
        return f"SELECT {listed} FROM {one} AS l {'ANTI' if negated else 'SEMI'} JOIN {two} AS r ON {equal}"

    def not_in(self, listed: str, one: str, two: str, pair: tuple[str, str], equal: str) -> str:
        x, y = pair
        return f"SELECT {listed} FROM {one} AS l WHERE {x} NOT IN (SELECT {y} FROM {two} AS r WHERE {equal})"

    def keyed_hash(self, purpose: str, columns: Sequence[Sql]) -> str:
        """Prints two nested hashes; `secret_numbers` has their parameters. The outer hash mixes the inner one, whose last step
        is only an exclusive or."""
        one, two = (f"CAST(${name} AS UBIGINT)" for name in _names(purpose))
        return f"hash(hash({one}, {', '.join(column.text for column in columns)}), {two})"

    def in_sample(self, unit: Sql, limit: str) -> str:
        text = f"CAST({_UNIT_NUMBERS.get(unit.kind, '{}').format(unit.text)} AS VARCHAR)" if unit.kind != "text" else unit.text
        return f"sha256(concat(CAST(${KEY} AS VARCHAR), strlen({text}), ':', {text})) < '{limit}'"

    def keep_groups(self, most: int, heads: Sequence[Sql], columns: Sequence[str], *, repeated: bool) -> str:
        shape = by_smallest if most <= self.few_groups else by_rank
        return shape(self, most, heads, columns, repeated=repeated)

    def weigh_bins(self, heads: Sequence[str], keys: Sequence[str], most: int, scale: int, *, wide: bool) -> tuple[str, str]:
        return weigh_bins(self, heads, keys, most, scale, wide=wide)

    def keep_values(self, heads: Sequence[Sql], value: Sql, most: int) -> tuple[str, str]:
        return keep_values(self, heads, value, most)


DIALECT = DuckDBDialect()
identifier, literal = DIALECT.identifier, DIALECT.literal  # for the statements that open sources


def secret_numbers(secret: bytes) -> dict[str, int]:
    """Returns the parameters of keyed hashes: 64 secret bits each, before and after the columns."""
    numbers: dict[str, int] = {}
    for purpose in PURPOSES:
        digest = hashlib.blake2b(purpose.encode(), key=hashlib.blake2b(secret).digest(), digest_size=16).digest()
        numbers |= {name: int.from_bytes(digest[i : i + 8], "big") for i, name in zip((0, 8), _names(purpose), strict=True)}
    return numbers


def _names(purpose: str) -> tuple[str, str]:
    return f"{purpose}_1", f"{purpose}_2"


@functools.cache
def has_narrow_sum() -> bool:
    """Whether this DuckDB has its 64-bit sum. It is not documented, so a version may lack it."""
    try:
        with duckdb.connect() as connection:
            numbers = "SELECT sum_no_overflow(CAST(x AS BIGINT)) FROM (VALUES (4611686018427387903), (-7), (NULL)) AS t(x)"
            return connection.execute(numbers).fetchall() == [(2**62 - 8,)]
    except duckdb.Error:
        return False


@functools.cache
def has_our_letters() -> bool:
    """Whether LOWER and UPPER of this DuckDB follow our table; its Unicode changes with its version."""
    points = [point for point in range(1, 0x20000) if not 0xD800 <= point < 0xE000]
    every = "".join(map(chr, points))
    with duckdb.connect() as connection:
        found = connection.execute("SELECT lower($x), upper($x)", {"x": every}).fetchone()
    return found == (lower(every), upper(every))
