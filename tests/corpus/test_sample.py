"""The bundled corpus."""

from polytopic.corpus import load_sample


def test_the_sample_is_ready_for_use():
    """Every document of the bundled news has a text, labels, a time and an id of its own."""
    documents = load_sample()

    assert documents
    assert all(d.text and d.labels and d.time for d in documents)
    assert len({d.id for d in documents}) == len(documents)
