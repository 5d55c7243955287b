"""Running sums: a noisy total after every step of a stream, at one price for the whole stream.

May import `exact`, `privacy`, `mechanisms`, `plots`, `catalog`, `query`, `planning`, and the curator's key
(docs/architecture.md). Whole numbers until noise and after it: no float meets a value. The state of a running sum is secret;
nothing here writes it in clear.
"""
