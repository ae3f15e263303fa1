"""Run one method on one split in a process of its own, and store the result on disk."""

from __future__ import annotations

import multiprocessing
import os
import resource
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
from scipy.sparse import csr_array

from polytopic import __version__
from polytopic.experiments.methods import Method, Prediction, tune_settings
from polytopic.experiments.protocols import CountedCorpus, Part, Split, read_json, write_json
from polytopic.metrics import evaluate
from polytopic.metrics.label_sets import SetTally, f1
from polytopic.metrics.scores import calibration_bins

FORMAT = 2  # of results on disk
WARM_UP_DOCS = 60  # documents that a method is tried on before it is timed
THREADS = ("POLYTOPIC_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
N_BINS = 10  # of probabilities
LARGEST_SIZE = 6  # documents with this many labels or more form one group
FREQUENCIES = (1, 5, 20, 100, 500)  # training documents of a label at which a group begins


@dataclass(frozen=True)
class Cell:
    """A method on a split of a corpus, which has one result.

    Attributes
    ----------
    corpus : str
        Digest of the corpus.
    split : str
        Name of the split.
    documents : str
        Digest of the split's documents.
    method : str
        Name of the method.
    signature : str
        The method's settings, and what is tuned.
    seed : int
        Seed of everything random.
    trials : int or None
        Number of settings that Optuna tries; None for a small grid, 0 for the default settings.
    """

    corpus: str
    split: str
    documents: str
    method: str
    signature: str
    seed: int
    trials: int | None

    @property
    def key(self) -> str:
        """Name of the result's file: the same for the same experiment."""
        text = repr(sorted((asdict(self) | {"version": __version__, "format": FORMAT}).items()))
        return sha256(text.encode()).hexdigest()[:24]


Result = dict[str, Any]
Task = tuple[Cell, Method, Split, Path]
Progress = Callable[[Cell, Result], None]


def digest_arrays(*arrays: np.ndarray) -> str:
    """Return a digest of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(b"/")
    return digest.hexdigest()[:24]


def run_cell(corpus: CountedCorpus, split: Split, method: Method, cell: Cell) -> Result:
    """Fit a method, predict, and return the settings, costs and metrics."""
    train, test = corpus.parts(split.train, split.test)
    settings = dict(method.settings)
    tuning_start = cpu_seconds()
    if cell.trials != 0:
        settings = tune_settings(method, train, cell.seed, cell.trials)
    tuning_end = cpu_seconds()
    _warm_up(method, train, settings, cell.seed)
    memory_before = reset_peak_memory()
    fit_start = cpu_seconds()
    predict = method.fit(train, settings, cell.seed)
    fit_end = cpu_seconds()
    prediction = predict(test)
    predict_end = cpu_seconds()
    return {
        "settings": settings,
        "tune_seconds": tuning_end - tuning_start,
        "fit_seconds": fit_end - fit_start,
        "predict_seconds": predict_end - fit_end,
        "memory_mb": max(0.0, peak_memory() - memory_before),
        "n_train": int(split.train.size),
        "n_test": int(split.test.size),
        **measure(train, test, prediction),
    }


def _warm_up(method: Method, train: Part, settings: dict[str, Any], seed: int) -> None:
    """Import and compile what the method needs, so that this is not timed."""
    sample = train.take(np.arange(min(WARM_UP_DOCS, train.X.shape[0])))
    with suppress(Exception):  # too few documents; any other error occurs again and is reported
        method.fit(sample, settings, seed)(sample)


def measure(train: Part, test: Part, prediction: Prediction) -> dict[str, Any]:
    """Return all metrics of a prediction, and the numbers that figures show."""
    scores = None if prediction.scores is None else np.nan_to_num(prediction.scores, neginf=-1e300)
    tally = SetTally.count(*(csr_array(Y > 0, dtype=np.int64) for Y in (test.Y, prediction.sets)))
    return {
        "metrics": evaluate(test.Y, prediction.sets, scores),
        "documents": {
            "samples_f1": np.round(tally.per_document("samples_f1"), 5).tolist(),
            "subset_accuracy": tally.per_document("subset_accuracy").astype(int).tolist(),
        },
        "by_frequency": _by_frequency(train, tally),
        "by_size": _by_size(tally),
        "calibration": None if prediction.proba is None else _calibration(test, prediction.proba),
    }


def _by_frequency(train: Part, tally: SetTally) -> list[dict[str, Any]]:
    """Return the F-measure of labels by how many training documents they have."""
    n = np.asarray(train.Y.sum(axis=0)).ravel()
    values, is_true = f1(*tally.by_label), tally.by_label[1] > 0
    rows = []
    for low, high in zip(FREQUENCIES, [*FREQUENCIES[1:], np.inf], strict=True):
        group = (n >= low) & (n < high) & is_true
        if group.any():
            f = float(values[group].mean())
            rows.append({"from": low, "labels": int(group.sum()), "f1": f})
    return rows


def _by_size(tally: SetTally) -> list[dict[str, Any]]:
    """Return the F-measure of documents by how many labels they have."""
    size, values = np.minimum(tally.by_document[1], LARGEST_SIZE), tally.per_document("samples_f1")
    return [
        {"size": int(k), "documents": int((size == k).sum()), "f1": float(values[size == k].mean())}
        for k in np.unique(size)
    ]


def _calibration(test: Part, proba: np.ndarray) -> list[dict[str, Any]]:
    """Return how often labels of similar probability are right."""
    return [
        {"bin": place, "pairs": int(n), "probability": p / n, "right": right / n}
        for place, (n, p, right) in enumerate(
            calibration_bins(test.Y, proba, n_bins=N_BINS).T.tolist()
        )
        if n
    ]


class LocalRunner:
    """Runs cells in processes of this machine, and stores their results in a folder.

    Parameters
    ----------
    folder : Path
        Folder of results and corpora.
    workers : int
        Number of processes at a time.
    timeout : float or None
        Seconds after which a cell is stopped.
    """

    def __init__(self, folder: Path, workers: int = 1, timeout: float | None = None):
        self.folder, self.workers, self.timeout = folder, workers, timeout

    def load(self, cell: Cell) -> Result | None:
        """Return the result of a cell that has been run before, or None."""
        path = self._path(cell)
        return read_json(path) if path.exists() else None

    def _path(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}.json"

    def run(self, tasks: Iterable[Task], progress: Progress) -> Iterator[tuple[Cell, Result]]:
        """Run cells, and yield each with its result as it finishes; failures are not stored."""
        (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        for cell, result in self._results(tasks):
            if "failure" not in result:
                write_json(self._path(cell), result)
            progress(cell, result)
            yield cell, result

    def _results(self, tasks: Iterable[Task]) -> Iterator[tuple[Cell, Result]]:
        waiting = list(tasks)[::-1]
        running: dict[Any, tuple[Cell, Any, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    task = waiting.pop()
                    process, receiver = _start(*task)
                    running[receiver] = task[0], process, time.monotonic()
                for receiver in wait(list(running), timeout=1.0):
                    cell, process, _ = running.pop(receiver)
                    yield cell, _receive(receiver, process)
                for receiver, (cell, process, began) in list(running.items()):
                    if self.timeout is not None and time.monotonic() - began > self.timeout:
                        process.kill()
                        del running[receiver]
                        yield cell, {"failure": f"it took more than {self.timeout:g} seconds."}
        finally:
            for _, process, _ in running.values():
                process.kill()


def _start(cell: Cell, method: Method, split: Split, corpus: Path):
    """Start a process that runs a cell; return it and the receiving end of its pipe."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polytopic.experiments"])
    receiver, sender = context.Pipe(duplex=False)
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ |= dict.fromkeys(THREADS, "1")  # times are measured on one thread
    try:
        process = context.Process(
            target=_work, args=(sender, corpus, cell, method, split), daemon=True
        )
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    sender.close()
    return process, receiver


def _work(sender: Connection, corpus: Path, cell: Cell, method: Method, split: Split) -> None:
    """Run a cell in this process, and discard what libraries print."""
    null = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(null, output)
    sender.send(try_cell(corpus, cell, method, split))
    sender.close()


def try_cell(corpus: Path, cell: Cell, method: Method, split: Split) -> Result:
    """Run a cell; return its result, or why it failed."""
    try:
        return run_cell(CountedCorpus.load(corpus), split, method, cell)
    except Exception as error:
        where = traceback.format_exc(limit=-3)
        return {"failure": f"{type(error).__name__}: {error}", "traceback": where}


class ClusterRunner(LocalRunner):
    """Runs cells on the workers of a Dask cluster, which must see the same folder.

    Parameters
    ----------
    folder : Path
        Folder of results and corpora.
    client : distributed.Client
        The cluster. Times are those of a worker's process, so workers should have one thread.
    """

    def __init__(self, folder: Path, client: Any):
        super().__init__(folder.absolute())
        self.client = client

    def _results(self, tasks: Iterable[Task]) -> Iterator[tuple[Cell, Result]]:
        from dask.distributed import as_completed

        running = {}
        for cell, method, split, corpus in tasks:
            arguments = corpus.absolute(), cell, method, split
            future = self.client.submit(try_cell, *arguments, key=f"cell-{cell.key}", pure=False)
            running[future] = cell
        try:
            for future in as_completed(list(running)):
                cell = running.pop(future)
                try:
                    yield cell, future.result()
                except Exception as error:  # of Dask: a worker was lost repeatedly
                    yield cell, {"failure": f"{type(error).__name__}: {error}"}
        finally:
            self.client.cancel(list(running))


def _receive(receiver: Any, process) -> dict[str, Any]:
    """Return the result of a process, or how it ended without one."""
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        return {"failure": f"its process ended with code {process.exitcode}."}
    process.join()
    return result


class _OtherProcesses:
    """The resources that other processes report having used on behalf of this one."""

    seconds = 0.0
    memory_mb = 0.0


def add_other_process(seconds: float, memory_mb: float) -> None:
    """Add what another process has used: CPU seconds, and memory beyond what it started with."""
    _OtherProcesses.seconds += seconds
    _OtherProcesses.memory_mb = max(_OtherProcesses.memory_mb, memory_mb)


def cpu_seconds() -> float:
    """Return the CPU time used so far, by this process and on its behalf."""
    return time.process_time() + _OtherProcesses.seconds


def reset_peak_memory() -> float:
    """Reset the peak of memory to what is in use now; return it in MB."""
    _OtherProcesses.memory_mb = 0.0
    with suppress(OSError):  # without this file, the peak of the whole process counts
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """Return the peak of memory in MB."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024 + _OtherProcesses.memory_mb
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 + _OtherProcesses.memory_mb
