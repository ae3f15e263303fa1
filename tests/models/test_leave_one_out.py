"""Leaving a document out is the same as never having learned it."""

from inspect import signature

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.base import clone

from polytopic import PDMM, PMM1, PMM2, NaiveBayes, PolytopicError
from polytopic.labels import LabelSpace, widen
from polytopic.models import SetPrior, leave_one_out
from tests.models.test_count_models import MODELS, corpus
from tests.strategies import matrices

FIXED = {"temperature": 3.0, "max_iter": 1000, "tol": 0.0}
MIXTURES = [PMM1(**FIXED), PMM2(**FIXED), PDMM(**FIXED)]
WITHOUT_EM = [
    model
    for model in MODELS
    if model.audit_method == "leave-one-out"
    and "em_steps" not in signature(model.loo_predict).parameters
]


def others(X, Y, doc):
    """Return all documents but one."""
    rest = np.arange(len(X)) != doc
    return X[rest], Y[rest]


def worded(n_docs=40, seed=0):
    """Return the documents with words, and the indicator of their labels."""
    X, names = corpus(n_docs, seed)
    Y = np.array([[n in row for n in ("film", "science", "sport")] for row in names]).astype(int)
    return X[X.any(axis=1)], Y[X.any(axis=1)]


def prior_of(model):
    """Return the prior of a fitted mixture, whose rows are those of its table."""
    counts, space = model.counts_, LabelSpace(model.classes_.tolist())
    return SetPrior(model.prior, widen(counts.indicator, counts.labels, space), counts.set_docs)


@pytest.mark.parametrize("model", WITHOUT_EM)
@given(documents=matrices(min_docs=2, labelled=True))
def test_leaving_out_is_a_fit_without_the_document(model, documents):
    """Likelihoods and answers are exactly those of a model that never saw the document."""
    X, Y = documents
    model = clone(model).fit(X, Y)

    scores, answers = model.loo_log_likelihood(X, Y), model.loo_predict(X, Y)

    for doc in range(len(X)):
        without = clone(model).fit(*others(X, Y, doc))
        one = slice(doc, doc + 1)
        np.testing.assert_allclose(scores[one], without.log_likelihood(X[one], Y[one]), atol=1e-9)
        margins = np.sort(without.decision_function(X[one])[0])
        if not X[doc].any() or margins[-1] - margins[-2] > 1e-9:  # no tie
            assert answers[doc].tolist() == without.predict(X[one])[0].tolist()


@pytest.mark.parametrize("em_steps", [0, 1])
@given(documents=matrices(min_docs=2, labelled=True))
def test_a_mixture_without_em_is_a_fit_without_the_document(documents, em_steps):
    """If each word counts for all labels, the likelihood is exact."""
    X, Y = documents
    model = PMM1(estimate="nb", temperature=1.0).fit(X, Y)

    scores = model.loo_log_likelihood(X, Y, em_steps=em_steps)

    for doc in range(len(X)):
        without = clone(model).fit(*others(X, Y, doc))
        expected = without.log_likelihood(X[[doc]], Y[[doc]])
        np.testing.assert_allclose(scores[[doc]], expected, atol=1e-9)


@pytest.mark.parametrize("model", [PMM1(**FIXED), PDMM(**FIXED)])
def test_em_steps_lead_to_a_fit_without_the_document(model):
    """With enough EM steps, the likelihood is that of a cold fit; without any, it is near."""
    X, Y = worded()
    model.fit(X, Y)

    relearned = model.loo_log_likelihood(X, Y, em_steps=200)
    at_once = model.loo_log_likelihood(X, Y)

    refits = [type(model)(**FIXED).fit(*others(X, Y, doc)) for doc in range(len(X))]
    cold = [refit.log_likelihood(X[[d]], Y[[d]])[0] for d, refit in enumerate(refits)]
    np.testing.assert_allclose(relearned, cold, rtol=1e-4)
    with_document = model.log_likelihood(X, Y)
    assert np.abs(at_once - cold).mean() < 0.5 * np.abs(with_document - cold).mean()


def test_em_steps_of_pmm2_keep_biases():
    """If biases are fixed, the likelihood is that of a cold fit."""
    X, Y = worded()
    equal = PMM2(bias_smoothing=1e90, **FIXED).fit(X, Y)

    relearned = equal.loo_log_likelihood(X, Y, em_steps=200)

    refits = [clone(equal).fit(*others(X, Y, doc)) for doc in range(len(X))]
    cold = [refit.log_likelihood(X[[d]], Y[[d]])[0] for d, refit in enumerate(refits)]
    np.testing.assert_allclose(relearned, cold, rtol=1e-4)


@pytest.mark.parametrize("smoothing", [1e-300, 0.5])
@pytest.mark.parametrize("model", [NaiveBayes(), *MIXTURES])
def test_words_of_an_unknown_label_are_equally_likely(model, smoothing):
    """Without the only document of a label, its words have the probabilities of smoothing alone."""
    X, Y = np.array([[3, 1, 0], [0, 2, 7]]), [["a"], ["b"]]
    alone = clone(model).set_params(smoothing=smoothing).fit(X[:1], Y[:1])
    two = clone(model).set_params(smoothing=smoothing).fit(X, Y)

    np.testing.assert_allclose(alone.loo_log_likelihood(X[:1], Y[:1]), 4 * np.log(1 / 3))
    np.testing.assert_allclose(two.loo_log_likelihood(X, Y), np.array([4, 9]) * np.log(1 / 3))


def test_nothing_is_left_of_one_document():
    """A model of one document has nothing left without it."""
    for model in (NaiveBayes(), PMM1(temperature=1.0)):
        with pytest.raises(ValueError, match="at least two are needed"):
            model.fit([[1, 2]], [["a"]]).loo_predict([[1, 2]], [["a"]])


@pytest.mark.parametrize("model", MIXTURES)
@given(documents=matrices(min_docs=2, labelled=True))
def test_single_labels_need_no_em(model, documents):
    """If each document has one label, the likelihood is exact."""
    X, Y = documents
    Y = np.eye(Y.shape[1], dtype=int)[Y.argmax(axis=1)]
    model.fit(X, Y)

    scores = model.loo_log_likelihood(X, Y)

    for doc in range(len(X)):
        without = type(model)(**FIXED).fit(*others(X, Y, doc))
        expected = without.log_likelihood(X[[doc]], Y[[doc]])
        np.testing.assert_allclose(scores[[doc]], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["labelset", "labels", "uniform"])
@given(documents=matrices(min_docs=2, labelled=True))
def test_prior_is_that_of_the_other_documents(kind, documents):
    """The label set of a document that is left out has one document less, perhaps none."""
    X, Y = documents
    model = PMM1(prior=kind, temperature=1.0).fit(X, Y)
    Y = sparse.csr_matrix(Y, dtype=float)

    for group in leave_one_out.groups(model, sparse.csr_matrix(X, dtype=float), Y):
        prior = prior_of(model).without(group.table_row)
        for doc in group.docs:
            without = PMM1(prior=kind, temperature=1.0).fit(*others(X, Y.toarray(), doc))
            np.testing.assert_allclose(
                prior.log_prior(Y), without.log_prior(Y), rtol=1e-9, atol=1e-9
            )
            assert group.allowed.tolist() == (without.label_docs_ > 0).tolist()
            assert group.fallback.tolist() == without.fallback.tolist()


@pytest.mark.parametrize("model", [PMM1(**FIXED), PDMM(**FIXED)])
def test_answers_are_those_of_a_fit_without_the_document(model):
    """With EM steps, the labels are those of a cold fit, too."""
    X, Y = worded(30, seed=1)
    model.fit(X, Y)

    answers = model.loo_predict(X[:8], Y[:8], em_steps=200)

    for doc, answer in enumerate(answers):
        without = type(model)(**FIXED).fit(*others(X, Y, doc))
        assert answer.tolist() == without.predict(X[[doc]])[0].tolist()


def test_one_label_a_document():
    """A 1-D target gives 1-D answers, those of a model that never saw the document."""
    X, Y = worded()
    y = np.array(["film", "science", "sport"])[Y.argmax(axis=1)]

    answers = NaiveBayes().fit(X, y).loo_predict(X, y)

    for doc, answer in enumerate(answers):
        assert answer == NaiveBayes().fit(*others(X, y, doc)).predict(X[[doc]])[0]


@pytest.mark.parametrize("model", [NaiveBayes(), PMM1()])
def test_documents_that_were_not_learned(model):
    """Other labels, more words, or fewer words than a set's only document are rejected."""
    X, Y = [[3, 0], [2, 1], [0, 2]], [["a"], ["a"], ["b"]]
    model.fit(X, Y)

    with pytest.raises(ValueError, match="document 0 was not learned with these labels"):
        model.loo_predict([[3, 0]], [["a", "b"]])
    with pytest.raises(ValueError, match=r"document 1 was not learned\."):
        model.loo_predict([[3, 0], [6, 0]], [["a"], ["a"]])
    with pytest.raises(ValueError, match=r"document 0 was not learned\."):
        model.loo_log_likelihood([[0, 1]], [["b"]])


def test_a_prior_without_its_only_document():
    """Without its only document, a set has the prior of a set that was not seen."""
    sets = sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    prior = SetPrior("labelset", sets, np.array([3.0, 1.0, 2.0]))

    without = prior.without(1)

    rest = SetPrior("labelset", sets[[0, 2]], np.array([3.0, 2.0]))
    np.testing.assert_allclose(without.log_prior(sets), rest.log_prior(sets))
    assert prior.set_docs.tolist() == [3.0, 1.0, 2.0]


# Suspicious labels


@pytest.mark.parametrize("model", [NaiveBayes(), *MIXTURES])
def test_audit_agrees_with_the_answers(model):
    """Suspicion is 0 if the document's own set is the best, and positive otherwise."""
    X, Y = worded(60)
    model = clone(model)
    if model.name != "nb":
        model.set_params(decode="map")
    model.fit(X, Y)

    audit = leave_one_out.audit(model, X, Y)

    assert (audit.best >= audit.own).all()
    answers = model.loo_predict(X, Y)
    agrees = (Y * answers).any(axis=1) if model.name == "nb" else (answers == Y).all(axis=1)
    np.testing.assert_array_equal(audit.suspicion == 0, agrees)
    assert 0 < agrees.sum() < len(X)
    np.testing.assert_array_equal(audit.sets.toarray()[agrees], Y[agrees])
    np.testing.assert_array_equal(audit.sets.toarray()[~agrees], answers[~agrees])


@given(matrices(min_docs=2, labelled=True))
def test_audit_is_the_log_joint_without_the_document(documents):
    """Both numbers are log joints of a model that never saw the document."""
    X, Y = documents
    Y = np.eye(Y.shape[1], dtype=int)[Y.argmax(axis=1)]  # nothing is shared
    model = PMM1(temperature=2.0).fit(X, Y)

    audit = leave_one_out.audit(model, X, Y)

    for doc in np.flatnonzero(X.any(axis=1)):
        without = PMM1(temperature=2.0).fit(*others(X, Y, doc))
        own = without.log_joint(X[[doc]], Y[[doc]])[0]
        if Y.sum(axis=0)[Y[doc] > 0] == 1:
            assert audit.alone[doc]
        else:
            np.testing.assert_allclose(audit.own[doc], own, atol=1e-9)
        best = without.log_joint(X[[doc]], audit.sets[[doc]])[0]
        np.testing.assert_allclose(audit.best[doc], best, atol=1e-9)


@pytest.mark.parametrize("model", [NaiveBayes(), PMM1(), PMM1(prior="uniform")])
def test_audit_sets_apart_what_cannot_be_judged(model):
    """The only document of a label is listed apart; one without words or labels is ignored."""
    X = [[3, 0, 1], [3, 1, 0], [0, 3, 1], [0, 0, 0], [1, 1, 1]]
    Y = [["a"], ["a"], ["a", "b"], ["a"], []]
    model.fit(X, Y)

    audit = leave_one_out.audit(model, X, Y)

    assert audit.alone.tolist() == [False, False, True, False, False]
    assert np.isnan(audit.suspicion).tolist() == [False, False, True, True, True]
    assert audit.sets.toarray()[[3, 4]].sum() == 0
    assert model.classes_[audit.sets[2].indices].tolist() == ["a"]


@pytest.mark.parametrize("model", [NaiveBayes(), PMM1()])
def test_audit_of_a_single_document(model):
    """Without its only document there is no model."""
    model.fit([[3, 1]], [["a"]])

    audit = leave_one_out.audit(model, [[3, 1]], [["a"]])

    assert audit.alone.tolist() == [True]
    assert np.isnan(audit.suspicion).all()


def test_words_add_up_to_what_they_change():
    """The gains of the words sum to the difference of log likelihoods without the document."""
    X, Y = worded(30)
    Y = np.eye(3, dtype=int)[Y.argmax(axis=1)]  # nothing is shared
    better = sparse.csr_matrix(1.0 - Y)
    model = PMM1(**FIXED).fit(X, Y)

    gains = leave_one_out.word_gains(model, X, Y, better)

    for doc, gain in enumerate(gains):
        without = PMM1(**FIXED).fit(*others(X, Y, doc))
        own, other = (without.log_likelihood(X[[doc]], sets[[doc]])[0] for sets in (Y, 1 - Y))
        assert gain.sum() == pytest.approx(other - own)


@pytest.mark.parametrize("model", [NaiveBayes(), *MIXTURES])
def test_each_word_has_a_gain(model):
    """There is one number per stored word, and none if the labels stay."""
    X, Y = worded(30)
    model.fit(X, Y)

    gains = leave_one_out.word_gains(model, X, Y, sparse.csr_matrix(Y, dtype=float))

    assert [gain.size for gain in gains] == np.count_nonzero(X, axis=1).tolist()
    assert not np.concatenate(gains).any()


def test_audit_needs_the_counts():
    """The error of a model without its table says what is missing."""
    model = NaiveBayes().fit([[3, 1]], [["a"]])
    model.counts_ = None

    for ask in (leave_one_out.audit, NaiveBayes.loo_predict, NaiveBayes.loo_log_likelihood):
        with pytest.raises(PolytopicError, match="so it has none to leave documents out of"):
            ask(model, [[3, 1]], [["a"]])


@pytest.mark.parametrize("method", ["loo_predict", "loo_log_likelihood"])
def test_steps_are_not_negative(method):
    """The error names a negative number of EM steps."""
    X, Y = corpus()
    model = PMM1(temperature=1.0).fit(X, Y)

    with pytest.raises(ValueError, match="em_steps == -1, must be >= 0"):
        getattr(model, method)(X, Y, em_steps=-1)
