"""The expected contents of a store as plain dictionaries, and documents to put into it."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

from polytopic import Document
from polytopic.counts import LabelSetCounts
from polytopic.store import Store
from polytopic.text import Analyzer
from tests.strategies import LABELS, TERMS

WORDS = Analyzer(None)  # every word is a term
IDS = ["1", "2", "drei", "vier'\"%s", "пять", "6\n"]
TIMES = [None, "2024-01-01", "2024-01-02T12:00:00+02:00", "2025-06-01"]


def open_store(url, **settings):
    """Return the store at a URL, whose terms are plain words."""
    return Store(url, analyzer=WORDS, **settings)


@dataclass(frozen=True)
class Known:
    """A known document: its words, labels, time, and when it was first learned."""

    bag: Counter
    labels: tuple
    time: str | None = None
    moment: str | None = None


def bag_of(document):
    """Return the words of a document."""
    if document.counts is not None:
        return Counter(document.counts)
    return Counter(document.content.split())


def table_of(known):
    """Return the table of known documents, built from scratch."""
    return LabelSetCounts([(k.bag, k.labels) for k in known])


def table_of_documents(documents):
    """Return the table of documents, built from scratch by the analyzer."""
    documents = list(documents)
    X, terms = WORDS.count(documents)
    bags = [
        {terms[column]: count for column, count in zip(row.indices, row.data, strict=True)}
        for row in X
    ]
    return LabelSetCounts(zip(bags, [d.labels for d in documents], strict=True))


def model_bytes(labeler):
    """Return everything that a fitted labeler has learned, bit for bit."""
    arrays = labeler.model_.to_arrays()
    return {
        "classes": labeler.classes_.tolist(),
        "vocabulary": list(labeler.vocabulary_),
        **{name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()},
    }


def label_sets():
    """Draw label sets, some of them empty."""
    return st.sets(st.sampled_from(LABELS), max_size=3).map(sorted)


@st.composite
def documents(draw, ids=IDS):
    """Draw a document: a text or counts, some empty, with or without labels and a time."""
    if draw(st.booleans()):
        content = {"text": " ".join(draw(st.lists(st.sampled_from(TERMS), max_size=6)))}
    else:
        counts = st.sampled_from([1, 2, 255, 256, 70_000, 2**33])
        content = {"counts": draw(st.dictionaries(st.sampled_from(TERMS), counts, max_size=3))}
    about = {"id": draw(st.sampled_from(ids)), "labels": draw(label_sets())}
    return Document.from_dict(about | content | {"time": draw(st.sampled_from(TIMES))})


def batches(max_size=4, **settings):
    """Draw documents to learn together; an id may occur twice."""
    return st.lists(documents(**settings), max_size=max_size)
