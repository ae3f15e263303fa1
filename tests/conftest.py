"""What all tests share: the profile of hypothesis, and the folder of corpora."""

import os
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

PROFILE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("usual", max_examples=60, **PROFILE)
settings.register_profile("thorough", max_examples=150, **PROFILE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.fixture(scope="session")
def data():
    """Return the path of a shared corpus by its name, or skip where it is missing."""
    folder = Path(os.environ.get("POLYTOPIC_DATA", Path(__file__).parents[2] / "shared" / "data"))

    def path(name):
        file = folder / f"{name}.jsonl.gz"
        if not file.exists():
            pytest.skip(f"corpus {name} is not in {folder}; set POLYTOPIC_DATA to its folder")
        return file

    return path


EDGES = {
    "cli",
    "distributed",
    "explain",
    "fuzz",
    "labeler",
    "server",
    "store",
    "test_corpora.py",
    "test_documentation.py",
}


def pytest_collection_modifyitems(items):
    """Without compiled kernels, skip tests that would take hours, as on whole corpora."""
    if not numba.config.DISABLE_JIT:
        return
    skipped = pytest.mark.skip(reason="takes minutes without compiled kernels")
    for item in items:
        whole = item.get_closest_marker("corpus") or item.get_closest_marker("compiled")
        if whole or EDGES & set(item.path.parts):
            item.add_marker(skipped)
