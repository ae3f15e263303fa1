"""Reading for the tests: what was read, and what was said."""

from polytopic.corpus import read_documents


def read(source, **options):
    """Read all; return the documents and the sentences of what was passed over."""
    errors = []
    documents = list(read_documents(source, on_error="skip", on_bad_line=errors.append, **options))
    return documents, [str(error) for error in errors]
