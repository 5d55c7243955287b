"""Checks a ledger again, with code that shares nothing with the code that wrote it.

`report` re-walks chain, signatures and sums; `entries` reads entries a second time; `walk` applies the rules a second time.
"""
