"""Words for what a plan is about."""

from __future__ import annotations

from fractions import Fraction


def percent(p: Fraction) -> str:
    """0.5 as "50 %"; what is less than everything is never rounded to 100 %.

    >>> percent(Fraction(19, 20)), percent(1 - Fraction(1, 10**18))
    ('95 %', '99.9999 %')
    """
    text = f"{float(100 * p):g}"
    return f"{text if text != '100' or p >= 1 else '99.9999'} %"
