"""Documents over time, compared with a slow twin that counts one document after another."""

from collections import Counter
from datetime import date, timedelta
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopic.store.analysis import MAX_PERIODS
from tests.store.test_drift import learned, random_stream, start_of

PERIODS = ["day", "week", "month", "year"]
FIRST = date(2023, 12, 25)

streams = st.lists(
    st.tuples(
        st.integers(0, 800), st.lists(st.sampled_from(["arts", "film", "sport"]), unique=True)
    ),
    max_size=12,
).map(
    lambda drawn: [
        {
            "id": str(k),
            "text": "word",
            "labels": labels,
            "time": f"{FIRST + timedelta(days=day)}T{k:02d}:30:00Z",
        }
        for k, (day, labels) in enumerate(drawn)
    ]
)


def slow_timeline(documents, by):
    """Return the first days, the documents of each period, and those of each label."""
    documents = [d for d in documents if d["labels"]]
    if not documents:
        return [], [], {}
    days = sorted(date.fromisoformat(d["time"][:10]) for d in documents)
    every = [days[0] + timedelta(days=k) for k in range((days[-1] - days[0]).days + 1)]
    starts = sorted({start_of({"time": str(day)}, by) for day in every})
    own = Counter(start_of(d, by) for d in documents)
    pairs = Counter((start_of(d, by), label) for d in documents for label in d["labels"])
    labels = sorted({label for d in documents for label in d["labels"]})
    return (
        [str(start) for start in starts],
        [own[start] for start in starts],
        {label: [pairs[start, label] for start in starts] for label in labels},
    )


def check(store, documents):
    """Assert that a store's documents over time are those of the slow twin, for every period."""
    for by in PERIODS:
        timeline = store.timeline(by=by)
        assert timeline.by == by
        assert (timeline.starts, timeline.documents, timeline.labels) == slow_timeline(
            documents, by
        )
    shortest = [by for by in PERIODS if len(slow_timeline(documents, by)[0]) <= MAX_PERIODS]
    assert store.timeline() == store.timeline(by=[*shortest, "year"][0])


@settings(max_examples=30)
@given(streams)
def test_a_slow_twin_agrees(documents):
    """All numbers of all periods, and the period that is chosen by default."""
    with TemporaryDirectory() as folder, learned(f"{folder}/s.db", documents) as store:
        check(store, documents)


@pytest.mark.parametrize("seed", range(2))
def test_corrected_and_forgotten_documents(tmp_path, seed):
    """Only documents that are known now are counted."""
    documents = random_stream(seed)
    wrong = [document | {"labels": ["wrong"], "time": "1999-01-01"} for document in documents[:9]]
    with learned(tmp_path / "s.db", wrong, documents) as store:
        check(store, documents)
        store.forget([d["id"] for d in documents[:20]])

        check(store, documents[20:])


@pytest.mark.parametrize(
    ("days", "by"), [(36, "day"), (37, "week"), (300, "month"), (1500, "year")]
)
def test_auto(tmp_path, days, by):
    """The shortest period with at most 36 intervals, and years for long streams."""
    ends = [date(2021, 3, 1), date(2021, 3, 1) + timedelta(days=days - 1)]
    documents = [
        {"id": str(day), "text": "word", "labels": ["a"], "time": str(day)} for day in ends
    ]
    with learned(tmp_path / "s.db", documents) as store:
        assert store.timeline().by == by


def test_documents_without_a_time(tmp_path):
    """They count on the day when they were first learned."""
    with learned(tmp_path / "s.db") as store:
        time = store.learn([{"id": "x", "text": "word", "labels": ["a"]}]).time

        assert store.timeline().to_dict() == {
            "by": "day",
            "starts": [time[:10]],
            "documents": [1],
            "labels": {"a": [1]},
        }


def test_nothing(tmp_path):
    """A store without labelled documents has no periods; a wrong period is rejected."""
    with learned(tmp_path / "s.db", [{"id": "x", "text": "word"}]) as store:
        assert store.timeline().starts == []
        assert store.timeline(by="week").to_dict() == {
            "by": "week",
            "starts": [],
            "documents": [],
            "labels": {},
        }
        with pytest.raises(ValueError, match="by == 'hour', must be one of auto, day"):
            store.timeline(by="hour")
