# Metabase: ward, count
SELECT "public"."people"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."ward" ORDER BY "public"."people"."ward" ASC

# Metabase, nested: ward, count
SELECT "source"."ward" AS "ward", "source"."count" AS "count" FROM (SELECT "public"."people"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."ward") AS "source" WHERE "source"."count" > 10 LIMIT 1048575

# Superset: ward, count
SELECT ward AS ward, COUNT(*) AS count FROM public.people GROUP BY ward ORDER BY count DESC LIMIT 1000

# Superset, a virtual dataset: ward, SUM(n)
SELECT ward AS ward, sum(n) AS "SUM(n)" FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) AS virtual_table GROUP BY ward ORDER BY "SUM(n)" DESC LIMIT 100

# Tableau: ward, sum:Number of Records:ok
SELECT "people"."ward" AS "ward", SUM(1) AS "sum:Number of Records:ok" FROM "public"."people" "people" GROUP BY 1

# Tableau, HAVING: ward, n
SELECT "people"."ward" AS "ward", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1 HAVING (COUNT(1) > 0)

# Tableau, a cast: s
SELECT SUM(CAST("people"."age" AS DOUBLE PRECISION)) AS "s" FROM "public"."people" "people" HAVING (COUNT(1) > 0)

# Tableau, a filter's values: ward
SELECT "people"."ward" AS "ward" FROM "public"."people" "people" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

# Power BI: ward, a0
SELECT "$Table"."ward" AS "ward", COUNT(*) AS "a0" FROM "public"."people" "$Table" GROUP BY "$Table"."ward"

# Power BI, nested: ward, a0
select "_"."ward", "_"."a0" from (select "rows"."ward" as "ward", count(*) as "a0" from "public"."people" "rows" group by "ward") "_" where not "_"."a0" is null limit 1000001

# Grafana: value
SELECT COUNT(*) AS "value" FROM people WHERE age BETWEEN 10 AND 20

# dbplyr: ward, n
SELECT "ward", COUNT(*) AS "n" FROM "people" WHERE ("age" > 30.0) GROUP BY "ward"

# dbplyr, a filter: ward, a, n
SELECT "ward", AVG("age") AS "a", COUNT(*) AS "n" FROM (SELECT * FROM "people" WHERE ("age" > 30.0)) AS "q01" GROUP BY "ward"

# Metabase, a filter's values: ward
SELECT DISTINCT "public"."people"."ward" AS "ward" FROM "public"."people" ORDER BY "public"."people"."ward" ASC LIMIT 1000

# SQLAlchemy, a subquery: count_1
SELECT count(*) AS count_1 FROM (SELECT people.ward AS ward FROM people WHERE people.age > 3) AS anon_1

# Metabase, distinct: count
SELECT COUNT(DISTINCT "public"."people"."person") AS "count" FROM "public"."people"

# a case: group, n
SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS "group", COUNT(*) AS n FROM people GROUP BY 1

# Metabase, bins: age, count
SELECT FLOOR((age / 10.0)) * 10 AS "age", COUNT(*) AS "count" FROM people GROUP BY FLOOR((age / 10.0)) * 10 ORDER BY 1
