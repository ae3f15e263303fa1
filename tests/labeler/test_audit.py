"""Suspicious labels of training texts."""

import numpy as np
import pytest

from polytopic import MML, Labeler, PolytopicError, load
from polytopic.corpus import load_sample
from tests.models.test_count_models import same_parameters


@pytest.fixture(scope="module")
def planted():
    """Return the sample's documents with their labels, and the positions of five wrong ones."""
    rng = np.random.default_rng(0)
    documents = load_sample()
    labels = [list(document.labels) for document in documents]
    wrong = rng.choice(len(documents), size=5, replace=False).tolist()
    for doc in wrong:
        areas = {label.split("/")[0] for label in documents[doc].labels}
        far = [d.labels for d in documents if areas.isdisjoint(n.split("/")[0] for n in d.labels)]
        labels[doc] = list(far[rng.integers(len(far))])
    return [d.text for d in documents], labels, wrong


@pytest.mark.parametrize("model", ["pmm1", "pmm2", "pdmm", "nb"])
def test_planted_errors_come_first(planted, model):
    """Of five labels that were swapped, nearly all are among the ten most suspicious."""
    texts, labels, wrong = planted

    suspects = Labeler(model).fit(texts, labels).audit(texts, labels, k=10)

    assert len(set(wrong) & {suspect.index for suspect in suspects}) >= 4
    suspicion = [suspect.suspicion for suspect in suspects]
    assert suspicion == sorted(suspicion, reverse=True)
    assert suspicion[-1] > 0
    assert 10 <= suspects.doubtful < suspects.audited == len(texts)


def test_a_suspect_shows_what_differs(planted):
    """A suspect lists missing labels, superfluous labels and the words that speak for them."""
    texts, labels, _ = planted
    truth = [set(document.labels) for document in load_sample()]

    first = Labeler("pmm1").fit(texts, labels).audit(texts, labels)[0]

    assert first.labels == labels[first.index]
    assert set(first.better) & truth[first.index]
    assert set(first.missing) == set(first.better) - set(first.labels)
    assert set(first.extra) == set(first.labels) - set(first.better)
    assert first.words == ["model", "language", "small"]
    assert first.id is None


def test_the_audit_changes_nothing(planted):
    """An audit leaves the labeler as it was, and a second audit gives the same result."""
    texts, labels, _ = planted
    labeler, twin = (Labeler("nb").fit(texts, labels) for _ in range(2))

    suspects = labeler.audit(texts, labels)

    assert same_parameters(labeler.model_, twin.model_)
    assert labeler.counts_ == twin.counts_
    assert labeler.audit(texts, labels) == suspects


def test_documents_carry_their_own_labels():
    """Documents bring their own labels and ids; plain texts need separate labels."""
    documents = load_sample()
    labeler = Labeler("nb").fit(documents)

    suspects = labeler.audit(documents, k=3)

    assert len(suspects) == 3
    assert [s.id for s in suspects] == [documents[s.index].id for s in suspects]
    with pytest.raises(ValueError, match="labels is None, must be given"):
        labeler.audit(["a text"])


def test_the_only_text_of_a_label_is_reported_separately():
    """Without it nothing is known about its label, so it is not a suspect."""
    texts = ["goal match", "goal striker match", "orbit moon", "moon rocket orbit", "guitar song"]
    labels = [["sport"], ["sport"], ["space"], ["space"], ["music"]]

    suspects = Labeler("pmm1").fit(texts, labels).audit(texts, labels)

    assert suspects.alone == [4]
    assert 4 not in [suspect.index for suspect in suspects]
    assert suspects.audited == 4


def test_texts_without_known_words_are_skipped():
    """They are neither judged nor reported as alone, and unlabelled texts are skipped."""
    texts = ["goal match", "goal striker", "", "the of and", "orbit"]
    labels = [["sport"], ["sport"], ["sport"], ["sport"], []]

    suspects = Labeler("pmm1").fit(texts, labels).audit(texts, labels)

    assert (suspects.audited, suspects.doubtful, suspects.alone, list(suspects)) == (2, 0, [], [])


def test_unlearned_texts_are_rejected(planted):
    """Texts or labels that the model has not seen cannot be removed from it."""
    texts, labels, _ = planted
    labeler = Labeler("nb").fit(texts, labels)

    with pytest.raises(ValueError, match="document 1 was not learned"):
        labeler.audit(["", " ".join(texts)], labels[:2])
    with pytest.raises(ValueError, match="document 0 was not learned with these labels"):
        labeler.audit(texts[:1], [labeler.classes_.tolist()])
    with pytest.raises(ValueError, match="label 'golf' is not known"):
        labeler.audit(texts[:1], [["golf"]])
    with pytest.raises(ValueError, match="k == 0, must be >= 1"):
        labeler.audit(texts, labels, k=0)


def test_a_loaded_labeler_can_audit(planted, tmp_path):
    """It gives the same audit as before saving, unless it was saved without its counts."""
    texts, labels, _ = planted
    labeler = Labeler("nb").fit(texts, labels)
    labeler.save(tmp_path / "whole.model")
    labeler.save(tmp_path / "small.model", counts=False)

    loaded = load(tmp_path / "whole.model").audit(texts, labels)

    assert loaded == labeler.audit(texts, labels)
    with pytest.raises(PolytopicError, match="saved without its counts"):
        load(tmp_path / "small.model").audit(texts, labels)


# By folds


@pytest.fixture(scope="module")
def linear(planted):
    """Return a labeler that has learned the documents with wrong labels."""
    texts, labels, _ = planted
    return Labeler(MML()).fit(texts, labels)


@pytest.mark.parametrize("model", ["mml", "svm", "knn"])
def test_planted_errors_are_found_by_folds(planted, model):
    """A model that learns from documents finds most of them, and all their facts agree."""
    texts, labels, wrong = planted

    suspects = Labeler(model).fit(texts, labels).audit(texts, labels, k=15)

    assert len(set(wrong) & {suspect.index for suspect in suspects}) >= 4
    suspicion = [suspect.suspicion for suspect in suspects]
    assert suspicion == sorted(suspicion, reverse=True)
    assert suspects.audited + len(suspects.alone) == len(texts)
    assert 15 <= suspects.doubtful < suspects.audited
    for suspect in suspects:
        assert suspect.labels == labels[suspect.index]
        assert suspect.labels != suspect.better
        assert set(suspect.missing) == set(suspect.better) - set(suspect.labels)
        assert set(suspect.extra) == set(suspect.labels) - set(suspect.better)


def test_texts_are_left_out_of_what_judges_them(planted, linear):
    """The audit is that of models fitted without each fold; the kept documents teach the rest."""
    texts, labels, _ = planted

    whole = {s.index: s for s in linear.audit(texts, labels, k=len(texts))}
    some = linear.audit(texts[:40], labels[:40], k=40)

    assert some.audited + len(some.alone) == 40
    shared = [s for s in some if s.index in whole]
    assert len(shared) > len(some) / 2  # nearly the same documents have taught both
    assert linear.audit(texts[:40], labels[:40], k=40) == some


def test_a_single_text_is_judged_by_the_others(planted, linear):
    """Without kept documents, nothing is known of it."""
    texts, labels, wrong = planted
    forgetful = Labeler(MML(), keep_documents=False).fit(texts, labels)

    (suspect,) = linear.audit([texts[wrong[0]]], [labels[wrong[0]]])
    alone = forgetful.audit([texts[wrong[0]]], [labels[wrong[0]]])

    assert suspect.labels == labels[wrong[0]]
    assert (alone, alone.audited) == ([], 0)


def test_the_words_speak_for_the_better_labels(planted, linear):
    """They occur in the text, and weigh more for the better labels than for its own."""
    texts, labels, _ = planted

    suspects = linear.audit(texts, labels, k=10)

    for suspect in suspects:
        assert set(suspect.words) <= set(linear.analyzer_.terms(texts[suspect.index]))
    assert sum(bool(suspect.words) for suspect in suspects) >= 8


def test_folds_skip_what_cannot_be_judged():
    """Texts without labels or known words, and the only text of a label."""
    texts = ["goal match", "goal striker match", "orbit moon", "moon rocket orbit", "guitar goal"]
    labels = [["sport"], ["sport"], ["space"], ["space"], ["music"]]

    suspects = Labeler(MML()).fit(texts, labels).audit([*texts, "", "xyzzy"], [*labels, [], []])

    assert suspects.alone == [4]
    assert 4 not in [suspect.index for suspect in suspects]
    assert suspects.audited == 4


def test_folds_reject_unlearned_texts(planted, linear):
    """If the documents are kept, others cannot be audited."""
    texts, labels, _ = planted

    with pytest.raises(ValueError, match="with these labels were not learned"):
        linear.audit(["a goal", *texts], [["sport/football"], *labels])
    with pytest.raises(ValueError, match="label 'golf' is not known"):
        linear.audit(texts[:1], [["golf"]])


def test_one_label_is_never_doubtful():
    """A model with one label predicts it for every text."""
    suspects = (
        Labeler(MML())
        .fit(["goal", "match"], [["sport"]] * 2)
        .audit(["goal", "match"], [["sport"]] * 2)
    )

    assert (suspects, suspects.doubtful) == ([], 0)


def test_a_loaded_document_model_can_audit(planted, linear, tmp_path):
    """With its documents it gives the same audit; without them, one of the given texts."""
    texts, labels, _ = planted
    linear.save(tmp_path / "whole.model")
    linear.save(tmp_path / "small.model", counts=False)

    suspects = linear.audit(texts, labels)

    assert load(tmp_path / "whole.model").audit(texts, labels) == suspects
    assert load(tmp_path / "small.model").audit(texts, labels) == suspects
