"""Prints a Work as SELECT statements for any SQL engine, and reads their rows back as groups.

`work.statements` is the printer; a `Dialect` says what the engine spells differently. Imports no engine and no driver.
"""
