"""Slow, obvious twins of the compiled kernels, by family."""
