"""Exact integers where the data lives: the reference engine (the specification), a printer for SQL engines, and DuckDB.

`registry` finds the engine that reads a catalog's sources; docs/decisions/0008-engines.md says how to add one.

May import: `catalog`, `query`. Knows no noise and no budget.
Law kept: whole numbers until noise; every engine gives the reference engine's integers exactly; no row can make it raise.
"""
