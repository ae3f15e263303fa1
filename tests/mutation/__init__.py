"""Mutation testing: small faults in the source, and the tests that notice them.

``changes`` lists the faults (mutants), ``runs`` tests them one by one, ``recording`` is the pytest
plugin that records which test reaches which line, and ``equivalent.toml`` names the mutants that
behave exactly like the source, so that no test can notice them.
"""
