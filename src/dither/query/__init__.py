"""Reads questions, from SQL or Python, into one tree of nodes, and refuses what is not unit-local.

    nodes   query nodes; aggregate functions      work    the exact query for an engine
    read    any question to a resolved query      normal  one form for equal questions
    fluent  questions built in Python             show    nodes as text
    outer   functions across the rows of a noisy table, and the check of the SELECTs around a question
    sql/    SQL text to nodes      functions/  the function registry      resolve/  kinds, bounds, joins, units

May import: `catalog`, `exact.numbers`. Knows no noise and no engine.
Rule: fail closed. A question that is not known to be safe is refused with a reason and charges nothing.
"""
