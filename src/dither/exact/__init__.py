"""Numbers and dice: exact rationals, rigorous balls, one entropy door, and laws that are drawn from exactly.

May import: nothing of ours (except `errors`). Knows nothing of privacy.
Law kept: a draw follows *exactly* the stated distribution, tails included. Floats only ever say "clearly so" by a margin
thousands of times their error; where they cannot, balls decide.

    numbers   what a person writes, as an exact rational        entropy   fair bits: one stream per thread, fresh after a fork
    balls     reals that contain the truth, and comparisons     replay    a recorded stream, for tests and the auditor
    laws/     geometric, gaussian, categorical, finite, derived
    samplers/ table (16, 64, more bits) with its thresholds; digits for geometric noise of any scale; buckets for Gaussian
              noise of any variance; choice among weighted candidates; uniform numbers
"""
