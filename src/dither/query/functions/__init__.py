"""The functions that an expression may use: their meaning, the kinds they accept, the facts of their results.

`base` defines an entry of the registry, and the interval arithmetic; `registry` has all entries, evaluates expressions and
infers their facts. A new function is one entry in `numbers`, `logic`, `casts`, `dates` or `text`.
"""
