"""A worker is killed in the middle of a job: its work is repeated."""

import os
import signal

import pytest

from polytopic import MML, CoL, Labeler
from polytopic.distributed import connect, count, evaluate, fit, select, suggest
from polytopic.experiments import Protocol, compare
from polytopic.labeler import Selector
from polytopic.labeler.reading import count_texts
from polytopic.text import Analyzer
from tests.distributed.test_answers import lines_of
from tests.labeler.test_files import same_arrays


class Killer:
    """Kills a worker once, after a number of finished tasks."""

    def __init__(self, client, after, of=None):
        self.client, self.after, self.of = client, after, of
        self.killed = None

    def __call__(self, done, total):
        """Note the progress of a job."""
        if self.killed is None and done >= self.after and self.of in (None, total):
            workers = self.client.run(os.getpid)
            self.killed = workers[sorted(workers)[0]]
            os.kill(self.killed, signal.SIGKILL)


@pytest.fixture
def cluster():
    """Return the client of two worker processes, one of which is to be killed."""
    with connect(workers=2) as client:
        yield client


def job_count(client, news, killer, **_):
    """Count."""
    return count(news, blocksize=9_000, client=client, progress=killer).to_arrays()


def job_suggest(client, news, killer, pmm1, folder):
    """Label."""
    suggest(pmm1, news, folder, blocksize=9_000, client=client, progress=killer)
    return lines_of(folder)


def job_select(client, news, killer, pmm1, folder):
    """Select."""
    selector = Selector(pmm1, ["culture/film", "sport/football"])
    written = select(selector, news, folder, blocksize=9_000, client=client, progress=killer)
    return lines_of(folder), written.counts, written.topics


def job_evaluate(client, news, killer, pmm1, **_):
    """Evaluate."""
    return evaluate(pmm1, news, blocksize=9_000, client=client, progress=killer).metrics()


def same(one, other):
    """Return whether two results are the same."""
    if isinstance(one, dict) and hasattr(next(iter(one.values())), "tobytes"):
        return all(one[name].tobytes() == other[name].tobytes() for name in one)
    return one == other


@pytest.mark.parametrize(
    "job",
    [
        job_count,
        pytest.param(job_suggest, marks=pytest.mark.long),
        pytest.param(job_select, marks=pytest.mark.long),
        pytest.param(job_evaluate, marks=pytest.mark.long),
    ],
)
def test_one_pass(client, cluster, news, pmm1, tmp_path, job):
    """Counting, labelling, selecting and evaluating give the same result."""
    arguments = {"news": news, "pmm1": pmm1}
    killer = Killer(cluster, after=3)

    expected = job(client, killer=None, folder=tmp_path / "whole", **arguments)
    result = job(cluster, killer=killer, folder=tmp_path / "lost", **arguments)

    assert killer.killed
    assert same(result, expected)


@pytest.mark.parametrize(
    "model",
    [
        CoL(25, max_iter=6, tol=0),
        pytest.param(MML(max_iter=6, tol=1e-6), marks=pytest.mark.long),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_steps_and_rounds(client, cluster, news, model):
    """Nothing is lost with a worker between steps: its part is computed again."""
    killer = Killer(cluster, after=3, of=6)
    how = {"split": "train", "parts": 3, "blocksize": 30_000}

    expected = fit(Labeler(model), news, **how, client=client)
    labeler = fit(Labeler(model), news, **how, client=cluster, progress=killer)

    assert killer.killed
    assert same_arrays(labeler.model_, expected.model_)


@pytest.mark.long
def test_count_models(client, cluster, news, documents):
    """A count model and its table are the same."""
    killer = Killer(cluster, after=2)

    labeler = fit(Labeler("pmm1"), news, blocksize=9_000, client=cluster, progress=killer)

    assert killer.killed
    assert labeler.counts_ == count_texts(documents, None, Analyzer("en"), None)
    assert same_arrays(labeler.model_, Labeler("pmm1").fit(documents).model_)


@pytest.mark.long
def test_comparison(cluster, documents, tmp_path):
    """The methods that a lost worker ran are run again, with the same results."""
    methods, protocol = ["knn", "nb-one-vs-rest", "svm"], Protocol("folds", repeats=2)
    how = {"protocol": protocol, "tune": 0}
    killer, done = Killer(cluster, after=1), []

    def progress(sentence):
        done.append(sentence)
        killer(len(done), 6)

    alone = compare(documents, methods, folder=tmp_path / "one", **how)
    how |= {"client": cluster, "progress": progress}
    comparison = compare(documents, methods, folder=tmp_path / "two", **how)

    assert killer.killed
    assert [row.method for row in comparison.rows] == [row.method for row in alone.rows]
    for row, other in zip(comparison.rows, alone.rows, strict=True):
        assert row.values("samples_f1").tolist() == other.values("samples_f1").tolist()
