"""The OpenAPI document: what routes add to FastAPI's description, and how the API page reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from polytopic.server import schemas
from polytopic.server.limits import JSON
from polytopic.server.problems import MEANINGS, MEDIA_TYPE

REF = "#/components/schemas/{model}"
BODIES = (  # read by json_body and the suggest route, so that FastAPI does not know them
    schemas.SuggestRequest,
    schemas.SuggestOneRequest,
    schemas.ExplainRequest,
    schemas.LearnRequest,
    schemas.ForgetRequest,
    schemas.RelabelRequest,
    schemas.PublishRequest,
    schemas.RollbackRequest,
)
READ_ERRORS = (400, 401, 403, 414, 421, 431, 500, 503)
WRITE_ERRORS = (*READ_ERRORS, 409)
BODY_ERRORS = (408, 413, 415, 422)


# What a route declares


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error responses with these statuses."""
    content = {MEDIA_TYPE: {"schema": _ref(schemas.Problem)}}
    retry = {"headers": {"Retry-After": {"schema": {"type": "integer"}}}}
    return {
        status: {"description": MEANINGS[status], "content": content}
        | (retry if status == 503 else {})
        for status in sorted(statuses)
    }


def token(*, required: bool = True) -> list[dict[str, list]]:
    """Describe that a token is required, or may be."""
    return [{"token": []}] if required else [{"token": []}, {}]


def body(
    *models: type[BaseModel], token_required: bool = True, **others: dict[str, Any]
) -> dict[str, Any]:
    """Describe a JSON body that is one of these models; ``others`` adds other media types."""
    schema = _ref(models[0]) if len(models) == 1 else {"anyOf": [_ref(m) for m in models]}
    return {
        "requestBody": {"required": True, "content": {JSON: {"schema": schema}, **others}},
        "security": token(required=token_required),
    }


def complete_openapi(app: FastAPI) -> None:
    """Add bodies, problems and tokens to the OpenAPI document of an application."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = FastAPI.openapi(app)
            models: Any = [(model, "validation") for model in (*BODIES, schemas.Problem)]
            _, definitions = models_json_schema(models, ref_template=REF)
            components = document["components"]
            components["schemas"] |= definitions["$defs"]
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}


# What the API page shows


class Field(NamedTuple):
    """A parameter, or a field of a body or of a response."""

    name: str
    kind: str
    required: bool
    where: str


class Route(NamedTuple):
    """A route as the API page shows it."""

    method: str
    path: str
    summary: str
    description: str
    fields: list[Field]
    response: list[Field]
    statuses: list[tuple[str, str]]


def read_routes(document: Mapping[str, Any]) -> Iterator[Route]:
    """Yield the routes of an OpenAPI document."""
    schemas = document.get("components", {}).get("schemas", {})
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            responses = operation.get("responses", {})
            yield Route(
                method.upper(),
                path,
                operation.get("summary", ""),
                operation.get("description", ""),
                [*_parameters(operation), *_fields(operation.get("requestBody"), schemas)],
                list(_fields(responses.get("200"), schemas)),
                [(status, one["description"]) for status, one in sorted(responses.items())],
            )


def _parameters(operation: Mapping[str, Any]) -> Iterator[Field]:
    for one in operation.get("parameters", ()):
        yield Field(one["name"], _kind(one["schema"]), one.get("required", False), one["in"])


def _fields(content: Mapping[str, Any] | None, schemas: Mapping[str, Any]) -> Iterator[Field]:
    schema = (content or {}).get("content", {}).get(JSON, {}).get("schema", {})
    for option in schema.get("anyOf", [schema]):
        resolved = _resolve(option, schemas)
        for name, field in resolved.get("properties", {}).items():
            yield Field(name, _kind(field), name in resolved.get("required", ()), "body")


def _resolve(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas.get(name, schema)


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in a word or two."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = schema.get("type", "any")
    return f"list of {_kind(schema.get('items', {}))}" if kind == "array" else str(kind)
