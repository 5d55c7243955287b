"""Exact integers where the data lives: the reference engine (the specification), and DuckDB.

May import: `query`. Knows no noise and no budget.
Law kept: whole numbers until noise; every engine gives the reference engine's integers exactly; no row can make it raise.
"""
