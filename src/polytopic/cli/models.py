"""What answers: a model file, or a store."""

from __future__ import annotations


def load_labeler(source: str):
    """Return the labeler of a model file, or what a store answers with now."""
    from polytopic.labeler import load

    if not is_store(source):
        return load(source)
    from polytopic.store import Store

    with Store(source, create=False) as store:
        return store.labeler()


def is_store(source: str) -> bool:
    """Tell a store from a model file: it has a URL, or is an SQLite database."""
    if "://" in source:
        return True
    from polytopic.files import begins_with

    return begins_with(source, b"SQLite format 3\0")
