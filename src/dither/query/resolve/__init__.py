"""Resolves a question: kinds, bounds and whose rows are whose. Refuses what is not unit-local (law 1).

`relations` walks the tree; `shapes` is what it knows of a relation; `joins` has the rules for joins and their refusals;
`aggregates` checks private aggregates and keys, `per_unit` aggregates inside one unit, `marks` IN and EXISTS.
"""
