"""Proves: prices certified on exact laws (`prices`), samplers walked bit by bit (`walk`, `samplers`)."""
