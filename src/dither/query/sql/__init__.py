"""Reads SQL: text to the nodes of a question, through a closed list of syntax.

In the order of the path: gate (text to a syntax tree), select (the outermost SELECT), tables and joins (FROM), subqueries
(SELECT below the aggregate), aggregates (above GROUP BY), expressions, names (which column a name means), words (known words).
"""
