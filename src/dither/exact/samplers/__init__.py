"""Draws from the laws exactly: one file for each way of turning uniform bits into a value."""
