"""Where entries are kept: the interface every store has, and SQLite and PostgreSQL behind it."""
