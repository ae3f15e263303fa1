"""What the description of the service (OpenAPI) tells beyond what FastAPI finds out by itself."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from polytopic.server import schemas
from polytopic.server.problems import MEDIA_TYPE

REF = "#/components/schemas/{model}"
BODIES = (  # read by ourselves, after the token is checked
    schemas.Suggest,
    schemas.SuggestOne,
    schemas.Explain,
    schemas.Learn,
    schemas.Forget,
    schemas.Relabel,
    schemas.Publish,
    schemas.Rollback,
)
MEANINGS = {
    400: "The request is not valid HTTP, or repeats a header field that may come only once.",
    401: "A token is needed.",
    403: "The token may not do this, or another site's page has sent it.",
    404: "It is not there.",
    408: "The body came too slowly.",
    409: "It cannot be done as things are.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The body is of another type.",
    421: "The service is called by a name that is not its own.",
    422: "The request makes no sense, or is no JSON.",
    431: "The header is too long.",
    500: "Something failed that should not; the log of the service has more.",
    503: "There is too much to do, or the store cannot be reached; try again.",
}
READS = (400, 401, 403, 414, 421, 431, 500, 503)
WRITES = (*READS, 409)
BODY = (408, 413, 415, 422)


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe failures with these statuses."""
    content = {MEDIA_TYPE: {"schema": _ref(schemas.Problem)}}
    return {
        status: {"description": MEANINGS[status], "content": content}
        | ({"headers": {"Retry-After": {"schema": {"type": "integer"}}}} if status == 503 else {})
        for status in sorted(statuses)
    }


def needs_token(*, always: bool = True) -> list[dict[str, list]]:
    """Describe that a token is needed, or may be."""
    return [{"token": []}] if always else [{"token": []}, {}]


def takes(
    *models: type[BaseModel], always: bool = True, **others: dict[str, Any]
) -> dict[str, Any]:
    """Describe a body, as one of these models in JSON, and that a token is needed."""
    schema = _ref(models[0]) if len(models) == 1 else {"anyOf": [_ref(m) for m in models]}
    content = {"application/json": {"schema": schema}, **others}
    return {
        "requestBody": {"required": True, "content": content},
        "security": needs_token(always=always),
    }


def describe(app: FastAPI) -> None:
    """Add bodies, problems and tokens to the description of an application."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = FastAPI.openapi(app)
            models: Any = [(model, "validation") for model in (*BODIES, schemas.Problem)]
            _, more = models_json_schema(models, ref_template=REF)
            found["components"]["schemas"] |= more["$defs"]
            found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}
