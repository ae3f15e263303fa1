"""Compiled loops over plain arrays."""
