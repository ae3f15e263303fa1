"""Limits of what requests may contain, and schemas derived from records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from pydantic import ValidationError

from polytopic.explain import Place
from polytopic.explain.explanation import to_plain
from polytopic.server import schemas
from polytopic.server.suggest import parse_request

TEXT = {"text": "goal"}
NUMBERS = [  # request, its other fields, the field, its minimum, its maximum and its default
    (schemas.SuggestOneRequest, TEXT, "k", 1, 1000, 5),
    (schemas.SuggestOneRequest, TEXT, "threshold", 0, 1, None),
    (schemas.SuggestOneRequest, TEXT, "level", 0, 1000, None),
    (schemas.SuggestOneRequest, TEXT, "abstain", 0, 1, None),
    (schemas.RollbackRequest, {}, "number", 1, 2**53, None),
    (schemas.LabelsQuery, {}, "k", 1, 10_000, 1000),
    (schemas.LabelQuery, {}, "k", 1, 1000, 20),
    (schemas.QueueQuery, {}, "k", 1, 200, 20),
]
SIZES = [  # request, the field, and values of the smallest and the largest size
    (schemas.SuggestRequest, "documents", [TEXT], [TEXT] * 10_000),
    (schemas.LearnRequest, "documents", [{**TEXT, "id": "1"}], [{**TEXT, "id": "1"}] * 10_000),
    (schemas.ForgetRequest, "ids", ["1"], ["1"] * 10_000),
    (schemas.RelabelRequest, "labels", {"1": []}, {str(k): [] for k in range(10_000)}),
]


@pytest.mark.parametrize(("request_", "needed", "field", "least", "greatest", "default"), NUMBERS)
def test_numbers_have_limits(request_, needed, field, least, greatest, default):
    """Values at the limits are accepted, and none beyond them."""
    for value in (least, greatest):
        assert getattr(request_(**needed, **{field: value}), field) == value
    for value in (least - 1, greatest + 1):
        with pytest.raises(ValidationError, match=field):
            request_(**needed, **{field: value})
    assert getattr(request_(**needed), field) == default


@pytest.mark.parametrize(("request_", "field", "smallest", "greatest"), SIZES)
def test_requests_have_a_size(request_, field, smallest, greatest):
    """A request has between one and ten thousand documents."""
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
def test_learned_documents_have_limits(field, values):
    """Names have a valid length and can be stored in any database; counts are positive."""
    good = {"id": "x" * 500, "labels": ["x" * 500], "counts": {"goal": 0.5}}

    schemas.LabelledDocument(**good)
    for value in values:
        with pytest.raises(ValidationError, match=field):
            schemas.LabelledDocument(**good | {field: value})


@pytest.mark.parametrize("content", [{}, {"text": "a", "counts": {"a": 1}}, {"text": None}])
def test_a_document_has_one_content(content):
    """A document has exactly one of text, fields and counts."""
    with pytest.raises(ValidationError, match="exactly one of text, fields and counts"):
        schemas.NewDocument(**content)


def test_unknown_fields_are_rejected():
    """A misspelt option is not ignored."""
    with pytest.raises(ValidationError, match="treshold"):
        schemas.SuggestOneRequest(text="goal", treshold=0.5)


def test_long_texts_are_not_explained():
    """A text, or all its fields together, may have a million characters."""
    most = 1 << 20

    schemas.ExplainRequest(text="x" * most)
    for content in ({"text": "x" * (most + 1)}, {"fields": {"a": "x" * most, "b": "x"}}):
        with pytest.raises(ValidationError, match="at most 1,048,576"):
            schemas.ExplainRequest(**content)


def test_single_document_request():
    """One document may be given in place of a list."""
    one = parse_request(b'{"text": "goal", "id": "7", "k": 3}')
    many = parse_request(b'{"documents": [{"counts": {"goal": 2}}], "k": 3}')

    assert one.k == many.k == 3
    assert [document.to_item(1) for document in one.documents] == [("7", "goal")]
    assert [document.to_item(4) for document in many.documents] == [("4", {"goal": 2})]


def test_equal_options_have_equal_keys():
    """Requests with equal options can share a batch."""
    one, same, other = (
        schemas.SuggestOneRequest(text=text, include=["a"], k=k)
        for text, k in (("goal", 3), ("moon", 3), ("goal", 4))
    )

    assert one.key == same.key != other.key
    assert hash(one.key) == hash(same.key)


class _Part(NamedTuple):
    """A part."""

    share: float
    names: dict[str, float]


@dataclass
class _Record:
    """A record.

    With details that the schema leaves out.
    """

    label: str
    parts: list[_Part]
    best: _Part | None
    find: Callable[[], list[int]]


def test_response_schema():
    """Nested records become nested schemas, numbers may be null, and functions are left out."""
    schema = schemas.response_schema(_Record).model_json_schema()
    part = schema["$defs"]["_Part"]["properties"]

    assert schema["description"] == "A record."
    assert schema["required"] == ["label", "parts", "best"]
    assert schema["properties"]["parts"]["items"] == {"$ref": "#/$defs/_Part"}
    assert {"type": "null"} in schema["properties"]["best"]["anyOf"]
    assert part["share"]["anyOf"] == [{"type": "number"}, {"type": "null"}]
    assert part["names"]["additionalProperties"]["anyOf"] == part["share"]["anyOf"]


def test_responses_have_the_schemas_of_records():
    """What ``to_dict`` returns fits the schema, including infinite numbers."""
    place = Place(0, 4, "goal", {"sport": 1.0}, float("inf"))
    schema = schemas.response_schema(Place)

    assert set(schema.model_fields) == set(Place._fields)
    assert schema.model_validate(to_plain(place)).evidence is None
