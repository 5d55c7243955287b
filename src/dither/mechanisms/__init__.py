"""Noise and its price in one frozen object, one file each: formula, why it is private, reference, class.

May import: `exact`, `privacy`.
Law kept: nobody computes a price in one file for noise drawn in another.
"""
