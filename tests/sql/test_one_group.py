"""Keys with one value per unit: each person is in one group, and the engine enforces it.

A shop: customers have one row, orders many, lines many per order. The fact is right where it is claimed: on rows that keep
what the catalog declares, nobody is in two groups. Privacy does not rest on it: a person with two customer rows is put into
one group by the engine, and without that step the neighbours differ by more than is priced.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dither as dt
from attacks.moved import channels, complaints
from attacks.paths import looser, observe, open_observed
from dither.catalog.values import Catalog
from dither.engines.reference import Bag, rows_of
from dither.query.functions.registry import evaluator
from dither.query.resolve.relations import Resolved, resolve
from dither.query.resolve.shapes import Shape
from dither.query.sql.select import parse
from dither.query.work import UNIT
from sql.test_true_rows import surely

Tables = dict[str, list[dict[str, Any]]]
SEGMENTS, STATUS, NATIONS = ("auto", "home"), ("at", "home", "P"), ((1, "at"), (2, "de"), (3, "fr"))


def shop(seed: int, customers: int = 12) -> Tables:
    """Rows as declared: customers without orders, orders of unknown customers, NULLs in every column but the keys."""
    rng = random.Random(seed)
    tables: Tables = {"customer": [], "orders": [], "lineitem": [], "profile": []}
    for c in range(customers):
        nation, segment = rng.choice([None, 1, 2, 3, 9]), rng.choice([None, *SEGMENTS])
        tables["customer"].append({"c_custkey": c, "c_segment": segment, "c_nation": nation})
        tables["profile"] += [{"p_custkey": c, "p_plan": rng.choice(["basic", "gold", None])}] if c % 4 else []
    for o in range(5 * customers):
        owner = rng.randrange(customers + 3)
        tables["orders"].append({"o_orderkey": o, "o_custkey": owner, "o_status": rng.choice([None, *STATUS])})
        for _ in range(rng.choice([0, 1, 4])):
            tables["lineitem"].append(
                {"l_orderkey": o, "l_mode": rng.choice([None, "air", "ship"]), "l_quantity": rng.randint(1, 9)}
            )
    tables["visits"] = [{"v_custkey": rng.randrange(customers), "v_month": month} for month in [1, 2, 3] * 9]
    tables["nation"] = [{"n_key": key, "n_name": name} for key, name in NATIONS]
    tables["regions"] = [{"r_nation": key, "r_name": f"{name}{part}"} for key, name in NATIONS for part in "ab"]
    return tables


KINDS: dict[str, dict[str, str]] = {
    "customer": {"c_custkey": "int", "c_segment": "text", "c_nation": "int"},
    "orders": {"o_orderkey": "int", "o_custkey": "int", "o_status": "text"},
    "lineitem": {"l_orderkey": "int", "l_mode": "text", "l_quantity": "int"},
    "profile": {"p_custkey": "int", "p_plan": "text"},
    "visits": {"v_custkey": "int", "v_month": "int"},
    "nation": {"n_key": "int", "n_name": "text"},
    "regions": {"r_nation": "int", "r_name": "text"},
}
ARROW = {"int": pa.int64(), "text": pa.string()}


def arrow(tables: Tables) -> dict[str, pa.Table]:
    return {
        name: pa.table({c: pa.array([row[c] for row in tables[name]], ARROW[kind]) for c, kind in kinds.items()})
        for name, kinds in KINDS.items()
    }


def of_customer(column: str) -> dict[str, str]:
    return {"column": column, "references": "customer.c_custkey"}


def filled(tables: Tables) -> dt.Catalog:
    """The catalog of these rows. Nothing says that profiles are unique: only max_rows = 1."""
    rows, nations = arrow(tables), dt.between(1, 9)
    customer = {"c_segment": dt.values(*SEGMENTS), "c_nation": nations}
    lines = {"l_mode": dt.values("air", "ship"), "l_quantity": dt.between(0, 10)}
    declared = {
        "customer": dt.Table(rows["customer"], unit="c_custkey", max_rows=1, key="c_custkey", columns=customer),
        "orders": dt.Table(
            rows["orders"],
            unit=of_customer("o_custkey"),
            max_rows=20,
            max_groups=2,
            key="o_orderkey",
            columns={"o_status": dt.values(*STATUS)},
        ),
        "profile": dt.Table(
            rows["profile"], unit=of_customer("p_custkey"), max_rows=1, columns={"p_plan": dt.values("basic", "gold")}
        ),
        "lineitem": dt.Table(
            rows["lineitem"],
            unit={"column": "l_orderkey", "references": "orders.o_orderkey"},
            max_rows=80,
            columns=lines,
        ),
        "visits": dt.Table(
            rows["visits"], unit=of_customer("v_custkey"), max_rows=1, max_groups=3, columns={"v_month": dt.between(1, 3)}
        ),
        "nation": dt.Table(rows["nation"], public=True, key="n_key", columns={"n_name": dt.values("at", "de", "fr")}),
        "regions": dt.Table(rows["regions"], public=True, columns={"r_name": dt.column(), "r_nation": nations}),
    }
    return dt.Catalog(declared, dt.Budget(10**6, "1/1000"))


def known() -> Catalog:
    with dt.open(filled(shop(1)), ledger=":memory:") as curator:
        return curator.catalog


CATALOG = known()
BOTH = "orders JOIN customer ON o_custkey = c_custkey"
LEFT = "orders LEFT JOIN customer ON o_custkey = c_custkey"
ALL = "lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey"
COUNTED = "(SELECT o_custkey AS who, COUNT(*) AS k, MAX(o_status) AS top FROM orders GROUP BY o_custkey) t"

# Keys and source: the most rows and groups of one person.
ONE: dict[tuple[str, str], tuple[int, int]] = {
    ("c_segment", BOTH): (20, 1),
    ("c_segment", LEFT): (20, 1),
    ("c_segment", ALL): (80, 1),
    ("c_segment, c_nation", BOTH): (20, 1),
    ("p_plan", "orders JOIN profile ON o_custkey = p_custkey"): (20, 1),
    ("p_plan", "orders LEFT JOIN profile ON o_custkey = p_custkey"): (20, 1),
    ("p_plan", "customer JOIN orders ON o_custkey = c_custkey LEFT JOIN profile ON c_custkey = p_custkey"): (20, 1),
    ("UPPER(c_segment)", BOTH): (20, 1),
    ("CASE WHEN c_nation = 1 THEN 'home' ELSE 'abroad' END", BOTH): (20, 1),
    ("n_name", f"{BOTH} JOIN nation ON c_nation = n_key"): (20, 1),
    ("n_name", f"{BOTH} LEFT JOIN nation ON c_nation = n_key"): (20, 1),
    ("n_name, c_segment", "nation JOIN customer ON n_key = c_nation JOIN orders ON o_custkey = c_custkey"): (20, 1),
    ("LEAST(k, 5)", f"orders JOIN {COUNTED} ON o_custkey = who"): (20, 1),
    ("LEAST(k, 5)", f"orders LEFT JOIN {COUNTED} ON o_custkey = who"): (20, 1),
    ("top", f"orders JOIN {COUNTED} ON o_custkey = who"): (20, 1),
    ("LEAST((SELECT COUNT(*) FROM orders p WHERE p.o_custkey = o.o_custkey), 9)", "orders o"): (20, 1),
    ("EXISTS (SELECT 1 FROM visits v WHERE v.v_custkey = o.o_custkey)", "orders o"): (20, 1),
    ("c_segment", "(SELECT c_custkey, c_segment, COUNT(*) AS k FROM " + BOTH + " GROUP BY c_custkey, c_segment) t"): (1, 1),
    ("c_segment", "(SELECT c_segment, o_status FROM " + BOTH + " WHERE o_status IS NOT NULL) t"): (20, 1),
    ("1 + 1", "orders"): (20, 1),
}
SEVERAL: dict[tuple[str, str], tuple[int, int]] = {
    ("o_status", BOTH): (20, 2),
    ("c_segment, o_status", BOTH): (20, 2),
    ("o_status", "customer LEFT JOIN orders ON o_custkey = c_custkey"): (20, 2),
    ("c_segment", "orders LEFT JOIN customer ON o_custkey = c_custkey AND o_status = c_segment"): (20, 2),
    ("r_name", f"{BOTH} JOIN regions ON c_nation = r_nation"): (20, 2),
    ("n_name", "orders JOIN nation ON LENGTH(o_status) = n_key"): (20, 2),
    ("n_name", f"{BOTH} LEFT JOIN nation ON c_nation = n_key AND o_status = n_name"): (20, 2),
    ("COALESCE(c_segment, o_status)", BOTH): (20, 2),
    ("k", "(SELECT o_custkey, o_status, COUNT(*) AS k FROM orders GROUP BY o_custkey, o_status) t"): (20, 2),
    ("v_month", "visits"): (1, 3),
    (
        "s",
        f"(SELECT o_custkey AS u, c_segment AS s FROM {BOTH} UNION ALL SELECT o_custkey AS u, o_status AS s FROM orders) t",
    ): (
        40,
        4,
    ),
    ("EXISTS (SELECT 1 FROM nation n WHERE n.n_name = o.o_status)", "orders o"): (20, 2),
}


def resolved(key: str, source: str, catalog: Catalog = CATALOG) -> Resolved:
    text = f"SELECT COUNT(*) AS n FROM {source} GROUP BY {key}"
    return resolve(parse(text, catalog), catalog, text)


@pytest.mark.parametrize(("asked", "bounds"), [*ONE.items(), *SEVERAL.items()], ids=str)
def test_which_keys_put_a_person_into_one_group(asked: tuple[str, str], bounds: tuple[int, int]) -> None:
    found = resolved(*asked)
    assert (found.max_rows, found.max_groups) == bounds


def groups_of_one(found: Resolved, tables: Tables) -> int:
    """Returns the most groups of one unit, in rows of the reference engine."""
    bags = {name: Bag(tuple(KINDS[name]), rows) for name, rows in tables.items()}
    keys = [evaluator(key.expression) for key in found.query.keys]
    groups: dict[Any, set[Any]] = {}
    for row in rows_of(found.query.source, bags).rows:
        if row[UNIT] is not None:
            groups.setdefault(row[UNIT], set()).add(tuple(key(row) for key in keys))
    return max(map(len, groups.values()))


@pytest.mark.parametrize("asked", ONE, ids=str)
def test_the_fact_holds_on_rows_as_declared(asked: tuple[str, str]) -> None:
    found = resolved(*asked)
    assert [seed for seed in range(8) if groups_of_one(found, shop(seed)) != 1] == []


def test_that_a_wrong_fact_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong version: takes every column for one value per unit. These rows tell in each of the questions."""
    monkeypatch.setattr(Shape, "per_unit", lambda shape, expression: True)
    for asked in SEVERAL:
        found = resolved(*asked)
        assert found.max_groups == 1
        assert any(groups_of_one(found, shop(seed)) > 1 for seed in range(8)), asked


def test_a_key_of_the_unit_needs_no_max_groups() -> None:
    """lineitem declares none, and a question that names or chooses one does not get more groups than there are."""
    assert resolved("c_segment", ALL).max_groups == 1
    assert resolved("l_mode", "lineitem").max_groups is None
    text = f"SELECT c_segment, COUNT(*) AS n FROM {BOTH} GROUP BY c_segment"
    with dt.open(filled(shop(1)), ledger=":memory:") as curator:
        for bound in (None, 5, "auto"):
            assert curator.quote(text, epsilon=1, max_groups=bound).plan.bounding.max_groups == 1


# --- max_rows ---------------------------------------------------------------------------------------------------

LARGE = "(SELECT SUM(l_quantity) FROM lineitem l JOIN orders p ON l.l_orderkey = p.o_orderkey WHERE {}) > 25"
ROWS = {
    f"orders o WHERE {LARGE.format('p.o_custkey = o.o_custkey')}": 20,
    f"orders o WHERE {LARGE.format('p.o_custkey = o.o_custkey AND p.o_orderkey = o.o_orderkey')}": 20,
    f"customer c WHERE {LARGE.format('p.o_custkey = c.c_custkey')}": 1,
    "orders o WHERE EXISTS (SELECT 1 FROM lineitem l WHERE l.l_orderkey = o.o_orderkey)": 20,
    "orders o WHERE o_custkey IN (SELECT p.o_custkey FROM lineitem l JOIN orders p ON l.l_orderkey = p.o_orderkey)": 20,
    "lineitem l JOIN orders o ON l.l_orderkey = o.o_orderkey": 80,
    "orders o JOIN lineitem l ON l.l_orderkey = o.o_orderkey": 80,
    "orders o LEFT JOIN lineitem l ON l.l_orderkey = o.o_orderkey": 80,
    "customer LEFT JOIN orders ON o_custkey = c_custkey": 20,
    f"customer JOIN {COUNTED} ON c_custkey = who": 1,
    f"{COUNTED} JOIN orders ON o_custkey = who": 20,
}


@pytest.mark.parametrize("source", ROWS, ids=str)
def test_a_join_has_the_rows_of_its_many_side(source: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM {source}"
    assert resolve(parse(text, CATALOG), CATALOG, text).max_rows == ROWS[source]


# --- meaning ----------------------------------------------------------------------------------------------------


def test_answers_are_those_of_plain_duckdb() -> None:
    tables = shop(5, customers=40)
    with duckdb.connect() as connection, dt.open(filled(tables), ledger=":memory:") as curator:
        for name, rows in arrow(tables).items():
            connection.register(name, rows)
        for key, source in ONE:
            keys = [key] if "(" in key or "CASE" in key else key.split(", ")
            listed, places = ", ".join(f"{each} AS k{n}" for n, each in enumerate(keys)), ", ".join(["k0", "k1"][: len(keys)])
            text = f"SELECT {listed}, COUNT(*) AS n FROM {source} GROUP BY {places}"
            expected = {row[:-1]: row[-1] for row in connection.execute(text).fetchall() if None not in row}
            answer = {row[:-1]: row[-1] for row in surely(curator, text).rows if row[-1] and None not in row}
            assert answer == expected, text
            assert expected


# --- neighbours, with rows that are not as declared ---------------------------------------------------------------


def dirty(more: bool) -> dt.Catalog:
    """A customer with two profiles, in two plans, and fifty orders; without the customer if not `more`."""
    tables = shop(3)
    if more:
        tables["customer"].append({"c_custkey": 99, "c_nation": 1, "c_segment": "auto"})
        tables["profile"] += [{"p_custkey": 99, "p_plan": plan} for plan in ("basic", "gold")]
        tables["orders"] += [{"o_orderkey": 1000 + n, "o_custkey": 99, "o_status": "P"} for n in range(50)]
    return filled(tables)


KEYS = ["p_plan", "UPPER(p_plan)", "p_plan, c_segment", "n_name, p_plan"]


def compared(key: str, loose: Any = None) -> tuple[list[Any], list[Any]]:
    text = (
        "SELECT COUNT(*) AS n, SUM(c_nation) AS s FROM orders JOIN profile ON o_custkey = p_custkey"
        f" JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nation = n_key GROUP BY {key}"
    )
    before, after = (observe(open_observed(dirty(more), loose), text, 1, "1e-6") for more in (False, True))
    assert before.plan is not None
    assert before.plan.bounding.max_groups == 1
    return complaints(before, after), channels(before, after)


@pytest.mark.parametrize("key", KEYS)
def test_a_person_in_two_groups_counts_in_one(key: str) -> None:
    assert compared(key) == ([], [])


@pytest.mark.parametrize("key", KEYS)
def test_that_an_engine_which_believes_it_is_caught(key: str) -> None:
    """Without enforcement the customer moves both plans, twice what is priced."""
    assert compared(key, looser(groups=2))[0] != []
