"""Fuzz targets: whatever bytes, arrays or requests come, the answer is a result or one sentence.

Each target takes something mutated. The seeds it starts from are files in ``corpus``, where a
failure that was found is kept too, or are made when the tests run. ``make test`` tries a fixed few
mutants of each target; ``make test-all`` tries others for a minute each. The seed of the random
numbers is printed with a failure, and ``FUZZ_SEED`` repeats it; ``FUZZ_SECONDS`` sets the time.
"""
