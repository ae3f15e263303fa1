"""The pages: for people who paste a text, correct its topics, and look after labels and models."""

from polytopic.server.pages.routes import add_pages

__all__ = ["add_pages"]
