"""Defaults in docstrings agree with the signatures."""

from polytopic.server import create_app
from polytopic.server.connections import ConnectionLimits
from tests.docstrings import declared_defaults, documented_defaults


def test_documented_defaults():
    """The documented default of each parameter is the real one."""
    for function in (create_app, ConnectionLimits):
        declared = declared_defaults(function)
        documented = documented_defaults(function)

        assert declared
        assert {key: documented.get(key) for key in declared} == declared
