"""Run a fuzz target on mutants of seeds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

CORPUS = Path(__file__).with_name("corpus")
FEW = 150  # mutants per target in a short run
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))  # per target in a long run


def seeds(folder: str) -> list[Path]:
    """Return the files of a target's corpus."""
    return sorted(path for path in (CORPUS / folder).iterdir() if path.is_file())


def fuzz(
    target: Callable[[Any], None],
    sources: Sequence[Any],
    mutate: Callable[[Any, Random], Any],
    *,
    long: bool,
) -> int:
    """Run a target on mutants of sources; return their number, or raise how to repeat a failure.

    A short run tries the same few mutants each time, a long one tries new ones.
    """
    seed = int(os.environ.get("FUZZ_SEED", Random().randrange(1 << 32) if long else 0))
    random, end, n = Random(seed), time.monotonic() + SECONDS, 0
    while time.monotonic() < end if long else n < FEW:
        n += 1
        mutant = mutate(random.choice(sources), random)
        try:
            target(mutant)
        except Exception as error:
            shown = repr(mutant)
            raise AssertionError(
                f"mutant {n} with FUZZ_SEED={seed} fails: {type(error).__name__}: {error}\n"
                f"{shown if len(shown) < 2000 else shown[:2000] + '...'}"
            ) from error
    return n
