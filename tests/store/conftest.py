"""Places for stores: files, and databases on a server."""

from itertools import count

import pytest

from tests.store.postgres import Server, find_binaries


@pytest.fixture(scope="session")
def server():
    """Return a running PostgreSQL server, or skip if it is not installed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    running = Server(binaries)
    try:
        yield running.start()
    finally:
        running.remove()


@pytest.fixture(scope="session")
def new_path(tmp_path_factory):
    """Return a function that gives the path of a file that does not exist yet."""
    folder, numbers = tmp_path_factory.mktemp("stores"), count()
    return lambda: str(folder / f"{next(numbers)}.db")


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_url(request, new_path):
    """Return a function that gives the URL of a new, empty database."""
    if request.param == "sqlite":
        return new_path
    return request.getfixturevalue("server").new_url


@pytest.fixture
def url(new_url):
    """Return the URL of an empty database."""
    return new_url()


@pytest.fixture
def path(tmp_path):
    """Return the path of a file that does not exist yet."""
    return tmp_path / "store.db"
