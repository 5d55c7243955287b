"""The SQL statements of the PostgreSQL store, for a schema. postgres.py explains them."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from psycopg import sql

FORMAT = "dither ledger 2"
PAGE = 1000  # rows read at once when walking
FIELDS = "number, kind, question, body, hash, signature"

BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = b"COMMIT"
ROLLBACK = b"ROLLBACK"
# Writes one record to the log, so that the commit of this statement waits for it.
SETTLE = b"SELECT pg_logical_emit_message(true, 'dither', '')"
# On a standby, everything readable was replayed from a log on disk.
SETTLED = b"SELECT CASE WHEN pg_is_in_recovery() THEN true ELSE pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn() END"
# Not weaker than "on", whatever the role's default is; "remote_apply" is stronger and stays. The server ends a session that
# hangs while it holds the lock; a session that waits too long for the lock gives up.
SESSION = (
    b"SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    b" WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false), set_config('lock_timeout', '30s', false),"
    b" set_config('idle_in_transaction_session_timeout', '60s', false)"
)
# Two who create at once wait here for each other; otherwise the server's error would depend on timing.
ALONE = b"SELECT pg_advisory_xact_lock(hashtextextended('dither ledger ' || $1::text, 0))"
HAS_TABLE = b"SELECT to_regclass($1) IS NOT NULL"
HAS_SCHEMA = b"SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"

# The row under the empty key never changes: every transaction locks it, and it tells a ledger from other tables.
# Half of each page of `state` stays free, so that a changed text fits beside the old one and no index is updated.
TABLES = f"""
CREATE TABLE {{s}}.state (key text COLLATE "C" PRIMARY KEY, value text NOT NULL) WITH (fillfactor = 50);
INSERT INTO {{s}}.state VALUES ('', '{FORMAT}');
CREATE TABLE {{s}}.entries (number bigint PRIMARY KEY, kind text NOT NULL, question text COLLATE "C" NOT NULL,
    body text NOT NULL, hash text NOT NULL, signature text NOT NULL);
CREATE INDEX entries_question ON {{s}}.entries (question, number) WHERE question <> '';
CREATE FUNCTION {{s}}.entries_stay() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries are for ever'; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {{s}}.entries
    FOR EACH STATEMENT EXECUTE FUNCTION {{s}}.entries_stay()
"""


# The objects that must exist, as the server describes them: relations, columns, the trigger and its body.
OBJECTS = """
SELECT 'table ' || c.relname || ' ' || c.relkind::text || c.relpersistence::text || ' ' || c.relrowsecurity || c.relhassubclass
        || ' '
        || string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull, ', ' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = {l}::regnamespace AND c.relkind NOT IN ('i', 'I', 'c')
    GROUP BY c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relhassubclass
UNION ALL SELECT 'index ' || i.relname || ' ' || x.indisunique || x.indisprimary || x.indisvalid
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE i.relnamespace = {l}::regnamespace
UNION ALL SELECT 'trigger ' || c.relname || ' ' || t.tgname || ' ' || t.tgtype || ' ' || t.tgenabled::text || ' '
        || (t.tgqual IS NULL) || ' ' || md5(p.prosrc)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE c.relnamespace = {l}::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'rule ' || tablename || ' ' || rulename FROM pg_rules WHERE schemaname = {l}
ORDER BY 1
"""
EXPECTED_OBJECTS = {
    "index entries_pkey truetruetrue",
    "index entries_question falsefalsetrue",
    "index state_pkey truetruetrue",
    "table entries rp falsefalse number bigint true, kind text true, question text true, body text true, hash text true,"
    " signature text true",
    "table state rp falsefalse key text true, value text true",
    "trigger entries entries_stay 58 O true "
    + hashlib.md5(b" BEGIN RAISE EXCEPTION 'entries are for ever'; END ", usedforsecurity=False).hexdigest(),
}


_WRITTEN = re.compile(r"([ -\[\]-~]|\\\\|\\[tnr]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U00(0[0-9a-f]|10)[0-9a-f]{4})*")


class Statements:
    """The statements about one schema's tables."""

    def __init__(self, schema: str) -> None:
        def filled(text: str) -> bytes:
            return sql.SQL(text).format(s=sql.Identifier(schema), l=sql.Literal(schema)).as_bytes(None)

        self.schema = filled("CREATE SCHEMA {s}")
        self.tables = [filled(part) for part in TABLES.split(";\n")]
        # Locks the row first; then, for this transaction only, makes its commit not wait.
        self.lock = filled("SELECT set_config('synchronous_commit', 'off', true) FROM {s}.state WHERE key = '' FOR UPDATE")
        self.several = filled("SELECT key, value FROM {s}.state WHERE key = ANY($1)")
        self.get = filled("SELECT value FROM {s}.state WHERE key = $1")
        self.append = filled(f"INSERT INTO {{s}}.entries ({FIELDS}) VALUES ($1, $2, $3, $4, $5, $6)")
        self.put = filled(
            "INSERT INTO {s}.state SELECT * FROM unnest($1::text[], $2::text[])"
            " ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
        )
        self.entry = filled(f"SELECT {FIELDS} FROM {{s}}.entries WHERE number = $1")
        self.latest = filled(
            f"SELECT {FIELDS} FROM {{s}}.entries WHERE question = $1 AND question <> '' ORDER BY number DESC LIMIT 1"
        )
        self.state = filled(
            "SELECT key, value FROM {s}.state WHERE key <> '' UNION ALL SELECT '', (SELECT max(number) FROM {s}.entries)::text"
        )
        self.objects = filled(OBJECTS)
        self.rows = filled(f"SELECT {FIELDS} FROM {{s}}.entries WHERE number BETWEEN $1 AND $2 ORDER BY number LIMIT {PAGE}")


@lru_cache(maxsize=256)
def written(key: str) -> str:
    """Encodes a key as ASCII, uniquely: PostgreSQL's text has no NUL, and a database may have any encoding.

    >>> written("analyst:zoë"), read(written("analyst:zoë"))
    ('analyst:zo\\\\xeb', 'analyst:zoë')
    """
    return key.encode("unicode_escape").decode("ascii")


@lru_cache(maxsize=256)
def read(key: str) -> str:
    """Decodes a key. A key that no ledger wrote becomes one that no ledger can write."""
    if _WRITTEN.fullmatch(key):
        decoded = key.encode("ascii").decode("unicode_escape")
        if written(decoded) == key:
            return decoded
    return f"foreign key {key!a}"
