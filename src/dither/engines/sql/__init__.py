"""Prints a Work as SELECT statements for any SQL engine, and reads their rows back as groups.

    dialect    printed expressions, and what engines spell differently
    functions  every function of the registry in SQL
    relations  relations as SELECT statements, and the bounding of units
    work       a whole Work as statements, and their rows as groups

Imports no engine and no driver.
"""
