"""Which groups and values a unit keeps, in the forms that are fastest in DuckDB.

Everyone who is within the bound passes by an anti join; only units beyond it lose groups, by a keyed hash. For small L, `t`
has the (L+1)-th smallest hash of each, and what is not below it goes: fewer than L groups stay where hashes are equal, never
more. Else groups are ranked, ties broken by the key itself.

Keeping the smallest hashes of every unit takes much time and memory, so a unit first has one bit for each of 62 places, set
where the first bits of a hash say so. If it has as many bits as groups, all are apart, and the (L+1)-th bit is as good as the
(L+1)-th hash: the same groups stay. Only where two groups of such a unit fell into one place its hashes are looked at.

DuckDB's spelling of what the SQL printer leaves to an engine, and the forms in which it is fastest.

DuckDB adds up in 128 bits (HUGEINT) unless a narrower sum is proved to do; it sorts NaN above all numbers; its LEAST and
GREATEST pass over NULL; `//` cuts towards zero; 0.1 is a decimal, 0.1e0 a double.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence

import duckdb

from dither.engines.sql.dialect import Dialect
from dither.engines.sql.relations import PURPOSES, group_by

SHIFT, LAST = 58, 61  # a hash has its place among 62 by its first 6 bits; the last place also has those beyond


def by_smallest(dialect: Dialect, most: int, keys: Sequence[str], columns: Sequence[str], *, repeated: bool) -> str:
    """CTEs up to r for a small bound."""
    pairs, once = _pairs(keys, repeated)
    own = dialect.keyed_hash("groups", [f"b.{name}" for name in ("u", *keys)])
    listed = ", ".join(["u", *keys, *columns])
    return (
        f"{once}{beyond(pairs, dialect.keyed_hash('groups', ['u', *keys]), most)}, "
        f"r AS (SELECT {listed} FROM b ANTI JOIN t ON b.u = t.u AND {own} >= t.beyond)"
    )


def by_rank(dialect: Dialect, most: int, keys: Sequence[str], columns: Sequence[str], *, repeated: bool) -> str:
    """CTEs up to r for a large bound. `o` are the units with more groups than that."""
    pairs, once = _pairs(keys, repeated)
    order = ", ".join([dialect.keyed_hash("groups", ["u", *keys]), *keys])
    place = f"{'dense_rank' if repeated else 'row_number'}() OVER (PARTITION BY u ORDER BY {order})"
    listed = ", ".join(["u", *keys, *columns])
    return (
        f"{once}o AS MATERIALIZED (SELECT u FROM {pairs} GROUP BY u HAVING count(*) > {most}), "
        f"r AS (SELECT {listed} FROM b ANTI JOIN o USING (u) UNION ALL "
        f"SELECT {listed} FROM (SELECT *, {place} AS place FROM b SEMI JOIN o USING (u)) WHERE place <= {most})"
    )


def _pairs(keys: Sequence[str], repeated: bool) -> tuple[str, str]:
    """What has every unit and group once, and the CTE that makes it."""
    return ("p", f"p AS MATERIALIZED (SELECT DISTINCT u, {', '.join(keys)} FROM b), ") if repeated else ("b", "")


def beyond(pairs: str, hashed: str, most: int) -> str:
    """CTEs o and t: t has, for each unit over the bound, a number no hash of the groups it keeps reaches.

    Places and bits are BIGINT and at most 2^61, so that no arithmetic on them can fail, whatever m is.
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
    """`heavy` are the units with more than m counted rows in a group: only their weights are scaled."""
    n = dialect.widen("r.n") if wide else "r.n"
    less = dialect.quotient(f"{n} * {most * scale}", "heavy.k", wide=wide)
    weight = f"CASE WHEN heavy.k IS NULL THEN {n} * {scale} ELSE {less} END"
    heavy = group_by(heads, ["CAST(sum(n) AS BIGINT) AS k"], "r WHERE bin IS NOT NULL") + f" HAVING sum(n) > {most}"
    listed = [*(f"r.{key} AS {key}" for key in keys), "r.bin AS bin", f"{weight} AS weight"]
    return f", heavy AS ({heavy})", f"SELECT {', '.join(listed)} FROM r LEFT JOIN heavy ON {_same(heads)}"


def keep_values(dialect: Dialect, heads: Sequence[str], keys: Sequence[str], most: int) -> tuple[str, str]:
    """`heavy` are the units with more than m values in a group: only their values are ranked."""
    pair, dotted = ", ".join(heads), ", ".join(f"r.{name}" for name in heads)
    order = ", ".join([dialect.keyed_hash("values", [*heads, "v"]), "v"])
    listed = ", ".join([*(f"r.{key} AS {key}" for key in keys), "r.v AS v"])
    ranked = f"SELECT r.*, row_number() OVER (PARTITION BY {dotted} ORDER BY {order}) AS place"
    heavy = f", heavy AS (SELECT {pair} FROM r GROUP BY {pair} HAVING count(v) > {most})"
    return heavy, (
        f"SELECT {listed} FROM r ANTI JOIN heavy ON {_same(heads)} UNION ALL SELECT {listed} FROM "
        f"({ranked} FROM r SEMI JOIN heavy ON {_same(heads)} WHERE r.v IS NOT NULL) AS r WHERE place <= {most}"
    )


def _same(heads: Sequence[str]) -> str:
    return " AND ".join(f"r.{name} IS NOT DISTINCT FROM heavy.{name}" for name in heads)


_INF = "CAST('inf' AS DOUBLE)"


class DuckDBDialect(Dialect):
    """How DuckDB 2 spells a Work."""

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
    few_values = 1 << 12  # so many values of a column are kept as a list of values
    few_groups = 8  # the most groups for which the smallest hashes of a unit are kept in memory at once
    templates: Mapping[str, str] = {
        "trim": "trim({0}, ' ')",
        "length": "length({0})",
        "substr": "substring({0}, {1}, {2})",
        "like": "({0} LIKE {1})",
        "starts_with": "starts_with({0}, {1})",
        "contains": "contains({0}, {1})",
        "year": "year({0})",
        "month": "month({0})",
        "day": "day({0})",
        "quarter": "quarter({0})",
        "weekday": "isodow({0})",
        "hour": "hour({0})",
        "date_trunc": "CAST(date_trunc({0}, {1}) AS DATE)",
        "days_between": "({1} - {0})",
    }

    # --- constants ----------------------------------------------------------------------------------------------

    def string(self, value: str) -> str:
        """A text. A zero character cannot stand in SQL text and is spelt chr(0)."""
        parts = [super(DuckDBDialect, self).string(part) for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"

    def double(self, number: float) -> str:
        """With an exponent, because DuckDB reads 0.1 as a decimal.

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
        """DuckDB adds up in 128 bits. Where 64 will do it has a narrower sum, for what the statistics of a file prove; here the
        bounds prove it. For millions of units that saves a tenth of the time and of the memory."""
        if has_narrow_sum():
            return self.aggregate("sum_no_overflow", f"CAST({value} AS BIGINT)", where)
        return self.aggregate("sum", value, where)

    def wide_sum(self, value: str, where: str = "") -> str:
        return self.aggregate("sum", value, where)

    def clip_few(self, x: str, low: int, high: int) -> str:
        """Files keep a column of few values as numbers into a list of those, and functions are then computed on the list alone;
        CASE is not. LEAST and GREATEST pass over NULL, so that NULL becomes the lower bound: q is 0."""
        return f"least(greatest({x}, {low}), {high})"

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        return f"regexp_full_match({x}, {self.string(pattern)})"

    def read(self, x: str, kind: str) -> str:
        return f"TRY_CAST({x} AS {self.type(kind)})"

    def number_texts(self, x: str, values: Sequence[object]) -> str | None:
        """Public texts are numbered while they are read: grouping by small numbers saves a third of the time."""
        if not all(isinstance(value, str) and "\0" not in value for value in values):
            return None
        return f"TRY_CAST({x} AS ENUM({', '.join(self.literal(value).text for value in values)}))"

    # --- shapes -------------------------------------------------------------------------------------------------

    def test_late(self, test: str, count: str) -> str:
        """A count is never negative, but DuckDB does not know that, so it cannot look up every single row's key instead of each
        group's: that alone would double the time."""
        return f"({test} OR {count} < 0)"

    def cte(self, name: str, text: str, *, again: bool = True) -> str:
        return f"{name} AS {'MATERIALIZED' if again else 'NOT MATERIALIZED'} ({text})"

    def semi(self, listed: str, one: str, two: str, equal: str, *, negated: bool) -> str:
        return f"SELECT {listed} FROM {one} AS l {'ANTI' if negated else 'SEMI'} JOIN {two} AS r ON {equal}"

    def not_in(self, listed: str, one: str, two: str, pair: tuple[str, str], equal: str) -> str:
        x, y = pair
        return f"SELECT {listed} FROM {one} AS l WHERE {x} NOT IN (SELECT {y} FROM {two} AS r WHERE {equal})"

    def keyed_hash(self, purpose: str, columns: Sequence[str]) -> str:
        """`secret_numbers` has what stands for the secret. The outer hash mixes the inner one, whose last step is only an
        exclusive or."""
        one, two = (f"CAST(${name} AS UBIGINT)" for name in _names(purpose))
        return f"hash(hash({one}, {', '.join(columns)}), {two})"

    def keep_groups(self, most: int, keys: Sequence[str], columns: Sequence[str], *, repeated: bool) -> str:
        shape = by_smallest if most <= self.few_groups else by_rank
        return shape(self, most, keys, columns, repeated=repeated)

    def weigh_bins(self, heads: Sequence[str], keys: Sequence[str], most: int, scale: int, *, wide: bool) -> tuple[str, str]:
        return weigh_bins(self, heads, keys, most, scale, wide=wide)

    def keep_values(self, heads: Sequence[str], keys: Sequence[str], most: int) -> tuple[str, str]:
        return keep_values(self, heads, keys, most)


DIALECT = DuckDBDialect()
identifier, literal = DIALECT.identifier, DIALECT.literal  # for the statements that open sources


def secret_numbers(secret: bytes) -> dict[str, int]:
    """What stands for the secret in statements, by name: 64 bits that nobody can tell, before and after the columns."""
    found: dict[str, int] = {}
    for purpose in PURPOSES:
        digest = hashlib.blake2b(purpose.encode(), key=hashlib.blake2b(secret).digest(), digest_size=16).digest()
        found |= {name: int.from_bytes(digest[i : i + 8], "big") for i, name in zip((0, 8), _names(purpose), strict=True)}
    return found


def _names(purpose: str) -> tuple[str, str]:
    return f"{purpose}_1", f"{purpose}_2"


@functools.cache
def has_narrow_sum() -> bool:
    """Whether this DuckDB lets us use its 64-bit sum: it is there, but not documented, so it may go."""
    try:
        with duckdb.connect() as connection:
            numbers = "SELECT sum_no_overflow(CAST(x AS BIGINT)) FROM (VALUES (4611686018427387903), (-7), (NULL)) AS t(x)"
            return connection.execute(numbers).fetchall() == [(2**62 - 8,)]
    except duckdb.Error:
        return False
