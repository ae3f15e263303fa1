"""Mutation testing: small faults put into the source, and the tests that notice them.

``changes`` lists the faults (mutants), ``runs`` tests them one by one, ``recording`` is the pytest
plugin that finds out which test reaches which line, and ``equivalent.toml`` names the mutants that
behave like the source, so that no test can notice them.
"""
