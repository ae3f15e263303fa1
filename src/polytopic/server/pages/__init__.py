"""The pages: label and correct a text, review documents, and manage labels and models."""

from polytopic.server.pages.routes import add_pages

__all__ = ["add_pages"]
