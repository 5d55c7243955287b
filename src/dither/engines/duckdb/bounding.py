"""Which groups and values a unit keeps, in the forms that are fastest in DuckDB.

Everyone who is within the bound passes by an anti join; only units beyond it lose groups, by a keyed hash. For small L, `t`
has the (L+1)-th smallest hash of each, and what is not below it goes: fewer than L groups stay where hashes are equal, never
more. Else groups are ranked, ties broken by the key itself.

Keeping the smallest hashes of every unit takes much time and memory, so a unit first has one bit for each of 62 places, set
where the first bits of a hash say so. If it has as many bits as groups, all are apart, and the (L+1)-th bit is as good as the
(L+1)-th hash: the same groups stay. Only where two groups of such a unit fell into one place its hashes are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.engines.sql.dialect import Dialect
from dither.engines.sql.rows import grouped

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
    heavy = grouped(heads, ["CAST(sum(n) AS BIGINT) AS k"], "r WHERE bin IS NOT NULL") + f" HAVING sum(n) > {most}"
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
