"""Privacy losses: how they compose and convert, how a budget admits them, and what they guarantee.

May import: `exact`.
Rule: prices round up. Pure losses are exact rationals; real-valued ones are charged at the upper end.

    neighbours    which pairs of tables a release must hide     sensitivity   how far a statistic moves between them
    losses        Pure, Approx, ZCDP, Curve                     conversion    formulas between kinds of loss
    composition   parallel releases, post-processing            filters       budgets for adaptive questions
    guarantees    a loss in words and numbers                   proof         checks a claimed epsilon on exact laws
    parts/        single releases on a loss curve               accountant/   certified prices of compositions
"""
