"""Reads questions: from SQL or Python to one tree of nodes that is known to be legal.

    nodes  the question, and the table of aggregate functions    work    what an engine is asked for
    read   any form of a question to a resolved query             normal  one form for questions that mean the same
    fluent questions built in Python                              show    nodes as text
    sql/   SQL text to nodes      functions/  the function registry      resolve/  kinds, bounds, joins, units

May import: `catalog`, `exact.numbers`. Knows no noise and no engine.
Law kept: fail closed. What is not known to be safe is refused with a reason and charges nothing.
"""
