"""CPU time and memory of a process, and of others that work for it."""

from __future__ import annotations

import resource
import time
from contextlib import suppress
from pathlib import Path


class _Elsewhere:
    """What other processes have spent for this one, as they tell themselves."""

    seconds = 0.0
    memory_mb = 0.0


def add_elsewhere(seconds: float, memory_mb: float) -> None:
    """Count what another process has spent: CPU seconds, and memory beyond that at its start."""
    _Elsewhere.seconds += seconds
    _Elsewhere.memory_mb = max(_Elsewhere.memory_mb, memory_mb)


def cpu_seconds() -> float:
    """Return the CPU time so far."""
    return time.process_time() + _Elsewhere.seconds


def forget_peak() -> float:
    """Let the peak of memory be what there is now; return it, in MB."""
    _Elsewhere.memory_mb = 0.0
    with suppress(OSError):  # where there is no such file, the peak is that of the whole process
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """Return the most memory that there has been, in MB."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024 + _Elsewhere.memory_mb
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 + _Elsewhere.memory_mb
