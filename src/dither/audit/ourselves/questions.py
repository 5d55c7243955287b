"""Generates questions: mostly sensible, some broken. They consist of parts, so that shrinking can shorten them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dither.audit.ourselves import spelled

NUMBERS = ("age", "income", "score", "p.age", "cost", "dose", "x", "Mixed")
WORDS = ("region", "city", "ward", "drug", "p.region")
OTHER = ("active", "born", "day", "person_id", "nothing", "1", "NULL", "'north'", "-3.5", "DATE '2020-02-29'", "TRUE")
PLAIN = ("ABS", "FLOOR", "CEIL", "ROUND", "SQRT", "LN", "EXP", "SIGN", "LOWER", "UPPER", "TRIM", "LENGTH", "YEAR")
ONE = (*PLAIN, "RANDOM", "READ_CSV")
AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MEDIAN", "STDDEV", "VAR_POP", "VAR_SAMP", "MIN", "MAX", "CLIPPED"),
    *("SKEWNESS", "KURTOSIS", "KURTOSIS_POP", "APPROX_COUNT_DISTINCT"),
)
PAIRS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY")
FILTERS = ("age < 18", "age BETWEEN 18 AND 64", "age > 60", "region = 'north'", "region IN ('south', 'west')", "age IS NULL")
TABLES = (
    "people p",
    "people",
    "visits",
    "records",
    "visits v JOIN people p ON v.person_id = p.person_id",
    "visits v LEFT JOIN people p USING (person_id)",
    "prescriptions d JOIN visits v ON d.visit_id = v.visit_id",
    "people p JOIN visits v ON v.person_id = p.person_id AND (v.cost > 10 OR p.region IN (SELECT name FROM regions))",
    "people p JOIN regions r ON p.region = r.name",
    "(SELECT * FROM people WHERE age > 30) p",
    "(SELECT person_id, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY person_id) t",
    "visits v JOIN (SELECT person_id, COUNT(*) AS n, MAX(ward) AS top FROM visits GROUP BY 1) t ON v.person_id = t.person_id",
    "people p FULL JOIN visits v USING (person_id)",
    "(SELECT v.*, p.age FROM people p, visits v, regions r WHERE p.person_id = v.person_id AND r.name = p.region) v",
    "(SELECT person_id, ward FROM visits UNION SELECT person_id, region FROM people) v",
    "(SELECT DISTINCT person_id, ward, cost FROM visits) v",
    "regions",
    "secrets",
)
WINDOWS = ("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "COUNT(*)", "NTILE(3)")  # and of a column:
VALUES = ("LAG({0})", "LEAD({0}, 2, 0)", "FIRST_VALUE({0})", "SUM({0})", "AVG({0})", "MIN({0})", "MAX({0})", "COUNT({0})")
FRAMES = ("", "", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING")
OWN = (
    "v.person_id = p.person_id",
    "v.person_id = p.person_id AND v.cost > 10",
    "v.person_id = p.person_id AND v.ward = p.region",
    "v.ward = p.region",
    "cost > 10",
    "active",
)
OVER_GROUPS = (
    "a0 / SUM(a0) OVER () AS w",
    "RANK() OVER (ORDER BY a0 DESC) AS w",
    "SUM(a0) OVER (ORDER BY 1 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w",
    "LAG(a0, 1, 0) OVER (ORDER BY a0) AS w",
    "LAG(a0 IGNORE NULLS) OVER (ORDER BY k NULLS FIRST) AS w",
    "SUM(a0) OVER (ORDER BY k GROUPS 1 PRECEDING) AS w",
    "SUM(a0) OVER (ORDER BY a0 RANGE BETWEEN 5 PRECEDING AND 1 FOLLOWING) AS w",
    "RANK() OVER (PARTITION BY GROUPING(k) ORDER BY a0) AS w",
)
AROUND = (
    "SELECT MAX(a0) AS m, MIN(a0) AS l, COUNT(*) AS c FROM (...)",
    "SELECT * FROM (...) WHERE a0 > 3 ORDER BY a0 DESC LIMIT 2",
    "WITH q AS (...) SELECT *, a0 - AVG(a0) OVER () AS d FROM q",
    "SELECT ARG_MAX(a0, a0) AS m, SUM(a0) AS s FROM (...) HAVING COUNT(*) > 1",
    "SELECT a0, ROW_NUMBER() OVER (ORDER BY a0) AS i FROM (...) QUALIFY i <= 3",
)
BROKEN = ("DISTINCT", "LIMIT 1", "OVER ()", ";", "'", "--", "(", ")", "\x00", "é", "UNION ALL", "*")


_PLAIN_TABLES = ("t", "people")  # of the generated catalogs; a question about a table that is not there is refused


@dataclass(frozen=True)
class Parts:
    """A question in parts; its text is SQL. `mutilated` replaces all of them if it is set.

    >>> str(Parts("", ("COUNT(*) AS a0",), "people", "age > 1", "", " LIMIT 3"))
    'SELECT COUNT(*) AS a0 FROM people WHERE age > 1 LIMIT 3'
    """

    key: str
    aggregates: tuple[str, ...]
    source: str
    where: str = ""
    group: str = ""
    having: str = ""
    tail: str = ""
    mutilated: str = ""
    windows: tuple[str, ...] = ()  # over the groups
    around: str = ""  # a SELECT around it, with ... in its place
    union: str = ""  # another result below it
    distinct: bool = False  # instead of GROUP BY

    def __str__(self) -> str:
        if self.mutilated:
            return self.mutilated
        if self.distinct:
            return f"SELECT DISTINCT {self.key} AS k FROM {self.source}" + (f" WHERE {self.where}" if self.where else "")
        listed = ", ".join(([f"{self.key} AS k"] if self.key else []) + [*self.aggregates, *self.windows])
        where = f" WHERE {self.where}" if self.where else ""
        group = f" GROUP BY {self.group}" if self.key else ""
        inner = f"SELECT {listed} FROM {self.source}{where}{group}{self.having}{self.union}{self.tail}"
        return self.around.replace("...", inner) if self.around else inner

    def simpler(self) -> Iterator[Parts]:
        """Yields the question without one of its parts, largest parts first."""
        if self.mutilated:
            return
        if self.around or self.windows:
            yield replace(self, around="", windows=())
        if self.union:
            yield replace(self, union="")
        if len(self.aggregates) > 1:
            yield from (replace(self, aggregates=(one,), having="", tail="") for one in self.aggregates)
        if self.source not in _PLAIN_TABLES:
            yield from (replace(self, source=table) for table in _PLAIN_TABLES)
        shorter = (replace(self, tail=""), replace(self, having=""), replace(self, where=""))
        yield from (one for one in shorter if one != self)
        if self.key:
            yield replace(self, key="", group="", having="", tail="")


class Maker:
    """Generates questions from a seed, so that a failure can be repeated."""

    numbers: tuple[str, ...] = NUMBERS
    words: tuple[str, ...] = WORDS
    other: tuple[str, ...] = OTHER
    keys: tuple[str, ...] = ("active", "age", "BUCKET(age, 20)")
    people: tuple[str, ...] = ("COUNT(*)", "COUNT(*)", "COUNT(DISTINCT person_id)")
    dates: tuple[str, ...] = spelled.DATES
    public: str = "regions"  # a public table with the columns name and area

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def value(self, depth: int = 2) -> str:
        """Returns an expression, mostly a number."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.4:
            return self.pick(*self.numbers, *self.numbers, *self.words, *self.other)
        inner, other = self.value(depth - 1), self.value(depth - 1)
        if kind < 0.45:
            return spelled.number(self.pick, inner, self.words, self.dates)
        if kind < 0.6:
            return f"({inner} {self.pick('+', '-', '*', '/', '%', '||')} {other})"
        if kind < 0.75:
            return f"{self.pick(*ONE)}({inner})"
        if kind < 0.85:
            return f"CLAMP({inner}, {self.rng.randint(-9, 9)}, {self.rng.randint(5, 999)})"
        if kind < 0.88:
            return self.scalar()
        if kind < 0.94:
            return f"CASE WHEN {self.condition(depth - 1)} THEN {inner} ELSE {other} END"
        return self.pick(
            f"COALESCE({inner}, {other})", f"NULLIF({inner}, 0)", f"CAST({inner} AS INTEGER)", f"BUCKET({inner}, 10)"
        )

    def scalar(self) -> str:
        """Returns a scalar subquery: about the person, a public table, or rows it must not read."""
        word = self.pick("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNT", "MEDIAN", "BOOL_OR")
        inner = (
            self.pick("*", "v.cost", "cost", "DISTINCT ward") if word == "COUNT" else self.pick("v.cost", "cost", "v.visit_id")
        )
        own = self.pick(OWN[0], OWN[0], OWN[0], *OWN)
        return self.pick(
            *[f"(SELECT {word}({inner}) FROM visits v WHERE {own})"] * 4,
            "(SELECT MAX(area) FROM regions)",
            f"(SELECT COUNT(*) FROM regions r WHERE r.name = {self.pick('p.region', 'region', 'city')})",
            f"(SELECT {inner} FROM visits v WHERE {own})",
        )

    def listed(self) -> str:
        """Returns IN or EXISTS with a subquery."""
        left, word = self.pick("region", "age", "ward", "p.region", "person_id", "x"), self.pick("IN", "NOT IN", "NOT IN")
        own = self.pick(OWN[0], OWN[0], *OWN)
        return self.pick(
            *[
                f"age {word} (SELECT v.cost FROM visits v WHERE {own})",
                f"p.region {word} (SELECT v.ward FROM visits v WHERE {own})",
            ],
            f"{left} {word} (SELECT {self.pick('name', 'area')} FROM regions)",
            f"{left} {word} (SELECT {self.pick('v.ward', 'v.cost', 'v.person_id')} FROM visits v WHERE {own})",
            f"{left} {word} (SELECT name FROM regions r WHERE r.name = p.region)",
            f"person_id {word} (SELECT person_id FROM visits)",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM visits v WHERE {own})",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM regions WHERE {self.pick('coast', 'name = p.region')})",
        )

    def inside(self) -> str:
        """Returns IN or EXISTS as a part of another condition."""
        one = self.listed()
        return self.pick(
            f"(age > 30 OR {one})",
            f"NOT (active AND {one})",
            f"CASE WHEN {one} THEN active ELSE age > 30 END",
            f"({one}) IS {self.pick('NULL', 'NOT NULL', 'TRUE', 'FALSE')}",
            f"({one}) = ({self.listed()})",
        )

    def related(self) -> list[str]:
        """Returns conditions that read other tables."""
        return [
            "person_id IN (SELECT person_id FROM visits WHERE cost > 10)",
            self.listed(),
            self.inside(),
            f"{self.scalar()} {self.pick('>', '<=', '=')} {self.rng.randint(0, 9)}",
            "active",
        ]

    def condition(self, depth: int = 1) -> str:
        left = self.value(depth)
        plain = self.pick(
            f"{left} {self.pick('<', '<=', '=', '<>', '>', '>=')} {self.value(depth)}",
            f"{left} IS NOT NULL",
            f"{left} BETWEEN 1 AND 50",
            f"{left} IN (1, 2, 3)",
            f"{self.pick(*self.words)} LIKE '{self.pick('n%', '%o_th', 'ab')}'",
            spelled.condition(self.pick, left, self.words, self.dates),
            spelled.with_parameter(self.pick, self.numbers, self.words, self.dates),
            *self.related(),
        )
        if depth and self.rng.random() < 0.3:
            return f"({plain} {self.pick('AND', 'OR')} NOT {self.condition(depth - 1)})"
        return plain

    def aggregate(self) -> str:
        kind = self.rng.random()
        if kind < 0.35:
            pair = f"({self.pick(*self.words)}, {self.pick(*self.words, *self.numbers)})"
            return self.pick(*self.people, f"COUNT(DISTINCT {self.pick(*self.words, pair)})", f"COUNT_IF({self.condition(0)})")
        if kind < 0.45:
            share = self.pick("0.5", "0.9", "1.5", "age", "[0.1, 0.5]", "[0.9, 0.1, 0.5]")
            return f"QUANTILE({self.pick(*self.numbers)}, {share})"
        if kind < 0.5:
            return f"COUNT(*) FILTER (WHERE {self.pick(*FILTERS)})"
        if kind < 0.55:
            if kind < 0.52:
                return f"MODE({self.pick(*self.words, *self.numbers, 'active', 'BUCKET(age, 20)')})"
            return f"{self.pick(*PAIRS)}({self.pick(*self.numbers)}, {self.pick(*self.numbers)})"
        return f"{self.pick(*AGGREGATES)}({self.pick(*self.numbers) if kind < 0.8 else self.value(1)})"

    def source(self) -> str:
        return self.pick(*TABLES[:4], *TABLES, self.own_rows())

    def own_rows(self) -> str:
        """Returns a subquery with window functions over a table of the catalog."""
        return self.within("person_id", ("cost", "cost", "visit_id"), ("ward", "day", "cost"), "visits")

    def windowed(self, number: str, key: str) -> Parts:
        """Returns a question about the columns n and x of such a subquery, mostly legal."""
        value = self.pick("CLAMP(x, 0, 50)", "CLAMP(n, 0, 9)", f"CLAMP({number} - x, -20, 20)", number)
        chosen = self.pick("COUNT(*) AS a0", f"SUM({value}) AS a0", f"AVG({value}) AS a0", f"MEDIAN({value}) AS a0")
        return Parts(
            self.pick("", "", key, "CLAMP(n, 0, 3)"), (chosen,), self.own_rows(), self.pick("", "n = 1", f"x > {number}"), "1"
        )

    def within(self, unit: str, values: tuple[str, ...], columns: tuple[str, ...], table: str) -> str:
        """Returns a subquery with window functions, mostly of one unit's rows, as the columns n and x."""
        order = ", ".join(
            self.pick(*columns) + self.pick("", " DESC", " NULLS FIRST") for _ in range(self.rng.choice((0, 1, 1, 2)))
        )
        keys = self.pick(unit, unit, unit, unit, f"{unit}, {self.pick(*columns)}", self.pick(*columns), "")
        partition, ordered = f"PARTITION BY {keys} " if keys else "", f"ORDER BY {order}" if order else ""
        over = f"OVER ({partition}{ordered}{self.pick(*FRAMES) if order else ''})"
        n, x = self.pick(*WINDOWS), self.pick(*VALUES).format(self.pick(*values))
        qualify = self.pick("", "", "", " QUALIFY n <= 2", f" QUALIFY {n} {over} > 1")
        return f"(SELECT *, {n} {over} AS n, {x} {over} AS x FROM {table}{qualify}) w"

    def parts(self, mutilate: float = 0.35) -> Parts:
        """Returns a question. `mutilate`: the probability that some of its words are broken."""
        kind = self.rng.random()
        if kind < 0.18:
            return self.per_person() if kind < 0.15 else self.drop_down()
        chosen = tuple(f"{self.aggregate()} AS a{place}" for place in range(self.rng.choice((1, 1, 2, 3))))
        spelt = spelled.word(self.pick, self.words, self.dates)
        key = (
            self.pick(*self.words, *self.keys, self.value(1), self.listed(), self.listed(), spelt)
            if self.rng.random() < 0.5
            else ""
        )
        source = self.source()
        where = self.condition() if self.rng.random() < 0.5 else ""
        group = self.pick("1", "k", key, self.pick(*self.sets(key))) if key else ""
        having = self.pick("", "", f" HAVING a0 > {self.rng.randint(0, 9)}", "", f" HAVING {self.above(key)}")
        tail = self.pick("", "", " ORDER BY a0 DESC", " LIMIT 3", " ORDER BY 1 FETCH FIRST 2 ROWS ONLY", " ORDER BY COUNT(*)")
        made = Parts(key, chosen, source, where, group, having, tail)
        kind = self.rng.random()
        if kind < 0.2:
            further = self.pick(*OVER_GROUPS, f"{self.looked_up(key)} AS w")
            around = f"SELECT a0, a0 - {self.looked_up('')} AS w FROM (...) t WHERE {self.above('')}"
            windows = (further,) if self.rng.random() < 0.5 else ()
            made = replace(made, windows=windows, around=self.pick("", *AROUND, around))
        elif kind < 0.3:
            made = replace(made, union=self.pick(" UNION ALL ", " UNION ") + str(replace(made, having="", tail="", where="")))
            made = replace(made, where=self.condition(), around=self.pick("", *AROUND))
        return replace(made, mutilated=self.mutilated(str(made))) if self.rng.random() < mutilate else made

    def looked_up(self, key: str) -> str:
        """Returns a subquery over a public table above the groups: a value, also for each group; sometimes several rows."""
        own = f" r WHERE r.name = {key}" if key else ""
        what = self.pick("MAX(area)", "SUM(area)", "AVG(area)", "COUNT(*)", "MIN(name)", "area", "name")
        return f"(SELECT {what} FROM {self.public}{self.pick('', own)})"

    def above(self, key: str) -> str:
        """Returns a condition on noisy numbers, or on a key, that reads a public table."""
        listed = f"{key or 'a0'} {self.pick('IN', 'NOT IN')} (SELECT {self.pick('name', 'area')} FROM {self.public})"
        exists = f"EXISTS (SELECT 1 FROM {self.public} r WHERE r.name = {key or 'a0'})"
        return self.pick(f"a0 > {self.looked_up(key)}", f"a0 > {self.looked_up('')}", listed, exists)

    def drop_down(self) -> Parts:
        """Returns a list of a key's values, which is free if they are public."""
        key = self.pick(*self.words, *self.keys, "name", "coast", self.value(1))
        source = self.pick("regions", "places", self.source(), self.source())
        where = self.pick(
            "", "", f"{key} IS NOT NULL", f"{key} {self.pick('>', '=')} {self.pick(':word', ':low')}", self.condition(0)
        )
        return Parts(key, (), source, where, "1", distinct=self.rng.random() < 0.5)

    def sets(self, key: str) -> tuple[str, ...]:
        """Returns grouping sets of the key, alone and with another; and both keys, which may be made of one column."""
        other = self.pick(*self.words, *self.keys)
        return (
            f"1, {other}",
            f"ROLLUP (1, {other})",
            f"CUBE ({key}, {other})",
            f"GROUPING SETS ((1), ({other}), ())",
            "ROLLUP (k)",
        )

    def per_person(self) -> Parts:
        """Returns a question about people, with a condition on their visits."""
        inner = f"{self.pick('', 'p.age + ')}{self.scalar()}"
        inner = self.pick(inner, f"CLAMP({inner}, 0, 50)", f"CLAMP({inner}, 0, 50)")  # without bounds a count is refused
        chosen = self.pick("COUNT(*) AS a0", "AVG(age) AS a0", f"{self.pick('SUM', 'AVG', 'MAX', 'COUNT')}({inner}) AS a0")
        where = self.pick(self.listed(), self.inside(), self.inside(), f"{self.scalar()} > {self.rng.randint(0, 3)}", "TRUE")
        return Parts("", (chosen,), "people p", where)

    def question(self) -> str:
        return str(self.parts())

    def mutilated(self, text: str) -> str:
        words = text.split(" ")
        for _ in range(self.rng.randint(1, 2)):
            place = self.rng.randrange(len(words))
            words[place] = self.pick("", words[place] * 2, *BROKEN)
        return " ".join(words)


def _plain(maker: Maker, columns: tuple[str, ...]) -> str:
    """Returns an aggregate of a bounded column, which is mostly legal."""
    word = maker.pick(
        *("SUM", "SUM", "AVG", "AVG", "VAR_SAMP", "STDDEV", "MEDIAN", "MAX", "CLIPPED", "COUNT", "QUANTILE"),
        *("SKEWNESS", "KURTOSIS", "GEOMEAN", *PAIRS[:6]),
    )
    column = maker.pick(*columns)
    if word == "GEOMEAN":
        return f"GEOMEAN(CLAMP({column}, {maker.pick('0.5', '1', '0')}, 100))"
    if word in PAIRS:
        return f"{word}({column}, {maker.pick(*columns)}){maker.pick('', '', f' FILTER (WHERE {maker.pick(*FILTERS[:3])})')}"
    if word == "QUANTILE":
        return f"QUANTILE({column}, {maker.pick('0.1', '0.9')})"
    filtered = f" FILTER (WHERE {maker.pick(*FILTERS)})" if word in ("SUM", "AVG", "COUNT") and maker.rng.random() < 0.3 else ""
    return f"{word}({column}){filtered}"


class Survey(Maker):
    """Questions about the survey, most of them legal."""

    keys = (*Maker.keys, "LEAST(n, 3)", "n", "top", "CLAMP(n, 0, 5)")

    def per_person(self) -> Parts:
        return self.windowed("cost", "ward") if self.rng.random() < 0.4 else super().per_person()

    def aggregate(self) -> str:
        columns = ("income", "income", "age", "cost", "dose", "x", "CLAMP(score, 0, 9)", "income / 1000")
        return super().aggregate() if self.rng.random() < 0.5 else _plain(self, columns)


class OneTable(Maker):
    """Questions about the table t of `catalogs.small`."""

    numbers = ("age", "wage", "age", "wage", "person")
    words = ("region", "town", "region")
    other = ("active", "born", "1", "NULL", "'north'", "-3.5", "DATE '2020-02-29'", "TRUE")
    keys = ("active", "age", "BUCKET(age, 20)", "BUCKET(wage, 5)", "region")
    people = ("COUNT(*)", "COUNT(*)", "COUNT(DISTINCT person)", "COUNT(wage)", "SUM(age > 40)")
    dates = ("born", "born", "DATE '2020-02-29'")
    public = "places"

    def aggregate(self) -> str:
        columns = ("wage", "wage", "age", "CLAMP(wage, 0, 9)", "wage - age", "CLAMP(wage * age, -9, 99)")
        return super().aggregate() if self.rng.random() < 0.4 else _plain(self, columns)

    def scalar(self) -> str:
        return self.pick("(SELECT MAX(area) FROM places)", "(SELECT COUNT(*) FROM places WHERE name = region)", "(wage - age)")

    def listed(self) -> str:
        return self.pick("region IN (SELECT name FROM places)", "town NOT IN (SELECT name FROM places)")

    def own_rows(self) -> str:
        return self.within("person", ("age", "wage"), ("age", "town", "born", "wage"), "t")

    def per_person(self) -> Parts:
        if self.rng.random() < 0.4:
            return self.windowed("age", "region")
        value = self.pick("COUNT(*)", "SUM(age)", "MAX(age)", "COUNT(DISTINCT town)", "SUM(age) / COUNT(*)", "SUM(wage)")
        chosen = self.pick("COUNT(*) AS a0", "AVG(CLAMP(n, 0, 9)) AS a0", "MEDIAN(CLAMP(n, 0, 9)) AS a0", "AVG(n) AS a0")
        persons = f"(SELECT person, MAX(region) AS mine, {value} AS n FROM t GROUP BY person) s"
        source = self.pick(persons, persons, f"t JOIN {persons} ON t.person = s.person")  # keys with one value per person
        key = self.pick("", "", "CLAMP(FLOOR(n), 0, 3)", "mine", "n", "mine IN (SELECT name FROM places)")
        return Parts(key, (chosen,), source, self.pick("", "n > 1"), "1")

    def related(self) -> list[str]:
        compared = f"{self.scalar()} {self.pick('>', '<=', '=')} {self.rng.randint(0, 9)}"
        return [self.listed(), self.inside(), compared, "active"]

    def source(self) -> str:
        return self.pick(
            *["t"] * 6,
            "t JOIN places p ON t.region = p.name",
            "(SELECT * FROM t WHERE wage > 0) t",
            "(SELECT t.* FROM t, places p WHERE t.region = p.name) t",
            "(SELECT DISTINCT person, region, age, wage FROM t) t",
            "t FULL JOIN (SELECT person, COUNT(*) AS n FROM t GROUP BY person) s ON t.person = s.person",
            self.own_rows(),
            "(SELECT person, MAX(region) AS region, AVG(age) AS age, SUM(wage) AS wage FROM t GROUP BY person) s",
        )
