"""The service: labels, explanations and learning over HTTP."""

from polytopic.server.app import create_app

__all__ = ["create_app"]
