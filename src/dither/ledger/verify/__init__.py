"""Checks a ledger with a second implementation, independent of the code that wrote it.

`report` checks the chain, the signatures and the sums; `entries` decodes entries; `walk` applies the rules.
"""
