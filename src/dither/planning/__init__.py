"""Turns a legal question into a plan: bounds each unit, chooses the noise, states the price, and finishes answers.

    terms        epsilon or margin, delta, confidence; the smallest price for a margin
    plan         the work for the engine, the releases, the total price, the columns of the answer
    sensitivity  the grid of each number, and how far one unit can move a measure
    price        the split of the price, and geometric or Gaussian noise
    releases/    one file per kind of release: how it is measured, hidden and read
    margins      the reach of weighted sums of noise
    outputs      noise added, the finished table, its margins, and the plan in words
    outer        the SELECTs around a question, computed from its noisy table (rows, folds, windows); symbols: their margins
    consistent   counts that are whole, not negative and add up, on request
    records      the identity of a question, and stored answers as text
    program      what is charged as one
    suggest      bounds proposed privately

May import: `catalog`, `query`, `mechanisms`, `privacy`, `exact`.
Rule: sensitivity follows from the bounding step alone.
"""
