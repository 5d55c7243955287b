"""Writes the report of an audit: one page with drawings, and the same as JSON."""
