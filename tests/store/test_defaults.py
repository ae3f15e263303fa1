"""Defaults: docstrings and signatures say the same."""

import pytest

from tests.docstrings import public_callables, wrong_defaults

CALLABLES = public_callables("polytopic.store")


@pytest.mark.parametrize("name", CALLABLES)
def test_documented_defaults(name):
    """Whoever reads the docstring knows what is used if a parameter is not given."""
    assert not wrong_defaults(CALLABLES[name])
