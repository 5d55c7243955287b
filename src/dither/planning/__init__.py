"""From a legal question to a plan: each unit's pull made finite, mechanisms chosen, the price known, answers finished.

May import: `catalog`, `query`, `mechanisms`, `privacy`, `exact`.
Law kept: sensitivity follows from the bounding step alone.
"""
