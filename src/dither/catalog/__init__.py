"""The curator's declaration: tables, the protected unit, public facts, the budget.

    values   Table, Budget, Catalog: frozen   declare  between, values, column: how Python declares columns
    file     reads TOML                       text     writes TOML and the catalog's digest
    rules    checks a declaration alone       check    compares it with the schemas of the sources
    draft    drafts a catalog from schemas

May import: `exact.numbers`. Rule: fail closed. One run reports every problem, with its line and its fix.
"""
