"""Ctrl+C at any time: nothing crashes, nothing is half-written, and it comes soon."""
