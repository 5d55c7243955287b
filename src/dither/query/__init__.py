"""What may be asked and of what: the catalog, the nodes of a question, its readers (SQL, fluent), and what is legal.

May import: `exact.numbers`, which reads and writes numbers (and `errors`, `text`). Knows no noise and no engine.
Law kept: fail closed. What is not known to be safe is refused with a reason and charges nothing.
"""
