"""Exact numbers and exact random draws.

Imports no other package. Knows nothing of privacy.
Rule: a draw follows *exactly* the stated distribution, tails included. A float decides a comparison only if the margin is
thousands of times its error; balls decide the rest.

    numbers     reads and shows numbers as exact rationals      entropy   fair random bits: one stream per thread
    balls       real numbers with certified error bounds        replay    a recorded stream, for tests and the auditor
    laws/       base, geometric, gaussian, categorical, coins, derived: distributions with their exact probabilities
    samplers/   table, digits, buckets, choice, uniform: how each law is drawn
"""
