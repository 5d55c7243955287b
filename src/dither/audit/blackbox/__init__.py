"""Attacks code as a black box: finds an event that tells two datasets apart, then counts it on fresh outputs.

`outputs` as columns of numbers, candidate `events`, `confidence` bounds for what was counted, and the `attack` itself.
"""
