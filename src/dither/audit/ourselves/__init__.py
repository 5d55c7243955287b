"""Audits dither itself: generated neighbours and questions through the public API and the real engine.

In the order of the data: `catalogs` (with the tables of `survey` and `poisoned`), `questions`, `harness` (opened once, tables
exchanged), `observe` (one question end to end), `compare` (integers against what was priced), `cases` (all pairs among a few
people), `shrink`, `replay`. Beside them, one pair at a time: `stored` (files), `streams`, `graphs`, `flight` (questions at the
same time). `timing` measures what run time reveals.
"""
