"""Attacks code as a black box: finds an event that tells two datasets apart, then counts it on fresh outputs.

`outputs` turns outputs into columns of numbers, `events` proposes events, `confidence` bounds what was counted, and `attack`
runs the search.
"""
