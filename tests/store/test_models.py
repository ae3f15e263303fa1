"""Published models: what they are known to have seen, and which of them goes on answering."""

import pytest

from polytopic import Document
from polytopic.errors import StoreError, StoreWarning
from tests.store.plain import model_bytes, open_store

WHEAT = Document("1", "wheat corn", labels=["grain"])
OIL = Document("2", "oil barrel", labels=["oil"])
SECRET = Document("3", "oil xylophone", labels=["oil"])
MOON = Document("4", "moon star", labels=["space"])


def test_what_was_forgotten_meanwhile_marks(url):
    """A model that was fitted before a document was forgotten is marked when it is published."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, SECRET])
        labeler = store.fit()
        gone = store.forget(["3"]).revision_after

        store.publish(labeler)
        store.publish(as_of=1)  # which leaves it out
        store.publish()

        assert [one.marked for one in store.history()] == [None, None, gone]


def test_a_model_of_another_store_is_from_elsewhere(url, path):
    """What a model of another store saw is not known here, so that all that is forgotten marks."""
    with open_store(path) as other, open_store(url) as store:
        other.learn([MOON])
        store.learn([WHEAT, OIL])
        store.learn([SECRET])

        store.publish(other.fit())

        assert store.history()[0].origin.revision is None
        assert store.labeler().predict(["oil"]) == [["space"]]
        assert store.forget(["3"]).marked_models == [1]


def test_a_model_that_learned_more_is_from_elsewhere(path):
    """A model of the store that learned by itself has seen what the store does not know."""
    with open_store(path) as store:
        store.learn([WHEAT, OIL])

        store.publish(store.fit().learn([MOON]))

        assert store.history()[0].origin.revision is None
        assert store.labeler().predict(["moon"]) == [["space"]]


def test_a_model_of_a_past_moment_goes_on_answering(url):
    """It is not fitted afresh on what it was not meant to see."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL])
        store.learn([MOON])

        store.publish(as_of=1)

        assert store.labeler().classes_.tolist() == ["grain", "oil"]
        assert store.refresh() is None


@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_what_stays_is_refreshed_without_what_was_forgotten(url, is_rolled_back):
    """A model that was rolled back to, or of a past moment, is fitted on what is left of it."""
    with open_store(url) as store:
        store.learn([WHEAT, OIL, SECRET])
        first = store.publish()
        store.learn([MOON])
        store.publish(as_of=None if is_rolled_back else 1)
        if is_rolled_back:
            store.rollback(first)
        store.forget(["3"])
        with pytest.warns(StoreWarning, match="refresh it"):
            store.labeler()

        number = store.refresh()

        newest = store.history()[0]
        assert (newest.id, newest.marked, newest.current) == (number, None, True)
        assert model_bytes(store.labeler()) == model_bytes(store.fit(as_of=1))
        assert store.labeler().classes_.tolist() == ["grain", "oil"]
        assert store.refresh() is None


def test_purging_later(url):
    """What was forgotten already is purged from the models when it is forgotten again."""
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
    """That there is none is told in terms of the store."""
    with open_store(path, model=model) as store:
        with pytest.raises(StoreError, match="the store has no labelled document; a model needs"):
            store.labeler()
        store.learn([WHEAT, OIL])
        with pytest.raises(StoreError, match="no labelled document of this moment, this time"):
            store.fit(labels=["space"])
