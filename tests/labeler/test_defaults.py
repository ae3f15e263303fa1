"""Defaults: docstrings and signatures say the same."""

import pytest

from tests.docstrings import declared_defaults, documented_defaults, public_callables

CALLABLES = public_callables("polytopic.labeler")


@pytest.mark.parametrize("name", CALLABLES)
def test_documented_defaults(name):
    """Whoever reads the docstring knows what is used if a parameter is not given."""
    declared = declared_defaults(CALLABLES[name])
    documented = documented_defaults(CALLABLES[name])

    assert {key: documented.get(key) for key in declared} == declared
