"""Read documents in tests, and collect the errors."""

from polytopic.corpus import read_documents


def read(source, **options):
    """Read all; return the documents and the errors of skipped lines."""
    errors = []
    documents = list(read_documents(source, on_error="skip", on_bad_line=errors.append, **options))
    return documents, [str(error) for error in errors]
