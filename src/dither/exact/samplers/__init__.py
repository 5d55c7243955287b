"""Draws from the laws exactly: table (lookup), digits (geometric), buckets (Gaussian), choice (weighted), uniform.

`quartic` has heavy tails: a law that only its sampler knows.
"""
