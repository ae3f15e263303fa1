"""Docstrings and signatures state the same defaults."""

import pytest

from tests.docstrings import public_callables, wrong_defaults

CALLABLES = public_callables("polytopic.labels")


@pytest.mark.parametrize("name", CALLABLES)
def test_documented_defaults(name):
    """The docstring of each parameter states the default that the signature has."""
    assert not wrong_defaults(CALLABLES[name])
