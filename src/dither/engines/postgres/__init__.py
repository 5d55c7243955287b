"""PostgreSQL as an engine: the data stays in the database, and only sums leave it.

    backend     takes addresses; imports the driver (psycopg) late
    address     postgresql://user@host/database?table=schema.table, without a password
    connection  one connection, its settings, and read-only snapshots
    sources     opens the tables of a catalog
    columns     stored types in their declared kinds, without a cast that can fail
    dialect     PostgreSQL's SQL; arithmetic and texts hold what it would raise on
    engine      runs Works
    report      how rows fit the catalog, for the curator only

A role that may SELECT is enough. Nothing is created in the database.
"""
