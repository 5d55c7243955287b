"""Records what has been spent: durable, append-only, never overdrawn, and checkable by anyone.

    ledger        registers a catalog, reserves a price, commits an answer
    rules         decides whether a question is admitted   records       entries, requests and their canonical text
    reservations  a question between reserve and commit    receipts      the curator's key, signatures, receipts
    state         the sums beside the entries, sealed      opening       creates and opens ledgers
    copies        backups and restores                     witness       a file of heads on another disk
    files         writes new files atomically              rotation      another key: its files, in a safe order
    stores/       SQLite and PostgreSQL                    verify/       a second implementation that checks a ledger

May import: `privacy`, `exact.numbers`.
Rule: charge first. An entry is on disk before the engine is called, and nothing in it depends on rows.
"""
