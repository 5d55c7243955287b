"""What has been spent: durable, append-only, impossible to overdraw, and open to anyone's re-check.

May import: `privacy`.
Law kept: charge first. An entry is on disk before the engine is called, and nothing in it depends on rows.
"""
