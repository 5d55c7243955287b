"""Metric privacy: what a release reveals grows with distance, so near places stay hard to tell apart and far ones need not.

May import `exact`, `privacy`, `mechanisms`, `plots` (docs/architecture.md). Rule: a price is epsilon per unit of distance, a
`PerDistance`. It adds up with others of its unit, never with the epsilon of a catalog: the two promise different things.

    price     PerDistance            finite    MetricExponential: any distance on a finite set; MetricGrid: places on a grid
    lattice   the law of the noise   plane     PlanarLaplace: a place in the plane          maps    degrees to metres
"""
