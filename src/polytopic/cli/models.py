"""What answers: a model file, or a store."""

from polytopic.files import is_database


def load_labeler(source: str):
    """Return the labeler of a model file, or what a store answers with now."""
    from polytopic.labeler import load

    if not is_database(source):
        return load(source)
    from polytopic.store import Store

    with Store(source, create=False) as store:
        return store.labeler()
