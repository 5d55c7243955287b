"""Replays a pipeline on two neighbouring datasets with the same recorded noise.

`pairs` generates the datasets, `tape` records noise, and `adapters` hand the tape to the code under audit. `observe` reads
what an analyst could see of a run, `judge` compares two runs, `shifts` computes losses, and `replay` is the search.
"""
