"""Document: what it stores and what it rejects."""

import math
from datetime import UTC, date, datetime

import numpy as np
import pytest

from polytopic.corpus import Document


def test_labels_are_sorted_and_unique():
    """Order and repetition of labels do not matter."""
    document = Document("1", text="", labels=["wheat", "corn", "wheat"])

    assert document.labels == ("corn", "wheat")


@pytest.mark.parametrize("content", [{"text": ""}, {"counts": {}}, {"fields": {"title": "a"}}])
def test_content(content):
    """An analyzer gets whichever of the three contents a document has."""
    document = Document("1", **content)

    assert document.content == next(iter(content.values()))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1987-02-26", datetime(1987, 2, 26, tzinfo=UTC)),
        ("1987-02-26T15:01:02Z", datetime(1987, 2, 26, 15, 1, 2, tzinfo=UTC)),
        ("1987-02-26T15:00+02:00", datetime(1987, 2, 26, 13, tzinfo=UTC)),
        (date(1987, 2, 26), datetime(1987, 2, 26, tzinfo=UTC)),
        (datetime(1987, 2, 26), datetime(1987, 2, 26, tzinfo=UTC)),
    ],
)
def test_time_has_a_zone(given, kept):
    """Every form of time becomes a datetime with a time zone, UTC by default."""
    document = Document("1", text="", time=given)

    assert document.time == kept


def test_times_with_and_without_zone_compare():
    """A corpus that mixes both can be sorted."""
    times = ["2020-01-01T01:00+02:00", "2020-01-01", "2019-12-31T23:30:00"]

    documents = [Document(time, text="", time=time) for time in times]

    assert [d.id for d in sorted(documents, key=lambda d: d.time)] == [times[0], times[2], times[1]]


def test_numbers_of_numpy_become_plain():
    """Counts of any numeric type can be written as JSON."""
    document = Document("1", counts={"a": np.int64(2), "b": np.float32(0.5)})

    assert {type(count) for count in document.counts.values()} == {float}


def test_dictionary_round_trip():
    """A document and its JSON object are equivalent."""
    document = Document("1", text="a", labels=["x"], time="2020-05-01T12:00", split="test")

    assert Document.from_dict(document.to_dict()) == document


def test_from_dict_ignores_unknown_keys():
    """Unknown keys of JSON objects are ignored; null means missing."""
    values = {"id": 7, "text": "a", "author": "x", "labels": None, "time": None, "split": ""}

    document = Document.from_dict(values)

    assert document == Document("7", text="a")


def test_from_dict_uses_the_default_id():
    """The object's own id takes precedence over the caller's."""
    assert Document.from_dict({"text": "a"}, id="17").id == "17"
    assert Document.from_dict({"text": "a", "id": "a"}, id="17").id == "a"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"labels": "earn"}, "labels == 'earn', must be a list of strings."),
        ({"labels": 5}, "labels == 5, must be a list of strings."),
        ({"labels": {"a": 1}}, "labels == {'a': 1}, must be a list of strings."),
        ({"labels": ["a", 1]}, "labels == ['a', 1], must be a list of non-empty strings"),
        ({"labels": [""]}, "labels == [''], must be"),
        ({"text": 5}, "text == 5, must be a string."),
        ({"text": None}, "text is missing, a document must have one of text, counts and fields."),
        ({"counts": {}}, "text and counts are given, must be only one of"),
        ({"text": None, "counts": ["a"]}, "counts == ['a'], must be an object"),
        ({"text": None, "counts": {"a": "b"}}, "counts['a'] == 'b', must be a number > 0"),
        ({"text": None, "counts": {"a": 1e300}}, "counts['a'] == 1e+300, must be a number > 0"),
        ({"text": None, "counts": {"a": True}}, "counts['a'] == True, must be"),
        ({"text": None, "counts": {"a": 0}}, "counts['a'] == 0, must be"),
        ({"text": None, "counts": {"a": 1, "b": -1}}, "counts['b'] == -1, must be"),
        ({"text": None, "counts": {"a": math.nan}}, "counts['a'] == nan, must be"),
        ({"text": None, "counts": {"a": math.inf}}, "counts['a'] == inf, must be"),
        ({"text": None, "counts": {"a": 10**400}}, "must be a number > 0 and <= 2**53."),
        ({"text": None, "counts": {1: 1}}, "counts has the key 1, must be a string."),
        ({"text": None, "fields": "a"}, "fields == 'a', must be an object"),
        ({"text": None, "fields": {"title": 1}}, "fields['title'] == 1, must be a string."),
        ({"text": None, "fields": {1: "a"}}, "fields has the key 1, must be a string."),
        ({"time": "yesterday"}, "time == 'yesterday', must be an ISO 8601 time, such as"),
        ({"time": 1234567890}, "time == 1234567890, must be an ISO 8601 time"),
        ({"split": 1}, "split == 1, must be a string."),
        ({"id": None}, "id == None, must be a non-empty string or an integer."),
        ({"id": ""}, "id == '', must be"),
        ({"id": True}, "id == True, must be"),
        ({"id": 1.5}, "id == 1.5, must be"),
    ],
)
def test_a_wrong_value_is_named(values, sentence):
    """The message names the key, the value and what is needed."""
    with pytest.raises(ValueError, match=r"must be|missing") as error:
        Document.from_dict({"id": "1", "text": "a"} | values)

    assert sentence in str(error.value)


def test_a_long_wrong_value_is_shortened():
    """The message stays short, however long the value is."""
    with pytest.raises(ValueError, match="must be a list of strings") as error:
        Document("1", text="", labels="a" * 10**6)

    assert len(str(error.value)) < 200
