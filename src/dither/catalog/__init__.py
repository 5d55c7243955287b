"""The curator's declaration: tables, the protected unit, public facts, the budget.

    values   Table, Budget, Catalog           declare  the same for columns, as Python users write them
    file     TOML in, every problem with its line        text  TOML out, and the digest of a declaration
    rules    what must hold of a declaration  check    a declaration against the sources' schemas
    draft    a first catalog from schemas alone

May import: `exact.numbers`. Law kept: fail closed. Every problem is reported at once, with its line and its fix.
"""
