"""The reference of the routes, from the OpenAPI document that programs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    """A field of a body, a parameter, or a field of an answer."""

    name: str
    kind: str
    required: bool
    where: str


class Route(NamedTuple):
    """A route: what it does, takes and gives."""

    method: str
    path: str
    summary: str
    description: str
    fields: list[Field]
    answer: list[Field]
    statuses: list[tuple[str, str]]


def routes_of(document: Mapping[str, Any]) -> Iterator[Route]:
    """Yield the routes of an OpenAPI document."""
    schemas = document.get("components", {}).get("schemas", {})
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            answers = about.get("responses", {})
            yield Route(
                method.upper(),
                path,
                about.get("summary", ""),
                about.get("description", ""),
                [*_parameters(about), *_body(about.get("requestBody"), schemas)],
                list(_body(answers.get("200"), schemas)),
                [(status, answer["description"]) for status, answer in sorted(answers.items())],
            )


def _parameters(about: Mapping[str, Any]) -> Iterator[Field]:
    for one in about.get("parameters", ()):
        yield Field(one["name"], _kind(one["schema"]), one.get("required", False), one["in"])


def _body(body: Mapping[str, Any] | None, schemas: Mapping[str, Any]) -> Iterator[Field]:
    schema = (body or {}).get("content", {}).get("application/json", {}).get("schema", {})
    for option in schema.get("anyOf", [schema]):
        found = _resolved(option, schemas)
        for name, field in found.get("properties", {}).items():
            yield Field(name, _kind(field), name in found.get("required", ()), "body")


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas.get(name, schema)


def _kind(schema: Mapping[str, Any]) -> str:
    """Return in a word or two what a value is."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = schema.get("type", "any")
    return f"list of {_kind(schema.get('items', {}))}" if kind == "array" else str(kind)
