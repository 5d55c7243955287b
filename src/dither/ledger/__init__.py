"""Keeps what has been spent: durable, append-only, impossible to overdraw, and open to anyone's re-check.

    ledger        register a catalog, reserve a price, commit an answer
    rules         whether a question may be asked          records       entries, requests and their canonical text
    reservations  a question between reserve and commit    receipts      the curator's key, signatures, receipts
    state         the sums beside the entries, sealed      opening       makes and finds ledgers
    copies, witness, files   backups, a list of heads elsewhere, whole files or none
    stores/       SQLite and PostgreSQL                    verify/       a second implementation that checks a ledger

May import: `privacy`, `exact.numbers`.
Law kept: charge first. An entry is on disk before the engine is called, and nothing in it depends on rows.
"""
