"""Models whose arrays do not fit into memory say so before the work begins."""

import numpy as np
import pytest
from scipy import sparse

from polytopic import MML, PDMM, PMM1, LinearSVM, NaiveBayes, PolytopicError, ShortlistSVM
from polytopic.models import checks

N_LABELS, N_WORDS = 40_000, 60_000


def corpus():
    """Return a document per label, with a word of its own."""
    X = sparse.csr_matrix(
        (np.ones(N_LABELS), np.arange(N_LABELS), np.arange(N_LABELS + 1)), (N_LABELS, N_WORDS)
    )
    return X, sparse.identity(N_LABELS, format="csr")


@pytest.mark.parametrize("model", [MML(), NaiveBayes(), PMM1(), PDMM(), LinearSVM()], ids=repr)
def test_dense_models(model, monkeypatch):
    """The error says how much memory is needed, how much there is, and what to do."""
    monkeypatch.setattr(checks, "memory_of_machine", lambda: 8 << 30)
    sentence = (
        rf"{type(model).__name__} would need about \d+ GiB of memory for 40,000 labels and 60,000 "
        r"words, and the machine has 8 GiB. Use the default model or CandidateStack"
    )

    with pytest.raises(PolytopicError, match=sentence):
        model.fit(*corpus())


def test_sparse_models(monkeypatch):
    """A model of thousands of labels fits into little memory."""
    monkeypatch.setattr(checks, "memory_of_machine", lambda: 1 << 20)
    X, Y = corpus()

    model = ShortlistSVM().fit(X, Y)

    assert (model.predict(X[:50]) != Y[:50]).nnz == 0


def test_memory_of_a_container(monkeypatch, tmp_path):
    """The limit of a container counts if it is lower than the memory; "max" is no limit."""
    whole, limit = checks.memory_of_machine(), tmp_path / "memory.max"
    monkeypatch.setattr(checks, "CONTROL_GROUPS", (limit,))

    for text, expected in (("1000000\n", 1e6), ("max\n", None)):
        limit.write_text(text)
        memory = checks.memory_of_machine()
        assert memory == (expected or memory)
        assert memory >= (expected or whole)
