"""What can go wrong while articles are acquired."""

from polytopic.errors import PolytopicError


class AcquisitionError(PolytopicError):
    """A source or an article could not be read; the message is one sentence."""


class RefusedError(AcquisitionError):
    """An address must not be visited: its scheme, its network or robots.txt forbid it."""


class UnreachableError(AcquisitionError):
    """A server did not answer, or answered with an error that may pass."""


class ResponseError(AcquisitionError):
    """A server answered with something that cannot be used."""
