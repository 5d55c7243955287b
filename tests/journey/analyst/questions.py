"""The questions, written down before any was asked. CLAMP is dither's word; test_analyst.py defines it for DuckDB."""

from __future__ import annotations

SHOP = (
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(*) AS n FROM customers",
    "SELECT COUNT(DISTINCT customer) AS buyers FROM orders",
    "SELECT DATE_TRUNC('month', placed) AS month, COUNT(DISTINCT customer) AS buyers FROM orders GROUP BY month",
    "SELECT DATE_TRUNC('month', placed) AS month, COUNT(*) AS n FROM orders GROUP BY month",
    "SELECT YEAR(placed) AS y, COUNT(*) AS n, SUM(amount) AS revenue FROM orders GROUP BY y",
    "SELECT status, COUNT(*) AS n FROM orders GROUP BY status",
    "SELECT AVG(amount) AS basket FROM orders",
    "SELECT AVG(CLAMP(b, 0, 500)) AS basket "
    "FROM (SELECT customer, SUM(amount) / COUNT(*) AS b FROM orders GROUP BY customer) t",
    "SELECT AVG(CLAMP(k, 0, 400)) AS k FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) t",
    "SELECT COUNT(*) AS n FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) t WHERE k >= 10",
    "SELECT CLAMP(k, 0, 20) AS k, COUNT(*) AS n "
    "FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) t GROUP BY 1",
    "SELECT c.segment, COUNT(*) AS n FROM orders o JOIN customers c USING (customer) GROUP BY c.segment",
    "SELECT c.country, SUM(o.amount) AS revenue FROM orders o JOIN customers c USING (customer) GROUP BY c.country",
    "SELECT country, COUNT(*) AS n FROM customers GROUP BY country",
    "SELECT 100.0 * COUNT(*) FILTER (WHERE status = 'cancelled') / COUNT(*) AS share FROM orders",
    "SELECT HOUR(placed) AS h, COUNT(*) AS n FROM orders GROUP BY h",
    "SELECT product, SUM(quantity) AS pieces FROM lines GROUP BY product",
    "SELECT AVG(quantity) AS q FROM lines WHERE product = 'chair'",
    "SELECT COUNT(*) AS n FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.customer)",
    "SELECT COUNT(*) AS n FROM orders WHERE amount > 100",
    "SELECT MEDIAN(amount) AS m FROM orders",
    "SELECT segment, AVG(CLAMP(spent, 0, 2000)) AS spent FROM (SELECT c.customer, c.segment, SUM(o.amount) AS spent "
    "FROM customers c JOIN orders o USING (customer) GROUP BY c.customer, c.segment) t GROUP BY segment",
    "SELECT status, AVG(amount) AS a FROM orders WHERE placed >= DATE '2025-01-01' GROUP BY status",
)

SURVEY = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region",
    "SELECT AVG(income) AS income FROM people",
    "SELECT MEDIAN(income) AS income FROM people",
    "SELECT sex, AVG(income) AS income FROM people WHERE sex <> 'x' GROUP BY sex",
    "SELECT COUNT(*) FILTER (WHERE sex = 'm') AS men, COUNT(*) FILTER (WHERE sex = 'f') AS women FROM people",
    "SELECT COUNT(*) - COUNT(income) AS missing FROM people",
    "SELECT 100.0 * SUM(CASE WHEN employed THEN 1 ELSE 0 END) / COUNT(*) AS rate FROM people WHERE age BETWEEN 20 AND 64",
    "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade",
    "SELECT FLOOR(YEAR(born) / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade",
    "SELECT household, COUNT(*) AS n FROM people GROUP BY household",
    "SELECT STDDEV(age) AS s FROM people",
    "SELECT QUANTILE_CONT(age, 0.9) AS p90 FROM people",
    "SELECT AVG(satisfied) AS s FROM people WHERE region = 'west'",
    "SELECT region, sex, COUNT(*) AS n FROM people WHERE sex IN ('f', 'm') GROUP BY region, sex",
    "SELECT SUM(household) AS persons FROM people",
    "SELECT region, 100.0 * COUNT(*) FILTER (WHERE age >= 65) / COUNT(*) AS old FROM people GROUP BY region",
    "SELECT AVG(CASE WHEN income > 50000 THEN 1 ELSE 0 END) AS rich FROM people WHERE income IS NOT NULL",
)

EVENTS = (
    "SELECT COUNT(*) AS n FROM events",
    'SELECT COUNT(DISTINCT "user") AS users FROM events',
    "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind",
    'SELECT kind, COUNT(DISTINCT "user") AS users FROM events GROUP BY kind',
    "SELECT DATE_TRUNC('week', happened) AS week, COUNT(DISTINCT \"user\") AS users FROM events GROUP BY week",
    'SELECT MONTH(happened) AS m, COUNT(DISTINCT "user") AS users FROM events GROUP BY m',
    "SELECT AVG(milliseconds) AS ms FROM events WHERE kind = 'search'",
    "SELECT MEDIAN(milliseconds) AS ms FROM events",
    "SELECT 100.0 * COUNT(*) FILTER (WHERE kind = 'error') / COUNT(*) AS errors FROM events",
    "SELECT mobile, COUNT(*) AS n FROM events GROUP BY mobile",
    'SELECT COUNT(*) AS n FROM (SELECT "user", COUNT(*) AS k FROM events WHERE kind = \'buy\' GROUP BY "user") t WHERE k > 1',
    'SELECT AVG(CLAMP(k, 0, 2000)) AS k FROM (SELECT "user", COUNT(*) AS k FROM events GROUP BY "user") t',
    "SELECT AVG(CLAMP(share, 0, 1)) AS share "
    'FROM (SELECT "user", 1.0 * SUM(CASE WHEN mobile THEN 1 ELSE 0 END) / COUNT(*) AS share '
    'FROM events GROUP BY "user") t',
)

OFFICE = (
    "SELECT COUNT(*) AS n FROM mandates",
    'SELECT COUNT(DISTINCT "Personen-ID") AS n FROM mandates',
    'SELECT "Partei / Klub" AS p, COUNT(*) AS n FROM mandates GROUP BY p',
    'SELECT COUNT("Ausgeschieden") AS n FROM mandates',
    'SELECT AVG("Bezug") AS b FROM mandates',
    'SELECT "Partei / Klub" AS p, AVG("Bezug") AS b FROM mandates GROUP BY p',
    'SELECT FLOOR(YEAR("Geburtsdatum") / 10) * 10 AS d, COUNT(*) AS n FROM mandates GROUP BY d',
    'SELECT SUM("Anzahl Ämter") AS n FROM mandates',
    'SELECT AVG("Anzahl Ämter") AS n FROM mandates WHERE "Partei / Klub" = \'Grüne\'',
    "SELECT COUNT(*) AS n FROM mandates WHERE \"Geburtsdatum\" < DATE '1950-01-01'",
)
