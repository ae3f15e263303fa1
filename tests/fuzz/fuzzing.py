"""Runs a fuzz target on seeds and their mutants, and keeps what fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

CORPUS = Path(__file__).with_name("corpus")
FEW = 150  # mutants of a target in a short run
SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))  # for a target in a long run


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
    """Run a target on mutants of sources; return how many, or raise with what repeats the failure.

    A short run tries the same few each time. A long one tries others each time.
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
