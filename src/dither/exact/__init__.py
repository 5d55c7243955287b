"""Numbers and dice: exact rationals, rigorous balls, one entropy door, and laws that are drawn from exactly.

May import: nothing of ours (except `errors`). Knows nothing of privacy.
Law kept: a draw follows *exactly* the stated distribution, tails included; no float decides anything.
"""
