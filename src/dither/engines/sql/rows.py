"""The rows a statement starts from, and the bounding every statement shares: which groups a unit keeps.

Rows are brought together per unit and group first (b), so whatever comes later works on few rows. `o` are the units with
more than L groups. Everyone else passes by an anti join; only units in `o` lose groups, by a keyed hash. For small L, `t` has
the (L+1)-th smallest hash of each, and what is not below it goes: fewer than L groups stay where hashes are equal, never
more. Else groups are ranked, ties broken by the key itself. The formulation follows from the Work alone and never from the
data.

Keeping the smallest hashes of every unit takes much time and memory, so a unit first has one bit for each of 62 places, set
where the first bits of a hash say so. If it has as many bits as groups, all are apart, and the (L+1)-th bit is as good as the
(L+1)-th hash: the same groups stay. Only where two groups of such a unit fell into one place its hashes are looked at.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from dither.engines.sql.basics import settled, whole
from dither.engines.sql.frame import Frame, Printed
from dither.engines.sql.text import Sql, literal
from dither.query.catalog import Key
from dither.query.nodes import Column, Expression
from dither.query.work import UNIT, Work

PURPOSES = ("groups", "values")  # what the secret decides: which groups of a unit stay, and which of its values
FEW = 8  # the most groups for which the smallest hashes of a unit are kept in memory at once
_SHIFT, _LAST = 58, 61  # a hash has its place among 62 by its first 6 bits; the last place also has those beyond


class Rows:
    """SELECT unit AS u, keys AS k0, k1, ..., further columns AS x0, x1, ... FROM the source."""

    def __init__(self, work: Work, source: Printed) -> None:
        self._frame = Frame(source)
        self._work = work
        self.keys = [f"k{i}" for i in range(len(work.keys))]
        self.heads = ["u", *self.keys] if work.by_unit else self.keys
        self._heads = [f"{self._unit()} AS u"] if work.by_unit else []
        self._tests: list[str] = []
        for place, key in enumerate(work.keys):
            self._heads.append(f"{self._key(key.expression, place)} AS {self.keys[place]}")
        self._further: dict[str, str] = {}

    def _unit(self) -> str:
        return settled(self._frame, self._frame.print(Column(UNIT))).text

    def _key(self, expression: Expression, place: int) -> str:
        key, name = self._frame.print(expression), self.keys[place]
        known = None if self._work.known is None else self._work.known[place]
        if key.kind == "text" and known and self._work.by_unit and all(map(_can_be_numbered, known)):
            # Public texts are numbered while they are read: grouping by small numbers saves a third of the time.
            self._tests.append(f"{name} IS NOT NULL")
            listed = ", ".join(literal(value).text for value in dict.fromkeys(known))
            return f"TRY_CAST({key.text} AS ENUM({listed}))"
        if known is not None:
            self._tests.append(_one_of(name, known))
        return whole(self._frame, key, rounded=False).text if key.kind == "real" else key.text

    def only_known(self, text: str, count: str) -> str:
        """The rows whose key is public. This drops whole groups, so it may come after rows were brought together.

        `count` is a column that counts rows. It is never negative, but DuckDB does not know that, so it cannot look up
        every single row's key instead of every group's: that alone would double the time.
        """
        if not self._tests:
            return text
        return f"SELECT * FROM ({text}) WHERE {' AND '.join(f'({test} OR {count} < 0)' for test in self._tests)}"

    @property
    def frame(self) -> Frame:
        return self._frame

    def column(self, x: Sql) -> str:
        """The name of the column that holds x; the same expression is computed once."""
        return self._further.setdefault(x.text, f"x{len(self._further)}")

    def condition(self, where: Expression | None) -> str:
        """The name of a column that is true for the counted rows, "" if all are."""
        return "" if where is None else self.column(self._frame.print(where))

    def select(self) -> str:
        listed = [*self._heads, *(f"{text} AS {name}" for text, name in self._further.items())] or ["1 AS one"]
        text = f"SELECT {', '.join(listed)} FROM {self._frame.source()}"
        return f"SELECT * FROM ({text}) WHERE u IS NOT NULL" if self._work.by_unit else text


def grouped(heads: Sequence[str], columns: Sequence[str], source: str) -> str:
    """SELECT heads, columns FROM source GROUP BY heads. Without heads: one row, or none if the source has none."""
    tail = f" GROUP BY {', '.join(heads)}" if heads else " HAVING count(*) > 0"
    return f"SELECT {', '.join([*heads, *columns])} FROM {source}{tail}"


def _can_be_numbered(value: Key) -> bool:
    return isinstance(value, str) and "\0" not in value


def _one_of(name: str, values: Sequence[Key]) -> str:
    listed = ", ".join(literal(value).text for value in values if value is not None)
    tests = [f"{name} IN ({listed})"] if listed else []
    tests += [f"{name} IS NULL"] if None in values else []
    return " OR ".join(tests) or "FALSE"


def needs_choice(work: Work) -> bool:
    """Whether a unit could be in more groups than it may: not if there are no more public groups than that."""
    if not work.by_unit or work.max_groups is None or not work.keys:
        return False
    return work.known is None or math.prod(len(set(values)) for values in work.known) > work.max_groups


def keyed_hash(purpose: str, columns: Sequence[str]) -> str:
    """A hash of the columns under the secret, which is not in the text: `secret_numbers` has what stands for it.
    The outer hash mixes the inner one, whose last step is only an exclusive or."""
    one, two = (f"CAST(${name} AS UBIGINT)" for name in _names(purpose))
    return f"hash(hash({one}, {', '.join(columns)}), {two})"


def secret_numbers(secret: bytes) -> dict[str, int]:
    """What stands for the secret in statements, by name: 64 bits that nobody can tell, before and after the columns."""
    found: dict[str, int] = {}
    for purpose in PURPOSES:
        digest = hashlib.blake2b(purpose.encode(), key=hashlib.blake2b(secret).digest(), digest_size=16).digest()
        found |= {name: int.from_bytes(digest[i : i + 8], "big") for i, name in zip((0, 8), _names(purpose), strict=True)}
    return found


def _names(purpose: str) -> tuple[str, str]:
    return f"{purpose}_1", f"{purpose}_2"


def bounded_groups(work: Work, keys: Sequence[str], columns: Sequence[str], *, repeated: bool) -> str:
    """CTEs up to r, which has the rows of b whose group its unit keeps. `repeated`: b has several rows per unit and group."""
    if not needs_choice(work) or work.max_groups is None:
        return "r AS (SELECT * FROM b)"
    pairs, once = ("p", f"p AS MATERIALIZED (SELECT DISTINCT u, {', '.join(keys)} FROM b), ") if repeated else ("b", "")
    listed = ", ".join(["u", *keys, *columns])
    if work.max_groups <= FEW:
        own = keyed_hash("groups", [f"b.{name}" for name in ("u", *keys)])
        return (
            f"{once}{_beyond(pairs, keyed_hash('groups', ['u', *keys]), work.max_groups)}, "
            f"r AS (SELECT {listed} FROM b ANTI JOIN t ON b.u = t.u AND {own} >= t.beyond)"
        )
    order = ", ".join([keyed_hash("groups", ["u", *keys]), *keys])
    place = f"{'dense_rank' if repeated else 'row_number'}() OVER (PARTITION BY u ORDER BY {order})"
    return (
        f"{once}o AS MATERIALIZED (SELECT u FROM {pairs} GROUP BY u HAVING count(*) > {work.max_groups}), "
        f"r AS (SELECT {listed} FROM b ANTI JOIN o USING (u) UNION ALL "
        f"SELECT {listed} FROM (SELECT *, {place} AS place FROM b SEMI JOIN o USING (u)) WHERE place <= {work.max_groups})"
    )


def _beyond(pairs: str, hashed: str, most: int) -> str:
    """CTEs o and t: t has, for each unit over the bound, a number no hash of the groups it keeps reaches.

    Places and bits are BIGINT and at most 2^61, so that no arithmetic on them can fail, whatever m is.
    """
    place = f"least({hashed} >> {_SHIFT}, {_LAST})"
    bits = f"bit_or(CAST(1 AS BIGINT) << CAST({place} AS BIGINT)) AS m"
    apart = "SELECT u, m FROM o WHERE bit_count(m) = c"
    for _ in range(most):
        apart = f"SELECT u, m & (m - 1) AS m FROM ({apart})"  # without its lowest bit
    lowest = f"least(bit_count((m & -m) - 1), {_LAST})"
    crowded = f"{pairs} SEMI JOIN (SELECT u FROM o WHERE bit_count(m) < c) USING (u)"
    return (
        f"o AS MATERIALIZED (SELECT u, {bits}, count(*) AS c FROM {pairs} GROUP BY u HAVING count(*) > {most}), "
        f"t AS MATERIALIZED (SELECT u, CAST({lowest} AS UBIGINT) << {_SHIFT} AS beyond FROM ({apart}) UNION ALL "
        f"SELECT u, min({hashed}, {most + 1})[{most + 1}] FROM {crowded} GROUP BY u)"
    )
