"""Prints a Work as SELECT statements and reads their rows back as groups."""
