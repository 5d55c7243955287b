"""Made-up questions: mostly meant well, some mutilated, about tables full of poisoned values."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa

import dither as dt

NUMBERS = ("age", "income", "score", "p.age", "cost", "dose", "x", "Mixed")
WORDS = ("region", "city", "ward", "drug", "p.region")
OTHER = ("active", "born", "day", "person_id", "nothing", "1", "NULL", "'north'", "-3.5", "DATE '2020-02-29'", "TRUE")
ONE = (
    "ABS",
    "FLOOR",
    "CEIL",
    "ROUND",
    "SQRT",
    "LN",
    "EXP",
    "SIGN",
    "LOWER",
    "UPPER",
    "TRIM",
    "LENGTH",
    "YEAR",
    "RANDOM",
    "READ_CSV",
)
AGGREGATES = ("COUNT", "SUM", "AVG", "MEDIAN", "STDDEV", "VAR_POP", "VAR_SAMP", "MIN", "MAX", "CLIPPED")
TABLES = (
    "people p",
    "people",
    "visits",
    "records",
    "visits v JOIN people p ON v.person_id = p.person_id",
    "visits v LEFT JOIN people p USING (person_id)",
    "prescriptions d JOIN visits v ON d.visit_id = v.visit_id",
    "people p JOIN regions r ON p.region = r.name",
    "(SELECT * FROM people WHERE age > 30) p",
    "(SELECT person_id, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY person_id) t",
    "regions",
    "secrets",
)
OWN = ("v.person_id = p.person_id", "v.person_id = p.person_id AND v.cost > 10", "v.ward = p.region", "cost > 10", "active")
INFINITE, NAN = float("inf"), float("nan")


class Maker:
    """Draws questions from one seeded generator, so that a failure can be had again."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.dice.choice(choices)

    def value(self, depth: int = 2) -> str:
        """An expression, mostly a number."""
        kind = self.dice.random()
        if depth == 0 or kind < 0.4:
            return self.pick(*NUMBERS, *NUMBERS, *WORDS, *OTHER)
        inner, other = self.value(depth - 1), self.value(depth - 1)
        if kind < 0.6:
            return f"({inner} {self.pick('+', '-', '*', '/', '%', '||')} {other})"
        if kind < 0.75:
            return f"{self.pick(*ONE)}({inner})"
        if kind < 0.85:
            return f"CLAMP({inner}, {self.dice.randint(-9, 9)}, {self.dice.randint(5, 999)})"
        if kind < 0.88:
            return self.scalar()
        if kind < 0.94:
            return f"CASE WHEN {self.condition(depth - 1)} THEN {inner} ELSE {other} END"
        return self.pick(
            f"COALESCE({inner}, {other})", f"NULLIF({inner}, 0)", f"CAST({inner} AS INTEGER)", f"BUCKET({inner}, 10)"
        )

    def scalar(self) -> str:
        """A subquery that stands for a value: of the person, of a public table, or of what it must not look at."""
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
        """IN and NOT IN with a subquery."""
        left, word = self.pick("region", "age", "ward", "p.region", "person_id", "x"), self.pick("IN", "NOT IN", "NOT IN")
        own = self.pick(OWN[0], OWN[0], *OWN)
        return self.pick(
            f"{left} {word} (SELECT {self.pick('name', 'area')} FROM regions)",
            f"{left} {word} (SELECT {self.pick('v.ward', 'v.cost', 'v.person_id')} FROM visits v WHERE {own})",
            f"{left} {word} (SELECT name FROM regions r WHERE r.name = p.region)",
            f"person_id {word} (SELECT person_id FROM visits)",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM visits v WHERE {own})",
        )

    def condition(self, depth: int = 1) -> str:
        left = self.value(depth)
        plain = self.pick(
            f"{left} {self.pick('<', '<=', '=', '<>', '>', '>=')} {self.value(depth)}",
            f"{left} IS NOT NULL",
            f"{left} BETWEEN 1 AND 50",
            f"{left} IN (1, 2, 3)",
            f"{self.pick(*WORDS)} LIKE '{self.pick('n%', '%o_th', 'ab')}'",
            "person_id IN (SELECT person_id FROM visits WHERE cost > 10)",
            self.listed(),
            f"{self.scalar()} {self.pick('>', '<=', '=')} {self.dice.randint(0, 9)}",
            "active",
        )
        if depth and self.dice.random() < 0.3:
            return f"({plain} {self.pick('AND', 'OR')} NOT {self.condition(depth - 1)})"
        return plain

    def aggregate(self) -> str:
        kind = self.dice.random()
        if kind < 0.35:
            return self.pick("COUNT(*)", "COUNT(*)", "COUNT(DISTINCT person_id)", f"COUNT(DISTINCT {self.pick(*WORDS)})")
        if kind < 0.45:
            return f"QUANTILE({self.pick(*NUMBERS)}, {self.pick('0.5', '0.9', '1.5', 'age')})"
        return f"{self.pick(*AGGREGATES)}({self.pick(*NUMBERS) if kind < 0.8 else self.value(1)})"

    def question(self) -> str:
        if self.dice.random() < 0.1:
            return self.per_person()
        chosen = [f"{self.aggregate()} AS a{place}" for place in range(self.dice.choice((1, 1, 2, 3)))]
        key = self.pick(*WORDS, "active", "age", "BUCKET(age, 20)", self.value(1)) if self.dice.random() < 0.5 else ""
        text = f"SELECT {', '.join(([key + ' AS k'] if key else []) + chosen)} FROM {self.pick(*TABLES[:4], *TABLES)}"
        if self.dice.random() < 0.5:
            text += f" WHERE {self.condition()}"
        if key:
            text += f" GROUP BY {self.pick('1', 'k', key)}"
        text += self.pick("", "", f" HAVING a0 > {self.dice.randint(0, 9)}", "")
        text += self.pick("", "", " ORDER BY a0 DESC", " LIMIT 3", " ORDER BY 1 LIMIT 2")
        return self.mutilated(text) if self.dice.random() < 0.35 else text

    def per_person(self) -> str:
        """A question about people whose own visits decide."""
        value = f"{self.pick('SUM', 'AVG', 'MAX', 'COUNT')}({self.pick('', 'p.age + ')}{self.scalar()}) AS a0"
        chosen = self.pick("COUNT(*) AS a0", "AVG(age) AS a0", value)
        kept = self.pick(self.listed(), self.listed(), f"{self.scalar()} > {self.dice.randint(0, 3)}", "TRUE")
        return f"SELECT {chosen} FROM people p WHERE {kept}"

    def mutilated(self, text: str) -> str:
        words = text.split(" ")
        for _ in range(self.dice.randint(1, 2)):
            place = self.dice.randrange(len(words))
            words[place] = self.pick(
                "", words[place] * 2, "DISTINCT", "LIMIT 1", "OVER ()", ";", "'", "--", "(", ")", "\x00", "é", "UNION ALL", "*"
            )
        return " ".join(words)


def poisoned(people: int = 60) -> dt.Catalog:
    """Tables in which every kind of value that has broken a system is there."""
    ages = [None, 0, 120, 2**62, -(2**62), 37]
    incomes = [None, NAN, INFINITE, -INFINITE, -0.0, 1e308, 5e-324, 40000.5]
    cities = [None, "", "rare", "north", "NORTH", "nor\u0301th", "a'b", "x" * 500, "\u0000z"]
    pick = random.Random(7).choice
    rows = range(people)
    table = {
        "person_id": [None if i % 20 == 19 else i for i in rows],
        "age": pa.array([pick(ages) for _ in rows], pa.int64()),
        "income": pa.array([pick(incomes) for _ in rows], pa.float64()),
        "score": pa.array([pick(incomes) for _ in rows], pa.float64()),
        "Mixed": pa.array([pick([0, 9, None]) for _ in rows], pa.int64()),
        "region": [pick(["north", "south", "east", None, "elsewhere"]) for _ in rows],
        "city": [pick(cities) for _ in rows],
        "active": [pick([True, False, None]) for _ in rows],
        "born": pa.array([pick([None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]) for _ in rows], pa.date32()),
    }
    owner = [pick([*range(people), None]) for _ in range(5 * people)]
    visits = {
        "visit_id": list(range(5 * people)),
        "person_id": pa.array(owner, pa.int64()),
        "cost": pa.array([pick([None, 0, 1000, -5, 2**40]) for _ in owner], pa.int64()),
        "ward": [pick(["a", "b", "c", None]) for _ in owner],
        "day": pa.array([pick([None, datetime.date(2020, 2, 29)]) for _ in owner], pa.date32()),
    }
    drugs = {
        "visit_id": [pick(range(5 * people)) for _ in owner],
        "drug": [pick(cities) for _ in owner],
        "dose": [pick([0, 100, 7]) for _ in owner],
    }
    records = {
        "x": pa.array([pick([0, 10, None, -(2**62)]) for _ in owner], pa.int64()),
        "region": [pick(cities) for _ in owner],
    }
    regions = {"name": ["north", "south", "east", "west"], "area": [1, 2, 3, 4]}
    number, words = dt.between(0, 120), dt.values("north", "south", "east", "west")
    return dt.Catalog(
        tables={
            "people": dt.Table(
                pa.table(table),
                unit="person_id",
                max_rows=2,
                max_groups=2,
                columns={
                    "age": number,
                    "income": dt.between(0, 250000, step=1),
                    "score": dt.column(),
                    "Mixed": dt.between(0, 9),
                    "region": words,
                    "city": dt.column(),
                    "active": dt.values(True, False),
                    "born": dt.column(),
                },
            ),
            "visits": dt.Table(
                pa.table(visits),
                unit={"column": "person_id", "references": "people.person_id"},
                max_rows=3,
                max_groups=2,
                columns={"visit_id": dt.column(), "cost": dt.between(0, 1000), "ward": dt.values("a", "b"), "day": dt.column()},
            ),
            "prescriptions": dt.Table(
                pa.table(drugs),
                unit={"column": "visit_id", "references": "visits.visit_id"},
                max_rows=4,
                max_groups=2,
                columns={"drug": dt.column(), "dose": dt.between(0, 100), "visit_id": dt.column()},
            ),
            "records": dt.Table(pa.table(records), unit="row", columns={"x": dt.between(0, 10), "region": words}),
            "regions": dt.Table(pa.table(regions), public=True, key="name"),
        },
        budget=dt.Budget(epsilon=100000, delta="1/2"),
    )
