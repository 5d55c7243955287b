"""Computes exact integers where the data lives.

    base        what an engine and a backend are; what a Work is refused for on any rows
    registry    finds the backend that reads a catalog's sources
    reference   the specification: slow, pure Python
    sql/        prints a Work as SQL, for any SQL engine
    duckdb/     the default engine

docs/decisions/0008-engines.md says how to add an engine.

May import: `catalog`, `query`. Knows no noise and no budget.
Rule: whole numbers until noise; every engine gives the reference engine's integers exactly; no row can make it raise.
"""
