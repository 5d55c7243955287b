"""Resolves a query: kinds, bounds and the unit of every row. Refuses what is not unit-local (law 1).

`relations` walks the tree; `shapes` has the facts about a relation; `joins` has the rules for joins, IN and EXISTS;
`aggregates` checks private aggregates and keys; `per_unit` reads aggregation inside one unit.
"""
