"""What can go wrong that is not the caller's argument."""


class PolytopicError(Exception):
    """A failure told in one sentence, which a command shows as it is."""


class CorpusError(PolytopicError):
    """A document could not be read; the sentence names file, line and reason."""


class ModelFileError(PolytopicError):
    """A model file could not be read or written."""


class StoreError(PolytopicError):
    """A store could not be opened, read or changed."""


class UnavailableError(StoreError):
    """A store's database is locked, out of reach or broken; what was asked may be right."""


class DamagedError(StoreError):
    """What a store's database holds makes no sense; the sentence says what, and how to go on."""

    def __init__(self, reason: str):
        super().__init__(f"the store is damaged: {reason}; restore a backup, or import an export.")


class ContentError(StoreError, ValueError):
    """A store cannot hold what it was given."""


class CorpusWarning(UserWarning):
    """Something of a document could not be read, and the document is kept without it."""


class LabelWarning(UserWarning):
    """Something about labels was decided for the caller, who may want it otherwise."""


class StoreWarning(UserWarning):
    """A store answers with less than it knows."""
