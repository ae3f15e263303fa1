"""Ctrl+C works at any time: soon, without a crash, and without leaving incomplete data."""
