"""Audits dither itself: generated neighbours and questions through the public door and the real engine.

In the order of the data: catalogs (with survey and poisoned data), questions, harness (opened once, tables exchanged),
observe (one question end to end), compare (integers against what was priced), cases (all pairs among a few people),
shrink, replay; timing measures what run time tells.
"""
