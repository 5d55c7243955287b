"""Spells for PostgreSQL what the SQL printer leaves to an engine.

PostgreSQL sorts NaN above all numbers; its LEAST and GREATEST skip NULL; sum(int) is a bigint, sum(bigint) an exact numeric;
`/` of whole numbers cuts towards zero; 0.1 is a numeric. It raises where arithmetic overflows (arithmetic.py), and where a text
is no number or a day does not exist (texts.py). Texts are compared by their bytes (COLLATE "C").

The planner pulls subselects up and writes their columns out at every use, which can double the work at each level of a
question. OFFSET 0 stops it. Groups are tested for known keys after grouping, behind OFFSET 0, too.

Each table of the catalog is a subselect that reads the declared columns in their kinds (columns.py). Nothing is created in the
database.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dither.engines.postgres.arithmetic import ARITHMETIC, double, least_step, round_away, span_of
from dither.engines.postgres.columns import View
from dither.engines.postgres.known import known_only
from dither.engines.postgres.texts import TEMPLATES, TEXTS, read_date
from dither.engines.sql.dialect import NARROW, Dialect, Printer, Sql, nearest
from dither.errors import QueryError
from dither.query.work import Work

_ROWS = 1 << 40  # every width is proved for so many rows
_HALF = 1 << 34  # where a double of less than 2^87 is divided into two integers
_MOST_PLACES = (1 << 31) - 1  # of rows in a window


class PostgresDialect(Dialect):
    """The SQL of PostgreSQL. `views`: how each table of the catalog is read. `constants`: tables as constants, for FROM.

    `bare`: columns, by table, that a Work uses only as keys with known values.
    """

    name = "PostgreSQL"
    types: Mapping[str, str] = {
        "int": "bigint",
        "real": "float8",
        "text": "text",
        "bool": "boolean",
        "date": "date",
        "timestamp": "timestamp",
        "null": "float8",
    }
    wide = "numeric"
    widest = 1 << 126
    templates: Mapping[str, str] = TEMPLATES
    printers: Mapping[str, Printer] = {**ARITHMETIC, **TEXTS}
    nan_is_largest = True
    counts_arguments = True
    few_values = (1 << 31) - 1
    fence = " OFFSET 0"

    def __init__(
        self,
        views: Mapping[str, View],
        constants: Mapping[str, str] | None = None,
        bare: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._views, self._constants, self._bare = views, constants or {}, bare or {}

    def for_work(self, work: Work) -> PostgresDialect:
        """Returns the dialect for one Work: columns that it uses only as keys with known values need no test for long texts."""
        return type(self)(self._views, self._constants, known_only(work))

    def table(self, name: str) -> str:
        return f"{self.rows(name)} AS t" if name in self._views or name in self._constants else self.identifier(name)

    def rows(self, name: str) -> str:
        """Prints the rows of a table of the catalog, a subselect without a name."""
        return self._views[name].sql(self._bare.get(name, ())) if name in self._views else self._constants[name]

    def scan(self, column: str, kind: str) -> str:
        return self.identifier(column)

    # --- constants ----------------------------------------------------------------------------------------------

    def literal(self, value: object) -> Sql:
        if value is None:
            return Sql("NULL::float8", "null", atom=True)
        found = super().literal(value)
        return replace(found, span=span_of(nearest(value))) if found.kind == "real" else found  # type: ignore[arg-type]

    def string(self, value: str) -> str:
        """Prints a text constant. PostgreSQL's texts have no zero character."""
        if "\0" in value:
            raise QueryError("PostgreSQL cannot hold the zero character in this question.", fix="ask without it.")
        return "('" + value.replace("'", "''") + '\'::text COLLATE "C")'

    def integer(self, value: int) -> str:
        return f"({value})::bigint" if value < 0 else f"{value}::bigint"

    def double(self, number: float) -> str:
        return double(number)

    # --- kinds --------------------------------------------------------------------------------------------------

    def cast(self, x: str, stored: str, kind: str) -> str:
        if stored == "null":
            return f"NULL::{self.types[kind]}"
        if stored == "bool" and kind in ("int", "real"):
            return f"({x})::int::{self.types[kind]}"
        if stored in ("date", "timestamp") and kind == "text":
            return f"(to_char(({x})::timestamp, 'YYYY-MM-DD') COLLATE \"C\")"
        return f'(({x})::text COLLATE "C")' if kind == "text" else f"({x})::{self.type(kind)}"

    def as_double(self, x: Sql) -> Sql:
        found = super().as_double(x)
        if found.constant is not None and not isinstance(found.constant, str):
            return replace(found, span=span_of(nearest(found.constant)))
        return replace(found, span=64) if x.kind in ("int", "bool") else found

    # --- numbers ------------------------------------------------------------------------------------------------

    def is_nan(self, x: str) -> str:
        return f"({x} = {double(math.nan)})"

    def round(self, x: str) -> str:
        return round_away(x)

    def round_even(self, x: str) -> str:
        return f"round({x})"

    def share_type(self, most: int) -> str:
        """Narrow shares are added up in bigints, which 2^40 of them must not overflow: PostgreSQL does not test that."""
        return "int" if most * _ROWS < NARROW else self.integer_type(most)

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        """Sums are numeric, whose `/` keeps fractions that a cast would round: narrow ones become bigints first."""
        return f"div({x}, ({y})::numeric)" if wide else f"(({x})::bigint / ({y})::bigint)"

    def exact_aggregate(self, name: str, kind: str) -> str:
        return {"min": "bool_and", "max": "bool_or"}.get(name, name) if kind == "bool" else name

    def narrow_sum(self, value: str, where: str = "") -> str:
        """2^40 of these fit into 62 bits, so each fits into 22, and their sum into the bigint of sum(int)."""
        return self.aggregate("sum", f"({value})::int", where)

    def wide_sum(self, value: str, where: str = "") -> str:
        return self.aggregate("sum", value, where)

    def unit_sum(self, value: str) -> str:
        """Stored numbers may be ints, of which 2^40 could overflow a bigint."""
        return f"sum(({value})::bigint)"

    def clip(self, x: str, low: str, high: str, above: str) -> str:
        inside = f"(CASE WHEN {x} >= {low} THEN {x} ELSE {low} END)"
        return f"(CASE WHEN {x} <= {high} THEN {inside} WHEN {above} THEN {high} END)::bigint"

    def steps_above(self, x: str, low: float, high: float, step: float) -> str:
        """Distances that would vanish in the division are 0 first, because PostgreSQL raises."""
        least = least_step(low, step) if step > 1 else low
        inside = f"(CASE WHEN {x} >= {double(least)} THEN {x} ELSE {double(low)} END)"
        text = f"(CASE WHEN {x} <= {double(high)} THEN {inside} WHEN {x} <= {double(math.inf)} THEN {double(high)} END)"
        text = f"({text} - {double(low)})" if low else text
        return text if step == 1 else f"({text} / {double(step)})"

    def round_steps(self, x: str, type: str) -> str:
        """A cast of a double to a numeric keeps 15 digits, which may be more than the double: so two integers of less than 2^53
        are put together. There are less than 2^86 steps."""
        if type != self.wide:
            return super().round_steps(x, type)
        half = double(float(_HALF))
        high = f"floor(({x} + {double(0.5)}) / {half})"
        low = f"floor(({x} + {double(0.5)}) - {high} * {half})"
        return f"({high}::bigint::numeric * {_HALF} + {low}::bigint)"

    def clip_few(self, x: str, low: int, high: int) -> str:
        """LEAST and GREATEST skip NULL, so NULL becomes the lower bound and q is 0."""
        clipped = f"least(greatest({x}, {low}), {high})"
        return clipped if (high - low) * _ROWS < NARROW else f"({clipped})::bigint"

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        return f"{x} ~ {self.string(f'^(?:{pattern})$')}"

    def read(self, x: str, kind: str) -> str:
        return read_date(x) if kind == "date" else f"({x})::{self.type(kind)}"

    def named(self, subselect: str) -> str:
        return f"{subselect} AS q"  # PostgreSQL 15 wants one

    # --- the choice ---------------------------------------------------------------------------------------------

    def keyed_hash(self, purpose: str, columns: Sequence[Sql]) -> str:
        """Prints the hash of sql/choice.py. $1 is the key of the secret."""
        text = " || ".join(["$1::text", *map(_spelled, columns)])
        return f"sha256(convert_to({text}, 'UTF8'))"

    def keep_groups(self, most: int, heads: Sequence[Sql], columns: Sequence[str], *, repeated: bool) -> str:
        """Hashes the groups of units that have too many, only: a unit with a group after the last it may keep. Its rows are
        sorted by unit for that, and then within units."""
        if repeated or most >= _MOST_PLACES:
            return super().keep_groups(most, heads, columns, repeated=repeated)
        keys = [head.text for head in heads[1:]]
        listed = ", ".join(["u", *keys, *columns])
        after = f"nth_value(1, {most + 1}) OVER (PARTITION BY u ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        order = ", ".join([f"(CASE WHEN beyond = 1 THEN {self.keyed_hash('groups', heads)} END)", *keys])
        place = f"row_number() OVER (PARTITION BY u ORDER BY {order}) AS place"
        return (
            f"r AS (SELECT {listed} FROM (SELECT b.*, {place} FROM (SELECT b.*, {after} AS beyond FROM b) AS b) AS b "
            f"WHERE place <= {most})"
        )


_SPELLED = {
    "int": "({0})::text",
    "real": "encode(float8send({0}), 'hex')",
    "text": "({0})",
    "bool": "({0})::text",
    "date": "to_char(({0})::timestamp, 'YYYY-MM-DD')",
    "timestamp": "to_char({0}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')",
}


def _spelled(column: Sql) -> str:
    text = _SPELLED[column.kind if column.kind != "null" else "real"].format(column.text)
    return f"(CASE WHEN {column.text} IS NULL THEN 'n' ELSE 'v' || length({text}) || ':' || {text} END)"
