"""A quality stands for a model."""

import pytest

import polytopic
from polytopic import Labeler
from polytopic.corpus import Document, load_sample
from polytopic.errors import PolytopicError
from polytopic.models.registry import QUALITIES

DOCUMENTS = load_sample()[:60]


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_quality_is_the_model_that_it_stands_for(quality, tmp_path):
    """It answers as this model does, before and after it is saved."""
    name, parameters = QUALITIES[quality]
    labeler = Labeler(quality=quality).fit(DOCUMENTS)
    same = Labeler(polytopic.models.registry.create_model(name, **parameters)).fit(DOCUMENTS)
    labeler.save(tmp_path / "a.model")

    loaded = polytopic.load(tmp_path / "a.model")

    texts = [document.text for document in DOCUMENTS]
    assert labeler.suggest(texts) == same.suggest(texts) == loaded.suggest(texts)
    assert labeler.model_.name == name


def test_better_qualities_have_more_members():
    """Each adds models to those of the one before."""
    members = [Labeler(quality=quality).fit(DOCUMENTS).model_ for quality in QUALITIES]

    assert members[0].name == "mml"
    assert [m.name for m in members[1].members_] == ["mml", "svm", "knn"]
    assert [m.name for m in members[2].members_] == ["mml", "svm", "knn", "forest"]


def test_the_default_is_balanced():
    """Without a model and a quality, three models are combined."""
    assert Labeler().fit(DOCUMENTS).model_.members == QUALITIES["balanced"][1]["members"]


def test_a_model_and_a_quality():
    """They contradict each other."""
    with pytest.raises(ValueError, match="a quality stands for a model, so give one of them"):
        Labeler("pmm1", quality="best").fit(DOCUMENTS)


@pytest.mark.parametrize("quality", ["good", 1, ""])
def test_unknown_qualities(quality):
    """The error lists the known ones."""
    with pytest.raises(ValueError, match="must be one of fast, balanced, best"):
        Labeler(quality=quality).fit(DOCUMENTS)


def test_documents_with_many_labels(tmp_path):
    """With 15 labels or more per document, the default combines machines and neighbours."""
    many = [f"label{number:02}" for number in range(16)]
    documents = [Document(id=d.id, text=d.text, labels=[*d.labels, *many]) for d in DOCUMENTS]

    labeler = Labeler().fit(documents)
    labeler.save(tmp_path / "a.model")

    assert [member.name for member in labeler.model_.members_] == ["svm", "knn"]
    assert Labeler(quality="best").fit(documents).model_.members_[0].name == "mml"
    texts = [document.text for document in documents]
    assert polytopic.load(tmp_path / "a.model").suggest(texts) == labeler.suggest(texts)


def test_a_stack_on_dask(tmp_path):
    """A stack learns on one machine only; the error names the quality that does more."""
    pytest.importorskip("distributed")
    from polytopic import distributed

    (tmp_path / "corpus.jsonl").write_text('{"text": "goal", "labels": ["sport"]}\n')

    with pytest.raises(PolytopicError, match=r"use another model, or Labeler\(quality='fast'\)"):
        distributed.fit(Labeler(), tmp_path / "corpus.jsonl")
