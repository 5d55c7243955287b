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

# Metabase, a comment before it: count
/* Metabase:: userID: 1 queryType: MBQL queryHash: 0a1b */ SELECT COUNT(*) AS "count" FROM "public"."people"

# Metabase, a share: share
SELECT CAST(SUM(CASE WHEN "public"."people"."age" > 30 THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share" FROM "public"."people"

# Metabase, filters: count
SELECT COUNT(*) AS "count" FROM "public"."people" WHERE (("public"."people"."ward" <> 'north') OR ("public"."people"."ward" IS NULL)) AND (LOWER("public"."people"."ward") LIKE '%out%') AND ("public"."people"."age" >= 10) AND ("public"."people"."age" < 90)

# Metabase, a median: median
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "public"."people"."age") AS "median" FROM "public"."people"

# Power BI, filtered rows: ward, a0
select "_"."ward", "_"."a0" from (select "rows"."ward" as "ward", sum("rows"."age") as "a0" from (select "_"."ward", "_"."age" from "public"."people" "_" where "_"."ward" = 'north' and "_"."ward" is not null) "rows" group by "ward") "_" where not "_"."a0" is null limit 1000001

# Power BI, distinct values: a0
select count(distinct("rows"."ward")) + max(case when "rows"."ward" is null then 1 else 0 end) as "a0" from "public"."people" as "rows"

# Power BI, a drop-down: ward
select "rows"."ward" as "ward" from "public"."people" "rows" group by "ward" order by "rows"."ward" limit 101

# Superset, filters: ward, count
SELECT ward AS ward, COUNT(*) AS count FROM public.people WHERE ward IN ('north') AND age >= 10 GROUP BY ward ORDER BY count DESC LIMIT 50000

# Superset, rows of a chart: rowcount
SELECT COUNT(*) AS rowcount FROM (SELECT ward AS ward, COUNT(*) AS count FROM public.people GROUP BY ward LIMIT 1000) AS rowcount_qry LIMIT 50000

# Tableau, a calculated field: avg:age:ok, c
SELECT AVG(CAST("people"."age" AS DOUBLE PRECISION)) AS "avg:age:ok", (CASE WHEN ("people"."age" < 50) THEN 'a' ELSE 'b' END) AS "c" FROM "public"."people" "people" WHERE (("people"."ward" = 'north') AND ("people"."age" >= 10)) GROUP BY 2

# Tableau, distinct: ctd:ward:ok
SELECT COUNT(DISTINCT "people"."ward") AS "ctd:ward:ok" FROM "public"."people" "people" HAVING (COUNT(1) > 0)

# Tableau, the range of a filter: min:age, max:age
SELECT MIN("people"."age") AS "min:age", MAX("people"."age") AS "max:age" FROM "public"."people" "people" HAVING (COUNT(1) > 0)

# Tableau, bins: bin, n
SELECT FLOOR("people"."age" / 10) AS "bin", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1

# Grafana, a panel: ward, x
SELECT ward, AVG(age) AS "x" FROM people WHERE ward = 'north' GROUP BY ward LIMIT 50
