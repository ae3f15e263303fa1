"""Errors that are not the fault of an argument, and warnings."""


class PolytopicError(Exception):
    """A failure whose message is one sentence, which commands and the service show as it is."""


class CorpusError(PolytopicError):
    """A document could not be read; the message names the file, the line and the reason."""


class NotLearnedError(PolytopicError, ValueError):
    """A document cannot be one of those that a model has learned."""


class ModelFileError(PolytopicError):
    """A model file could not be read or written."""


class StoreError(PolytopicError):
    """A store could not be opened, read or changed."""


class UnavailableError(StoreError):
    """A store's database is locked, unreachable or broken; the request itself may be valid."""


class DamagedError(StoreError):
    """The content of a store's database is inconsistent; the message says how to recover."""

    def __init__(self, reason: str):
        super().__init__(f"the store is damaged: {reason}; restore a backup, or import an export.")


class ContentError(StoreError, ValueError):
    """A store cannot represent a document or a setting."""


class CorpusWarning(UserWarning):
    """A part of a document could not be read; the document is kept without it."""


class LabelWarning(UserWarning):
    """An ambiguity in labels was resolved in a way that the caller may not want."""


class StoreWarning(UserWarning):
    """A store answers without some of what it contains."""
