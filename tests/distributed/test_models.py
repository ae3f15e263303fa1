"""CoL and MML, fitted on documents in parts."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polytopic import MML, CoL, Labeler
from polytopic.corpus import read_documents
from polytopic.distributed import fit
from polytopic.errors import PolytopicError
from polytopic.metrics import samples_f1

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def train(documents):
    """Return the training documents."""
    return [d for d in documents if d.split == "train"]


@pytest.mark.parametrize(
    "model",
    [
        CoL("auto"),
        CoL(8, covariance="variational", predict_mode="sets", max_iter=4),
        CoL(8, inference="paper", init="random", max_iter=3),
    ],
)
def test_col_takes_the_same_steps(client, news, documents, train, model):
    """The bound of each step is that of one machine to 1e-8; predictions are the same."""
    alone = Labeler(model).fit(train)

    labeler = fit(Labeler(model), news, split="train", parts=3, blocksize=30_000, client=client)

    assert labeler.model_.elbo_ == pytest.approx(alone.model_.elbo_, rel=1e-8)
    assert labeler.model_.tuned_.keys() == alone.model_.tuned_.keys()
    threshold = alone.model_.tuned_["threshold"]
    assert labeler.model_.tuned_["threshold"] == pytest.approx(threshold, rel=1e-6)
    assert np.allclose(labeler.model_.label_covariance_, alone.model_.label_covariance_)
    assert np.allclose(labeler.model_.label_topics_, alone.model_.label_topics_, atol=1e-6)
    assert labeler.predict(documents) == alone.predict(documents)
    assert labeler.counts_ == alone.counts_


def test_mml_by_rounds(client, news, documents, train):
    """Objective and predictions are close to those of one machine; tuned settings are the same."""
    model = MML(C="auto", calibrate=True, max_iter=30)
    alone = Labeler(model).fit(train)
    test = [d for d in documents if d.split == "test"]
    true = [d.labels for d in test]

    labeler = fit(Labeler(model), news, split="train", parts=3, client=client)

    assert labeler.model_.tuned_.keys() == alone.model_.tuned_.keys()
    for name, value in alone.model_.tuned_.items():
        assert np.array_equal(labeler.model_.tuned_[name], value)
    objectives = labeler.model_.objectives_
    assert objectives == sorted(objectives)
    assert objectives[-1] == pytest.approx(alone.model_.objective_, rel=0.03)
    f = samples_f1(true, alone.predict(test))
    assert samples_f1(true, labeler.predict(test)) == pytest.approx(f, abs=0.03)


def test_one_part_is_one_machine(client, news, train):
    """With one part, a round is a pass: both reach the same objective."""
    model = MML(tol=1e-3, max_iter=200)
    alone = Labeler(model).fit(train)

    labeler = fit(Labeler(model), news, split="train", parts=1, blocksize=30_000, client=client)

    assert labeler.model_.objective_ == pytest.approx(alone.model_.objective_, rel=2e-3)


@pytest.mark.parametrize("settings", [{"labels": "neighbours"}, {"goal": "exact"}])
def test_other_margins(client, news, train, settings):
    """The paper's neighbours and exact sets can be learned in rounds, too."""
    model = MML(tol=0.02, max_iter=200, **settings)
    alone = Labeler(model).fit(train)

    labeler = fit(Labeler(model), news, split="train", parts=2, client=client)

    assert labeler.model_.objective_ == pytest.approx(alone.model_.objective_, rel=0.02)


def test_partitions_do_not_matter(client, news):
    """MML depends on the number of parts, not on how files are cut."""
    model = MML(max_iter=3)
    one, other = (
        fit(Labeler(model), news, split="train", parts=2, blocksize=size, client=client)
        for size in (11_000, 10**9)
    )

    assert one.model_.to_arrays()["weights"].tobytes() == (
        other.model_.to_arrays()["weights"].tobytes()
    )


def test_too_few_rounds(client, news):
    """A warning says that the gap is still large."""
    with pytest.warns(ConvergenceWarning, match="MML stopped after max_iter == 1 passes"):
        fit(Labeler(MML(max_iter=1)), news, split="train", client=client)


def test_models_for_one_machine_only(client, news):
    """BoosTexter and stepwise learning are rejected in one sentence."""
    with pytest.raises(PolytopicError, match="BoosTexter learns on one machine"):
        fit(Labeler("boostexter"), news, client=client)
    with pytest.raises(ValueError, match="batch_size works on one machine only"):
        fit(Labeler(CoL(8, batch_size=50)), news, client=client)


@pytest.mark.corpus
@pytest.mark.long
@pytest.mark.parametrize("name", ["reuters21578", "debtags-en"])
@pytest.mark.parametrize("parts", [2, 4])
def test_ten_rounds_on_real_corpora(client, data, name, parts):
    """After ten rounds the samples F1 is within .003 of that of one machine."""
    path = data(name)
    test = [d for d in read_documents(path, split="test") if d.labels]
    true = [d.labels for d in test]
    alone = Labeler(MML()).fit(read_documents(path, split="train"))

    labeler = fit(Labeler(MML(max_iter=10)), path, split="train", parts=parts, client=client)

    f = samples_f1(true, alone.predict(test))
    assert samples_f1(true, labeler.predict(test)) == pytest.approx(f, abs=0.003)


@pytest.mark.corpus
@pytest.mark.long
def test_col_on_a_real_corpus(client, data):
    """On Reuters the bound of each step is that of one machine to 1e-8."""
    path = data("reuters21578")
    model = CoL(150, max_iter=10)
    alone = Labeler(model).fit(read_documents(path, split="train"))

    labeler = fit(Labeler(model), path, split="train", parts=4, client=client)

    assert labeler.model_.elbo_ == pytest.approx(alone.model_.elbo_, rel=1e-8)
