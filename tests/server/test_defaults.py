"""Defaults: docstrings, signatures and docs/service.md say the same."""

from polytopic.server import create_app
from polytopic.server.connections import ConnectionLimits
from tests.docstrings import declared_defaults, documented_defaults


def test_documented_defaults():
    """Whoever reads the docstring knows what is used if a parameter is not given."""
    for function in (create_app, ConnectionLimits):
        declared = declared_defaults(function)
        documented = documented_defaults(function)

        assert declared
        assert {key: documented.get(key) for key in declared} == declared
