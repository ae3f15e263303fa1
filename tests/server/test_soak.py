"""A short soak test; ``make soak`` runs it for half an hour on each database."""

import pytest

from tests.soak import soak


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_mixed_load_loses_nothing_and_leaves_no_trace(database, request):
    """Two services, one killed repeatedly, keep and erase what they acknowledged."""
    if database == "postgresql":
        request.getfixturevalue("server")  # skip if PostgreSQL is not installed

    report = soak(database, 60, pause=30)

    assert report.problems == []
    assert report.done["kills"] > 0
    assert report.done["forget"] > 10
