"""Maximal margin labeling compared with LinearSVC: CPU time to fit and predict, and memory.

All run on one thread, on the same ltc weights, C = 1; each repeat runs all, ratios are paired by
repeat. scikit-learn's default takes the primal solver where there are more documents than words,
so ratios are to that and to the dual one. Growth: time to fit by the number of documents of
arxiv-cs. Memory: the peak of a process that loads the weights of arxiv-cs and fits.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["POLYTOPIC_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else it waits on all cores in LinearSVC's primal solver
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from common import markdown
from parts import read_parts
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from polytopic import MML
from polytopic.text import TermWeights

SVC, DUAL = "LinearSVC()", "LinearSVC(dual=True)"
BASELINES = {SVC: LinearSVC(), DUAL: LinearSVC(dual=True)}
MARGINS = {
    "neighbours, Dice": {"labels": "neighbours"},
    "neighbours, cosine": {"labels": "neighbours", "similarity": "cosine"},
    "all labels, goal f": {},
    "all labels, goal exact": {"goal": "exact"},
}
REPEATS = {"reuters21578": 5, "debtags-en": 2, "arxiv-cs": 1}
PREDICTS = 5
GROWTH = (1000, 2000, 4000, 8000, 16000, 32000, 66371)


def load_weights(name):
    """Return ltc weights and indicators of a corpus."""
    train, test = read_parts(name)
    weights = TermWeights("ltc").fit(train.X)
    return weights.transform(train.X), train.Y, weights.transform(test.X)


def cpu_seconds(function):
    """Return the CPU time of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def warm_up(models, X, Y, X_test):
    """Compile."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label not .* is present")
        for model in models.values():
            model.fit(X[:500], Y[:500]).predict(X_test[:50])


def speed(name, X, Y, X_test):
    """Print times to fit and to predict, and their ratios."""
    models = {row: OneVsRestClassifier(svc) for row, svc in BASELINES.items()}
    models |= {row: MML(**settings) for row, settings in MARGINS.items()}
    warm_up(models, X, Y, X_test)
    fits, predicts = ({row: [] for row in models} for _ in range(2))
    for _ in range(REPEATS[name]):
        for row, model in models.items():
            fits[row].append(cpu_seconds(lambda m=model: m.fit(X, Y)))
            times = [cpu_seconds(lambda m=model: m.predict(X_test)) for _ in range(PREDICTS)]
            predicts[row].append(np.median(times))
            print(name, row, fits[row][-1], predicts[row][-1], file=sys.stderr, flush=True)

    def ratio(times, row, peer):
        ratios = np.array(times[row]) / times[peer]
        spread = f" ({ratios.min():.2f}–{ratios.max():.2f})" if ratios.size > 1 else ""
        return f"{np.median(ratios):.3g}{spread}"

    print(f"\n{name}: {X.shape[0]} and {X_test.shape[0]} documents, {REPEATS[name]} repeats\n")
    markdown(
        ["model", "passes", "fit s", f"of {SVC}", f"of {DUAL}", "predict ms", f"of {SVC}"],
        [
            (
                row,
                getattr(model, "n_iter_", "–"),
                f"{np.median(fits[row]):.2f}",
                ratio(fits, row, SVC),
                ratio(fits, row, DUAL),
                f"{np.median(predicts[row]) * 1e3:.1f}",
                ratio(predicts, row, SVC),
            )
            for row, model in models.items()
        ],
    )
    sys.stdout.flush()


def growth(X, Y, X_test, path):
    """Print, and draw if matplotlib is there, the time to fit by the number of documents."""
    models = {row: MML(**settings) for row, settings in MARGINS.items()}
    warm_up(models, X, Y, X_test)
    order = np.random.default_rng(0).permutation(X.shape[0])
    seconds = {row: [] for row in models}
    for n_docs in GROWTH:
        docs = np.sort(order[:n_docs])
        part = X[docs], Y[docs]
        for row, model in models.items():
            seconds[row].append(cpu_seconds(lambda m=model, p=part: m.fit(*p)))
            print(n_docs, row, seconds[row][-1], model.n_iter_, file=sys.stderr, flush=True)
    print("\nCPU seconds (milliseconds per document) to fit documents of arxiv-cs\n")
    markdown(
        ["documents", *models],
        [
            (n, *(f"{seconds[row][k]:.2f} ({seconds[row][k] / n * 1e3:.2f})" for row in models))
            for k, n in enumerate(GROWTH)
        ],
    )
    for row in models:
        slope = np.polyfit(np.log(GROWTH), np.log(seconds[row]), 1)[0]
        print(f"{row}: time grows as documents to the power {slope:.2f}")
    sys.stdout.flush()
    if path:
        draw(path, seconds)


def draw(path, seconds):
    """Draw the growth, if matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno figure: matplotlib is not installed")
        return
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    for (row, times), marker in zip(seconds.items(), "osv^", strict=True):
        axes.loglog(GROWTH, times, label=row, marker=marker, linewidth=1, markersize=4)
    first = min(times[0] for times in seconds.values()) / 2
    axes.loglog(
        GROWTH,
        np.array(GROWTH) / GROWTH[0] * first,
        color="gray",
        linestyle=":",
        label="in proportion",
    )
    axes.set(xlabel="documents of arxiv-cs", ylabel="CPU seconds to fit")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=90)


def memory(X, Y):
    """Print the peak memory of processes that fit."""
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder) / "X.npz", X)
        sparse.save_npz(Path(folder) / "Y.npz", sparse.csr_matrix(Y))
        rows = []
        for row in MARGINS:
            command = [sys.executable, __file__, "--fit", row, folder]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append((row, *found.stdout.split()))
    print("\nMB at the peak of a process that fits all of arxiv-cs\n")
    markdown(["model", "before fit", "after fit"], rows)


def fit_once(row, folder):
    """Print the peak memory before and after a fit, in MB."""
    X, Y = (sparse.load_npz(Path(folder) / f"{name}.npz") for name in "XY")
    MML(**MARGINS[row]).fit(X[:200], Y[:200])
    before = peak_kb()
    MML(**MARGINS[row]).fit(X, Y)
    print(f"{before / 1024:.0f} {peak_kb() / 1024:.0f}")


def peak_kb():
    """Return the peak memory of this process in kB, on Linux.

    getrusage is not used, because its figure starts from that of the parent process.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="*", default=list(REPEATS), choices=list(REPEATS))
    parser.add_argument("--only", nargs="+", default=["speed", "growth", "memory"])
    parser.add_argument("--figure", metavar="FILE", help="where to draw the growth")
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit_once(*arguments.fit)
        sys.exit()
    if "speed" in arguments.only:
        for corpus in arguments.corpora:
            speed(corpus, *load_weights(corpus))
    if "growth" in arguments.only or "memory" in arguments.only:
        arxiv = load_weights("arxiv-cs")
        if "memory" in arguments.only:
            memory(*arxiv[:2])
        if "growth" in arguments.only:
            growth(*arxiv, arguments.figure)
