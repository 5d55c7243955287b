# DBeaver
SET extra_float_digits = 3
SET application_name = 'DBeaver - Main'
SELECT current_schema(), session_user
SHOW search_path
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datname = 'postgres'
SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs}'::text[])
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.classoid = 'pg_namespace'::regclass
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON a.attrelid = c.oid LEFT JOIN pg_catalog.pg_attrdef ad ON a.attrelid = ad.adrelid WHERE c.relname = 'people'
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid), pg_catalog.pg_relation_size(c.oid) FROM pg_class c WHERE c.relnamespace = 2200
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid
SET search_path = public, public

# Npgsql and Power BI
SELECT version()
SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid ORDER BY oid, enumsortorder
SELECT t.oid, t.typname, CASE WHEN p.proname = 'array_recv' THEN 'a' ELSE t.typtype END, r.rngsubtype FROM pg_type t LEFT JOIN pg_proc p ON p.oid = t.typreceive LEFT JOIN pg_range r ON r.rngtypid = t.oid
DISCARD ALL
SELECT pg_is_in_recovery(); SHOW default_transaction_read_only
select character_set_name from INFORMATION_SCHEMA.character_sets
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog')
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'people'
select fk.TABLE_SCHEMA from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS rco join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fk on rco.CONSTRAINT_NAME = fk.CONSTRAINT_NAME where fk.TABLE_NAME = 'people'

# Metabase
SHOW timezone
SET SESSION TIMEZONE TO 'UTC'
SELECT to_char(current_timestamp, 'YYYY-MM-DD HH24:MI:SS.MS TZ')
SELECT TRUE AS "_" FROM "public"."people" WHERE 1 <> 1 LIMIT 0
WITH privileges AS (SELECT t.schemaname, t.tablename, pg_catalog.has_table_privilege(current_user, '"' || t.schemaname || '"."' || t.tablename || '"', 'SELECT') AS may FROM pg_catalog.pg_tables t WHERE t.schemaname !~ '^pg_' AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE')) SELECT p.* FROM privileges p
SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)

# Superset
select pg_catalog.version()
select current_schema()
show standard_conforming_strings
show transaction isolation level
SET search_path = "public"

# Tableau
SELECT 1 AS "COL"
SELECT * FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) "Custom SQL Query" LIMIT 0
SELECT "people"."age" AS "age" FROM "public"."people" "people" WHERE 0=1
SELECT "people"."age" AS "age" FROM "public"."people" "people" LIMIT 0

# Grafana
SELECT current_setting('server_version_num')::int/100
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE table_name = 'people'
