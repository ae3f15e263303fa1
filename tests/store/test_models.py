"""Published models: what they have seen, and which of them is active."""

import warnings

import pytest

from polytopic import Document
from polytopic.errors import StoreError, StoreWarning
from polytopic.labeler.files import to_bytes
from polytopic.store import models
from tests.store.plain import model_bytes, open_store

WHEAT = Document("1", "wheat corn", labels=["grain"])
OIL = Document("2", "oil barrel", labels=["oil"])
SECRET = Document("3", "oil xylophone", labels=["oil"])
MOON = Document("4", "moon star", labels=["space"])


def test_forgetting_before_publishing_marks_the_model(url):
    """A model that was fitted before a document was forgotten is marked when it is published."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, SECRET])
        labeler = store.fit()
        revision = store.forget(["3"]).revision_after

        store.publish(labeler)
        store.publish(as_of=1)  # which omits it
        store.publish()

        assert [one.marked for one in store.history()] == [None, None, revision]


@pytest.mark.parametrize("action", ["publish", "refresh"])
def test_purging_before_publishing_refits_the_model(url, action, monkeypatch):
    """A model is fitted again if a document that it has seen is purged before it is stored."""

    def packed(*arguments, **options):
        with open_store(url) as other:
            other.forget(["3"], purge=True)
        return to_bytes(*arguments, **options)

    with open_store(url) as store:
        store.learn([WHEAT, OIL])
        store.publish()
        store.learn([SECRET])
        monkeypatch.setattr("polytopic.store.models.to_bytes", packed)

        getattr(store, action)()

        assert [one.marked for one in store.history()] == [None, None]
        assert b"xylophone" not in to_bytes(store.current())


def test_a_model_of_another_store_is_foreign(url, path):
    """The store does not know what it saw, so forgetting any document marks it."""
    with open_store(path) as other, open_store(url) as store:
        other.learn([MOON])
        store.learn([WHEAT, OIL])
        store.learn([SECRET])

        store.publish(other.fit())

        assert store.history()[0].origin.base == store.history()[0].id
        assert store.labeler().predict(["oil"]) == [["space"]]
        assert store.forget(["3"]).marked_models == [1]


def test_a_model_that_learned_more_is_foreign(path):
    """A model that learned outside the store has seen documents unknown to the store."""
    with open_store(path) as store:
        store.learn([WHEAT, OIL])

        store.publish(store.fit().learn([MOON]))

        assert store.history()[0].origin.base == store.history()[0].id
        assert store.labeler().predict(["moon"]) == [["space"]]


def test_a_model_of_a_past_moment_stays_active(url):
    """It is not fitted again on documents outside its selection."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL])
        store.learn([MOON])

        store.publish(as_of=1)

        assert store.labeler().classes_.tolist() == ["grain", "oil"]
        assert store.refresh() is None


@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_models_are_refreshed_without_forgotten_documents(url, is_rolled_back):
    """A model of a past moment, or after a rollback, is fitted on what is left of its documents."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, SECRET])
        first = store.publish()
        store.learn([MOON])
        store.publish(as_of=None if is_rolled_back else 1)
        if is_rolled_back:
            store.rollback(first)
        store.forget(["3"])
        with pytest.warns(StoreWarning, match="refresh it"):
            unpublished = store.labeler()

        number = store.refresh()

        newest = store.history()[0]
        assert (newest.id, newest.marked, newest.current) == (number, None, True)
        assert model_bytes(store.labeler()) == model_bytes(store.fit(as_of=1))
        assert model_bytes(unpublished) == model_bytes(store.labeler())
        assert store.labeler().classes_.tolist() == ["grain", "oil"]
        assert store.refresh() is None


def test_purging_later(url):
    """A document that is already forgotten is purged from the models when it is forgotten again."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL])
        store.publish()
        store.learn([SECRET])
        store.publish()
        store.forget(["3"])

        receipt = store.forget(["3"], purge=True)

        assert (receipt.purged_models, receipt.missing, receipt.changed) == ([2], ["3"], False)
        assert [(one.id, one.current) for one in store.history()] == [(1, True)]


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_a_model_needs_a_document(path, model):
    """The error is about the store."""
    with open_store(path, model=model) as store:
        with pytest.raises(StoreError, match="the store has no labelled document; a model needs"):
            store.labeler()
        store.learn([WHEAT, OIL])
        with pytest.raises(StoreError, match="no labelled document with these times and labels"):
            store.fit(labels=["space"])


@pytest.mark.parametrize("model", ["pmm1", "mml"])
@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_a_marked_model_does_not_answer(url, model, is_rolled_back):
    """Whatever the current model is, its labeler has not seen a forgotten document."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, MOON, SECRET])
        first = store.publish(model=model)
        if is_rolled_back:
            store.publish(model="nb")
            store.rollback(first)
        assert "xylophone" in store.labeler().vocabulary_.terms
        store.forget(["3"])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            labeler = store.labeler()

        assert "xylophone" in store.current().vocabulary_.terms
        assert "xylophone" not in labeler.vocabulary_.terms
        assert "xylophone" not in labeler.counts_.terms
        assert labeler.model_.name == model


def test_a_marked_foreign_model_does_not_answer(url, path):
    """It cannot be fitted again without the forgotten document; the error says what to do."""
    with open_store(path) as other, open_store(url) as store:
        other.learn([MOON, SECRET])
        store.learn([WHEAT, OIL, SECRET])
        store.publish(other.fit())
        assert store.labeler().map().labels
        store.forget(["3"])

        for call in (store.labeler, store.refresh):
            with pytest.raises(
                StoreError, match=r"model 1 was not fitted on this store .* publish"
            ):
                call()

        store.publish()
        assert store.labeler().predict(["oil"]) == [["oil"]]


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_a_model_has_the_counts_it_was_fitted_on(url, model):
    """The same after a rollback, or when the model is behind."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, SECRET])
        first = store.publish(model=model)
        counts = store.counts()
        store.learn([MOON])
        store.publish(model="nb")
        store.rollback(first)

        labeler = store.labeler()

        assert labeler.counts_ == counts
        assert {label.label for label in labeler.map().labels} == {"grain", "oil"}
        assert store.labeler(like=labeler) is labeler


def test_a_document_model_that_is_behind_has_its_counts(url):
    """Its map is that of the documents it was fitted on."""
    with open_store(url, model="mml") as store:
        store.learn([WHEAT, OIL, SECRET])
        store.publish()
        store.learn([MOON])

        with pytest.warns(StoreWarning, match="1 revisions behind"):
            labeler = store.labeler()

        assert {label.label for label in labeler.map().labels} == {"grain", "oil"}


def test_refreshing_replaces_only_the_refreshed_model(url, monkeypatch):
    """A model that was published during a refresh stays active."""
    with open_store(url) as store, open_store(url) as other:
        store.learn([WHEAT, OIL])
        store.publish(labels=["grain", "oil"])
        store.learn([MOON])
        pack_labeler = models.pack_labeler

        def publish_another(*arguments):
            monkeypatch.undo()
            other.publish(model="nb")
            return pack_labeler(*arguments)

        monkeypatch.setattr(models, "pack_labeler", publish_another)

        assert store.refresh() is None

        assert [(one.id, one.name, one.current) for one in store.history()] == [
            (2, "nb", True),
            (1, "pmm1", False),
        ]
