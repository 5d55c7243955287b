"""Stores for entries and state: `base` (the interface), `sqlite`, and `postgres`.

`postgres_sql` holds the statements of the PostgreSQL store, `postgres_wire` its address, connection and errors.
"""
