"""What requests may hold, and how much of it."""

import pytest
from pydantic import ValidationError

from polytopic.server import schemas

TEXT = {"text": "goal"}
NUMBERS = [  # the request, what else it needs, the field, its least, its greatest and its default
    (schemas.SuggestOneRequest, TEXT, "k", 1, 1000, 5),
    (schemas.SuggestOneRequest, TEXT, "threshold", 0, 1, None),
    (schemas.SuggestOneRequest, TEXT, "level", 0, 1000, None),
    (schemas.SuggestOneRequest, TEXT, "abstain", 0, 1, None),
    (schemas.RollbackRequest, {}, "number", 1, 2**53, None),
    (schemas.LabelsQuery, {}, "k", 1, 10_000, 1000),
    (schemas.LabelQuery, {}, "k", 1, 1000, 20),
    (schemas.QueueQuery, {}, "k", 1, 200, 20),
]
SIZES = [  # the request, the field, and what of the smallest and the greatest size goes into it
    (schemas.SuggestRequest, "documents", [TEXT], [TEXT] * 10_000),
    (schemas.LearnRequest, "documents", [{**TEXT, "id": "1"}], [{**TEXT, "id": "1"}] * 10_000),
    (schemas.ForgetRequest, "ids", ["1"], ["1"] * 10_000),
    (schemas.RelabelRequest, "labels", {"1": []}, {str(k): [] for k in range(10_000)}),
]


@pytest.mark.parametrize(("request_", "needed", "field", "least", "greatest", "default"), NUMBERS)
def test_numbers_have_limits(request_, needed, field, least, greatest, default):
    """The limits themselves are taken, and nothing beyond them."""
    for value in (least, greatest):
        assert getattr(request_(**needed, **{field: value}), field) == value
    for value in (least - 1, greatest + 1):
        with pytest.raises(ValidationError, match=field):
            request_(**needed, **{field: value})
    assert getattr(request_(**needed), field) == default


@pytest.mark.parametrize(("request_", "field", "smallest", "greatest"), SIZES)
def test_requests_have_a_size(request_, field, smallest, greatest):
    """At least one document, and ten thousand at most."""
    for value in (smallest, greatest):
        assert len(getattr(request_(**{field: value}), field)) == len(value)
    more = {**greatest, "x": []} if isinstance(greatest, dict) else [*greatest, greatest[0]]
    for value in (type(smallest)(), more):
        with pytest.raises(ValidationError, match=field):
            request_(**{field: value})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("id", ["", "x" * 501, "a\0b"]),
        ("labels", [[""], ["x" * 501], ["a\0b"], ["x"] * 10_001]),
        ("counts", [{"goal": 0}, {"goal": -1}, {"goal": float("inf")}, {"goal": float("nan")}]),
    ],
)
def test_what_is_learned_has_limits(field, values):
    """Names are neither empty nor endless, and can be stored anywhere; counts count something."""
    good = {"id": "x" * 500, "labels": ["x" * 500], "counts": {"goal": 0.5}}

    schemas.LabelledDocument(**good)
    for value in values:
        with pytest.raises(ValidationError, match=field):
            schemas.LabelledDocument(**good | {field: value})


@pytest.mark.parametrize("content", [{}, {"text": "a", "counts": {"a": 1}}, {"text": None}])
def test_a_document_says_one_thing(content):
    """Exactly one of text, fields and counts."""
    with pytest.raises(ValidationError, match="exactly one of text, fields and counts"):
        schemas.NewDocument(**content)


def test_what_is_not_known_is_refused():
    """A misspelt option is not ignored."""
    with pytest.raises(ValidationError, match="treshold"):
        schemas.SuggestOneRequest(text="goal", treshold=0.5)


def test_long_texts_are_not_explained():
    """A text or its fields together may have a megabyte."""
    most = 1 << 20

    schemas.ExplainRequest(text="x" * most)
    for content in ({"text": "x" * (most + 1)}, {"fields": {"a": "x" * most, "b": "x"}}):
        with pytest.raises(ValidationError, match="at most 1,048,576"):
            schemas.ExplainRequest(**content)


def test_one_document_is_a_request_of_its_own():
    """Its options are those of the request, and its content is the document's."""
    asked = schemas.SuggestRequest.model_validate({"text": "goal", "id": "7", "k": 3})

    assert asked.k == 3
    assert [document.to_document(1).id for document in asked.documents] == ["7"]
    assert schemas.NewDocument(text="goal").to_document(4).id == "4"


def test_equal_requests_have_equal_keys():
    """What is asked alike is answered together."""
    one, same, other = (
        schemas.SuggestOneRequest(text=text, include=["a"], k=k)
        for text, k in (("goal", 3), ("moon", 3), ("goal", 4))
    )

    assert one.key == same.key != other.key
    assert hash(one.key) == hash(same.key)
