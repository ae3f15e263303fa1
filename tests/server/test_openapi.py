"""How the API page reads an OpenAPI document."""

from polytopic.server.openapi import Field, Route, read_routes

DOCUMENT = {
    "paths": {
        "/things/{name}": {
            "post": {
                "summary": "Change a thing",
                "description": "At once.",
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "by", "in": "query", "schema": {"enum": ["day", "week"]}},
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/schemas/Change"}}}
                },
                "responses": {
                    "422": {"description": "It makes no sense."},
                    "200": {
                        "description": "Done.",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "properties": {"left": {"type": "array"}},
                                    "required": ["left"],
                                }
                            }
                        },
                    },
                },
            },
            "get": {},
        },
        "/either": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "anyOf": [
                                    {"$ref": "#/schemas/Change"},
                                    {"properties": {"all": {"type": "boolean"}}},
                                ]
                            }
                        }
                    }
                }
            }
        },
    },
    "components": {
        "schemas": {
            "Change": {
                "properties": {
                    "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "terms": {"type": "array", "items": {"$ref": "#/schemas/Term"}},
                    "other": {},
                },
                "required": ["terms"],
            }
        }
    },
}
CHANGE = [
    Field("label", "string or null", required=False, where="body"),
    Field("terms", "list of Term", required=True, where="body"),
    Field("other", "any", required=False, where="body"),
]


def test_a_route_with_everything():
    """Parameters come before the fields of the body; statuses are sorted."""
    route, *_ = read_routes(DOCUMENT)

    assert route == Route(
        "POST",
        "/things/{name}",
        "Change a thing",
        "At once.",
        [
            Field("name", "string", required=True, where="path"),
            Field("by", "day or week", required=False, where="query"),
            *CHANGE,
        ],
        [Field("left", "list of any", required=True, where="body")],
        [("200", "Done."), ("422", "It makes no sense.")],
    )


def test_a_route_with_nothing():
    """What a document omits is empty."""
    _, route, _ = read_routes(DOCUMENT)

    assert route == Route("GET", "/things/{name}", "", "", [], [], [])


def test_alternative_bodies():
    """The fields of both alternatives are listed."""
    *_, route = read_routes(DOCUMENT)

    assert route.fields == [*CHANGE, Field("all", "boolean", required=False, where="body")]


def test_a_document_without_schemas():
    """An unresolved reference has no fields."""
    (_, _, route) = read_routes({"paths": DOCUMENT["paths"]})

    assert [field.name for field in route.fields] == ["all"]
