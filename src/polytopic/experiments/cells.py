"""Cells: one method on one split, run in a process of its own and kept on disk."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from polytopic import __version__
from polytopic.experiments.clock import cpu_seconds, forget_peak, peak
from polytopic.experiments.measures import measured
from polytopic.experiments.methods import Method
from polytopic.experiments.parts import Part, Prepared, read_json, write_json
from polytopic.experiments.protocols import Split
from polytopic.experiments.registry import METHODS
from polytopic.experiments.tuning import chosen_settings

WARM = 60  # documents that a method is tried on before its time is taken
THREADS = ("POLYTOPIC_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """A method on a split of a corpus.

    Attributes
    ----------
    corpus : str
        The digest of the corpus.
    split, method : str
        Their names.
    asked : str
        What the method is set to, and what is tuned.
    documents : str
        The digest of the split's documents.
    seed : int
        For all that is random.
    trials : int or None
        Settings that Optuna tries; None for a few that are tried all, 0 for the usual ones.
    """

    corpus: str
    split: str
    documents: str
    method: str
    asked: str
    seed: int
    trials: int | None

    @property
    def key(self) -> str:
        """What it is kept under: the same for the same question."""
        text = repr(sorted((asdict(self) | {"version": __version__}).items()))
        return sha256(text.encode()).hexdigest()[:24]


def digest_of(*arrays: np.ndarray) -> str:
    """Return a digest of numbers."""
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
        found.update(b"/")
    return found.hexdigest()[:24]


def run_cell(prepared: Prepared, split: Split, method: Method, cell: Cell) -> dict[str, Any]:
    """Fit a method, let it answer, and return what was measured."""
    train, test = prepared.parts(split.train, split.test)
    settings = dict(method.settings)
    begin = cpu_seconds()
    if cell.trials != 0:
        settings = chosen_settings(method, train, cell.seed, cell.trials)
    tuned = cpu_seconds()
    _warm_up(method, train, settings, cell.seed)
    before = forget_peak()
    start = cpu_seconds()
    answering = method.fit(train, settings, cell.seed)
    fitted = cpu_seconds()
    answer = answering(test)
    done = cpu_seconds()
    return {
        "settings": settings,
        "tune_seconds": tuned - begin,
        "fit_seconds": fitted - start,
        "predict_seconds": done - fitted,
        "memory_mb": max(0.0, peak() - before),
        "n_train": int(split.train.size),
        "n_test": int(split.test.size),
        **measured(train, test, answer),
    }


def _warm_up(method: Method, train: Part, settings: dict[str, Any], seed: int) -> None:
    """Load what is compiled, so that it is not in the times."""
    few = train.rows(np.arange(min(WARM, train.X.shape[0])))
    with suppress(Exception):  # few documents may be too few; what is wrong with all is told later
        method.fit(few, settings, seed)(few)


class Cells:
    """Cells that are run in processes, and kept in a folder.

    Parameters
    ----------
    folder : Path
        Where results and corpora are kept.
    workers : int
        Processes that run at once.
    timeout : float or None
        Seconds that a cell may take.
    """

    def __init__(self, folder: Path, workers: int = 1, timeout: float | None = None):
        self.folder, self.workers, self.timeout = folder, workers, timeout

    def kept(self, cell: Cell) -> dict[str, Any] | None:
        """Return the result of a cell that was run before."""
        path = self._path(cell)
        return read_json(path) if path.exists() else None

    def _path(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}.json"

    def run(
        self,
        tasks: Iterable[tuple[Cell, Method, Split, Path]],
        tell: Callable[[Cell, dict[str, Any]], None],
    ) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Run cells, and yield each with its result as it ends; failures are not kept."""
        (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        waiting = list(tasks)[::-1]
        running: dict[Any, tuple[Cell, Any, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    task = waiting.pop()
                    process, ear = _start(*task)
                    running[ear] = task[0], process, time.monotonic()
                for ear in wait(list(running), timeout=1.0):
                    cell, process, _ = running.pop(ear)
                    result = _heard(ear, process)
                    if "failure" not in result:
                        write_json(self._path(cell), result)
                    tell(cell, result)
                    yield cell, result
                for ear, (cell, process, began) in list(running.items()):
                    if self.timeout is not None and time.monotonic() - began > self.timeout:
                        process.kill()
                        del running[ear]
                        result = {"failure": f"it took more than {self.timeout:g} seconds."}
                        tell(cell, result)
                        yield cell, result
        finally:
            for _, process, _ in running.values():
                process.kill()


def told_of(method: Method) -> str | Method:
    """Return what another process is told of a method; what is known cannot be sent."""
    return method.name if METHODS.get(method.name) is method else method


def _start(cell: Cell, method: Method, split: Split, corpus: Path):
    """Start a process that runs a cell; return it, and what hears of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polytopic.experiments.registry"])
    ear, mouth = context.Pipe(duplex=False)
    arguments = (mouth, corpus, cell, told_of(method), split.name, split.train, split.test)
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ |= dict.fromkeys(THREADS, "1")  # times are those of one thread
    try:
        process = context.Process(target=_work, args=arguments, daemon=True)
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    mouth.close()
    return process, ear


def _work(
    mouth: Connection, corpus: Path, cell: Cell, told: str | Method, name: str, train, test
) -> None:
    """Run a cell in a process of its own, without what libraries print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    mouth.send(outcome(corpus, cell, told, name, train, test))
    mouth.close()


def outcome(corpus: Path, cell: Cell, told: str | Method, name: str, train, test) -> dict:
    """Run a cell, and return its result or how it failed."""
    try:
        method = METHODS[told] if isinstance(told, str) else told
        return run_cell(Prepared.load(corpus), Split(name, train, test), method, cell)
    except Exception as error:
        where = traceback.format_exc(limit=-3)
        return {"failure": f"{type(error).__name__}: {error}", "traceback": where}


class ClusterCells(Cells):
    """Cells that are run by the workers of a Dask cluster, which see the same folder.

    Parameters
    ----------
    folder : Path
        Where results and corpora are kept.
    client : distributed.Client
        The cluster. Times are those of a worker's process, so a worker should have one thread.
    """

    def __init__(self, folder: Path, client: Any):
        super().__init__(folder.absolute())
        self.client = client

    def run(
        self,
        tasks: Iterable[tuple[Cell, Method, Split, Path]],
        tell: Callable[[Cell, dict[str, Any]], None],
    ) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Run cells, and yield each with its result as it ends; failures are not kept."""
        from dask.distributed import as_completed

        (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        running = {}
        for cell, method, split, corpus in tasks:
            given = (corpus.absolute(), cell, told_of(method), split.name, split.train, split.test)
            future = self.client.submit(outcome, *given, key=f"cell-{cell.key}", pure=False)
            running[future] = cell
        try:
            for future in as_completed(list(running)):
                cell = running.pop(future)
                try:
                    result = future.result()
                except Exception as error:  # the engine's: a worker is lost again and again
                    result = {"failure": f"{type(error).__name__}: {error}"}
                if "failure" not in result:
                    write_json(self._path(cell), result)
                tell(cell, result)
                yield cell, result
        finally:
            self.client.cancel(list(running))


def _heard(ear: Any, process) -> dict[str, Any]:
    """Return what a process said, or how it ended without a word."""
    try:
        result = ear.recv()
    except EOFError:
        process.join()
        return {"failure": f"its process ended with code {process.exitcode}."}
    process.join()
    return result
