"""Reads SQL into query nodes, through a closed list of syntax. In the order of the path:

gate (text to a syntax tree), select (the outermost SELECT), tables and joins (FROM), subqueries (SELECT below the
aggregate), aggregates (above GROUP BY), expressions (functions and operators), names (which column a name means).
"""
