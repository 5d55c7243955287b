"""Replays: a pipeline on two neighbouring datasets with the same recorded noise.

`replay` runs it on generated `pairs`; `tape` records noise, `adapters` hand the tape to other libraries' code; `observe` is
what an analyst could see of a run; `judge` compares two runs, `shifts` says how far the noise would have to move, and its cost.
"""
