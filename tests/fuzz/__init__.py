"""Fuzz tests: for any bytes, arrays or requests, the answer is a result or one sentence.

Each target gets mutants of seeds, which are files in ``corpus``, where failures are added, or are
made when the tests run. ``make test`` tries a few fixed
mutants of each target, and ``make test-all`` others for a minute each. The seed of the random
numbers is printed with a failure, and ``FUZZ_SEED`` repeats it; ``FUZZ_SECONDS`` sets the time.
"""
