"""What a release gives away: neighbours, losses, composition, filters, and guarantees in words.

May import: `exact`.
Law kept: prices round up. Pure losses are exact rationals; real-valued ones are charged at the upper end.
"""
