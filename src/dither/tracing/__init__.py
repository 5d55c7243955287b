"""Traced programs: Python run on private values that carry, for each record, how far that record can move them.

May import `exact`, `privacy`, `mechanisms`, `workloads`, `streams`, `plots` (docs/architecture.md).
Rule: moves come from declared bounds, never from values; nothing that a program can observe depends on values, except noise.

    influence   how far each record moves each number, as runs       private     one number or a vector of them
    rows        one vector per record                                noisy       what a release returned
    charges     what each record has paid; limits                    run         dt.trace, dt.records, one run
    refusals    what is refused, with the line of the program        report      the report, cheaper rewrites
    queries     statistical queries                              bounded     whole numbers with bounds and influence

The package is not called `trace`, because a package hides a function of its name in `dither`.
"""
