"""Golden questions: joins, names, DISTINCT, UNION and window functions within one person."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

import dither as dt

SEGMENTS, STATUSES = ("home", "office"), ("open", "paid", "sent")
LATEST = "ROW_NUMBER() OVER (PARTITION BY customer ORDER BY day DESC, number)"
JOINED = "FROM customers c, orders o, lines l WHERE c.customer = o.customer AND l.number = o.number"


def tables(without: int | None = None) -> dict[str, Any]:
    """The tables; `without` leaves one customer out. Customer 0 has many orders and calls, others none of either."""
    customers = [
        {"customer": i, "segment": SEGMENTS[i * i % 3 % 2], "age": None if i % 11 == 0 else 18 + i * 7 % 60, "nation": i % 3}
        for i in range(90)
    ]
    orders = [
        {
            "number": i,
            "customer": i * 7 % 60 if i % 5 else 0,
            "day": datetime.date(2025, 1 + (i * i + i // 3) % 4, 1 + i % 7),
            "status": STATUSES[i % 3],
            "total": None if i % 17 == 0 else float(i * 13 % 400 - 50),
        }
        for i in range(200)
    ]
    lines = [{"number": i * 3 % 200, "part": i % 4, "quantity": i * i % 9 + 1} for i in range(500)]
    calls = [
        {"customer": 30 + i * 7 % 60 if i % 4 else 0, "minutes": i % 23, "day": datetime.date(2025, 2, 1 + i % 9)}
        for i in range(120)
    ]
    owner = {row["number"]: row["customer"] for row in orders}
    kept = {
        "customers": [row for row in customers if row["customer"] != without],
        "orders": [row for row in orders if row["customer"] != without],
        "lines": [row for row in lines if owner[row["number"]] != without],
        "calls": [row for row in calls if row["customer"] != without],
    }
    nations = {"nation": [0, 1, 2], "name": ["austria", "brazil", "chile"], "rich": [True, False, True]}
    parts = {"part": [0, 1, 2, 3], "brand": ["x", "y", "x", "z"], "weight": [1, 20, 30, 4]}
    return {
        **{name: pa.Table.from_pylist(rows) for name, rows in kept.items()},
        "nations": pa.table(nations),
        "parts": pa.table(parts),
    }


def catalog(data: dict[str, Any]) -> dt.Catalog:
    """A catalog with generous bounds."""
    customers = {"segment": dt.values(*SEGMENTS), "age": dt.between(0, 120), "nation": dt.between(0, 2)}
    day = dt.between(datetime.date(2025, 1, 1), datetime.date(2025, 4, 30))
    orders = {"day": day, "status": dt.values(*STATUSES), "total": dt.between(-100, 500, step="0.5"), "number": dt.column()}
    lines = {"part": dt.between(0, 3), "quantity": dt.between(0, 20)}
    own = {"column": "customer", "references": "customers.customer"}
    many = {"max_rows": 400, "max_groups": 12}
    of_order = {"column": "number", "references": "orders.number"}
    held = {
        "customers": dt.Table(data["customers"], unit="customer", max_rows=1, key="customer", columns=customers),
        "orders": dt.Table(data["orders"], unit=own, key="number", columns=orders, **many),
        "lines": dt.Table(data["lines"], unit=of_order, columns=lines, **many),
        "calls": dt.Table(data["calls"], unit=own, columns={"minutes": dt.between(0, 60), "day": day}, **many),
        "nations": dt.Table(data["nations"], public=True, key="nation"),
        "parts": dt.Table(data["parts"], public=True, key="part"),
    }
    return dt.Catalog(held, dt.Budget(epsilon=10**12, left_out=False))


QUESTIONS: list[tuple[str, str]] = [
    ("SELECT COUNT(*) AS n FROM orders o, customers c WHERE o.customer = c.customer AND c.age > 30", "comma join"),
    (f"SELECT c.segment, SUM(l.quantity) AS q {JOINED} GROUP BY c.segment", "comma join of three tables"),
    (
        "SELECT COUNT(*) AS n FROM lines l, customers c, orders o WHERE o.number = l.number AND c.customer = o.customer",
        "any order",
    ),
    (
        "SELECT n.name, COUNT(*) AS k FROM nations n, parts p, lines l, orders o, customers c WHERE n.nation = c.nation"
        " AND p.part = l.part AND l.number = o.number AND o.customer = c.customer AND p.brand = 'x' GROUP BY n.name",
        "public tables first",
    ),
    ("SELECT COUNT(*) AS n FROM orders o CROSS JOIN customers c WHERE o.customer = c.customer", "CROSS JOIN with an equality"),
    (
        "SELECT SUM(l.quantity) AS q FROM lines l, parts p WHERE (p.part = l.part AND p.brand = 'x' AND l.quantity < 5)"
        " OR (l.part = p.part AND p.brand = 'y' AND l.quantity > 3)",
        "an equality in every branch of OR",
    ),
    (
        "SELECT COUNT(*) AS n FROM calls a, calls b, customers c WHERE a.day = b.day AND a.customer = c.customer"
        " AND b.customer = c.customer AND a.minutes < b.minutes",
        "comma self join, the unit equated through a third table",
    ),
    (
        "SELECT COUNT(*) AS n FROM customers c WHERE EXISTS (SELECT 1 FROM orders o, lines l WHERE l.number = o.number"
        " AND o.customer = c.customer AND l.quantity > 8)",
        "comma join in EXISTS",
    ),
    (
        "SELECT COUNT(*) AS n FROM nations n, customers c LEFT JOIN calls k ON k.customer = c.customer"
        " WHERE n.nation = c.nation AND n.rich AND k.minutes IS NULL",
        "comma beside LEFT JOIN",
    ),
    ("SELECT COUNT(*) AS n FROM main.orders WHERE main.orders.total > 100", "a schema"),
    ('SELECT COUNT(*) AS n FROM "orders" AS "my orders" WHERE "my orders"."total" > 100', "quoted names"),
    ("SELECT COUNT(*) AS n FROM orders; -- all of them", "a semicolon and a comment"),
    ("SELECT COUNT(DISTINCT customer) AS n FROM orders FULL JOIN calls USING (customer)", "FULL JOIN USING"),
    ("SELECT COUNT(*) AS n FROM customers c FULL JOIN calls k ON k.customer = c.customer", "FULL JOIN counts all rows"),
    (
        "SELECT COUNT(*) AS n FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) o FULL JOIN"
        " (SELECT customer, SUM(minutes) AS m FROM calls GROUP BY customer) k ON o.customer = k.customer"
        " WHERE o.k IS NULL OR k.m IS NULL",
        "FULL JOIN finds who is on one side only",
    ),
    (
        "SELECT SUM(CLAMP(COALESCE(k, 0) + COALESCE(m, 0), 0, 900)) AS n FROM"
        " (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) o FULL JOIN"
        " (SELECT customer, SUM(minutes) AS m FROM calls GROUP BY customer) c USING (customer)",
        "FULL JOIN of two aggregates per person",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT COALESCE(o.customer, k.customer) AS who, COUNT(*) AS rows_ FROM orders o"
        " FULL JOIN calls k ON o.customer = k.customer AND o.day = k.day GROUP BY COALESCE(o.customer,"
        " k.customer)) t WHERE rows_ > 5",
        "FULL JOIN by unit and day, grouped by COALESCE of both units",
    ),
    ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer, status FROM orders) t", "DISTINCT with the unit"),
    ("SELECT status, COUNT(*) AS n FROM (SELECT DISTINCT customer, status FROM orders) t GROUP BY status", "people per value"),
    ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer, total FROM orders) t", "DISTINCT of a number with a fraction"),
    (
        "SELECT COUNT(*) AS n FROM (SELECT customer, day FROM orders UNION SELECT customer, day FROM calls) t",
        "UNION with the unit",
    ),
    (
        "SELECT MONTH(day) AS m, COUNT(*) AS n FROM (SELECT customer, day FROM orders UNION ALL SELECT"
        " customer, day FROM calls) t"
        " GROUP BY MONTH(day)",
        "UNION ALL keeps public values",
    ),
    (f"SELECT status, COUNT(*) AS n FROM (SELECT *, {LATEST} AS r FROM orders) t WHERE r = 1 GROUP BY status", "latest row"),
    (f"SELECT status, COUNT(*) AS n FROM (SELECT * FROM orders QUALIFY {LATEST} = 1) t GROUP BY status", "QUALIFY"),
    (
        f"SELECT SUM(total) AS s FROM (SELECT customer, total, {LATEST} AS r FROM orders QUALIFY r <= 3) t",
        "QUALIFY by an alias",
    ),
    (
        "SELECT AVG(CLAMP(gap, 0, 200)) AS gap FROM (SELECT DAYS_BETWEEN(LAG(day) OVER (PARTITION BY"
        " customer ORDER BY day), day)"
        " AS gap FROM orders) t WHERE gap IS NOT NULL",
        "LAG: days between orders",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT total, LEAD(total, 2, -100) OVER (PARTITION BY customer ORDER BY day, number) AS x"
        " FROM orders) t WHERE x < total",
        "LEAD with a distance and a default",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT customer, SUM(total) OVER (PARTITION BY customer ORDER BY day) AS"
        " s FROM orders) t WHERE s > 500",
        "running sum, peers together",
    ),
    (
        "SELECT SUM(CLAMP(s, -500, 1500)) AS s FROM (SELECT SUM(total) OVER (PARTITION BY customer ORDER BY day, number"
        " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders) t",
        "sum over the last three rows",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT AVG(total) OVER (PARTITION BY customer, status) AS a, total FROM"
        " orders) t WHERE total > a",
        "mean of a part of the person",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT COUNT(*) OVER (PARTITION BY customer ORDER BY day) AS k,"
        " COUNT(total) FILTER (WHERE status = 'paid') OVER (PARTITION BY customer) AS p FROM orders) t WHERE k > 2 AND p > 1",
        "running count, FILTER",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER w AS r, DENSE_RANK() OVER w AS d FROM orders"
        " WINDOW w AS (PARTITION BY customer ORDER BY total DESC)) t WHERE r > d",
        "RANK, DENSE_RANK, WINDOW",
    ),
    (
        "SELECT q, COUNT(*) AS n FROM (SELECT NTILE(3) OVER (PARTITION BY customer ORDER BY total NULLS FIRST, number) AS q"
        " FROM orders) t GROUP BY q",
        "NTILE has public values",
    ),
    (
        "SELECT s, COUNT(*) AS n FROM (SELECT FIRST_VALUE(status) OVER (PARTITION BY customer ORDER BY day,"
        " number) AS s FROM orders) t"
        " GROUP BY s",
        "FIRST_VALUE",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT customer, LAST_VALUE(total) OVER (PARTITION BY customer ORDER BY day, number"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x, total FROM orders) t WHERE x = total",
        "LAST_VALUE",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT MIN(total) OVER (PARTITION BY customer ORDER BY day, number ROWS"
        " BETWEEN 1 FOLLOWING AND"
        " UNBOUNDED FOLLOWING) AS x, total FROM orders) t WHERE x > total",
        "MIN over what follows",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT customer, MONTH(day) AS m, SUM(total) - LAG(SUM(total)) OVER (PARTITION BY customer"
        " ORDER BY MONTH(day)) AS more FROM orders GROUP BY customer, MONTH(day)) t WHERE more > 0",
        "window over an aggregate per person",
    ),
    (
        "WITH ranked AS (SELECT customer, total, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY total"
        " DESC, number) AS r FROM orders)"
        " SELECT c.segment, SUM(r.total) AS best FROM ranked r, customers c WHERE r.customer = c.customer"
        " AND r.r <= 2 GROUP BY c.segment",
        "the two best rows of each person, in a CTE",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY number ORDER BY quantity DESC,"
        " part) AS r FROM lines) t"
        " WHERE r = 1",
        "a partition that belongs to one person",
    ),
    (
        "SELECT COUNT(*) AS n FROM orders WHERE number IN (SELECT number FROM lines GROUP BY number HAVING SUM(quantity) > 15)",
        "GROUP BY what belongs to one person",
    ),
    (
        "SELECT COUNT(*) AS n FROM customers c, (SELECT nation, RANK() OVER (ORDER BY name DESC) AS r FROM nations) n"
        " WHERE n.nation = c.nation AND n.r = 1",
        "a window over a public table",
    ),
]
