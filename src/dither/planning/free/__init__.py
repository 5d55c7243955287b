"""Answers from what is already paid for: numbers that follow from stored noisy answers. Post-processing, so it is free.

    stored     decodes what stored answers are about, from the plans in the ledger
    groups     finds the earlier groups that make up each group of a question
    numbers    finds the earlier cells that make up each aggregate of a question
    derive     puts both together: a plan whose noise was drawn earlier

Nothing here reads a row, draws noise or knows a price. Which earlier answers are used depends on plans and margins only,
never on the noisy numbers. See docs/decisions/0014-free-answers.md.
"""
