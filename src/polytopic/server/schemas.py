"""What requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from polytopic.corpus.document import Document

MOST = 10_000  # documents in one request; streams have any number
Labels = Annotated[list[str], Field(max_length=MOST)]


class Request(BaseModel):
    """A request: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid")


class Content(Request):
    """What a document says: exactly one of text, fields and counts."""

    text: str | None = None
    fields: dict[str, str] | None = None
    counts: dict[str, float] | None = None

    @model_validator(mode="after")
    def _one(self):
        given = [name for name in ("text", "fields", "counts") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("exactly one of text, fields and counts is needed")
        return self

    def document(self, number: int, **more: Any) -> Document:
        """Return the library's document; ``number`` names one without an id."""
        own = getattr(self, "id", None)
        content = {"text": self.text, "fields": self.fields, "counts": self.counts}
        return Document.from_dict({"id": own or str(number), **content, **more})


class NewDocument(Content):
    """A document to label."""

    id: str | None = None


class LabelledDocument(Content):
    """A document to learn."""

    id: str = Field(min_length=1, max_length=500)
    labels: Labels = []
    time: str | None = None


class SuggestHow(Request):
    """How to label documents."""

    limit: int = Field(5, ge=1, le=1000)
    threshold: float | None = Field(None, ge=0, le=1)
    include: Labels | None = None
    exclude: Labels | None = None
    level: int | None = Field(None, ge=0)
    language: str | None = None
    abstain: float | None = Field(None, ge=0, le=1)

    @property
    def key(self) -> tuple:
        """What is equal where the same is asked for."""
        values = (getattr(self, name) for name in SuggestHow.model_fields)
        return tuple(tuple(v) if isinstance(v, list) else v for v in values)


class Suggest(SuggestHow):
    """Documents to label, and how."""

    documents: list[NewDocument] = Field(min_length=1, max_length=MOST)

    @model_validator(mode="before")
    @classmethod
    def _one_document(cls, values):
        """Take a request of one document, too."""
        if isinstance(values, dict) and "documents" not in values:
            own = {name: values[name] for name in NewDocument.model_fields if name in values}
            rest = {name: value for name, value in values.items() if name not in own}
            return {**rest, "documents": [own]}
        return values


class Explain(Content):
    """A text to explain."""

    labels: Labels | None = None
    why_not: Labels = []
    shares: bool = False


class Learn(Request):
    """Documents to learn."""

    documents: list[LabelledDocument] = Field(min_length=1, max_length=MOST)


class Forget(Request):
    """Documents to forget."""

    ids: list[str] = Field(min_length=1, max_length=MOST)
    purge: bool = False


class Relabel(Request):
    """Documents to give other labels, by their ids."""

    labels: dict[str, Labels] = Field(min_length=1, max_length=MOST)

    @field_validator("labels")
    @classmethod
    def _names(cls, values):
        if not all(values):
            raise ValueError("an id is empty, must not be")
        return values


class Publish(Request):
    """A model to fit and to publish."""

    model: str | None = None
    since: str | None = None
    until: str | None = None
    labels: Labels | None = None
    note: str | None = Field(None, max_length=1000)


class Rollback(Request):
    """The published model to go back to; the one before if there is no number."""

    number: int | None = Field(None, ge=1)


class Model(BaseModel):
    """What answered: a model, its number in the history, and the revision of the counts."""

    name: str
    number: int | None
    revision: int | None


class Suggested(BaseModel):
    """A label for a document."""

    label: str
    name: str
    score: float | None
    probability: float | None
    chosen: bool


class Labelled(BaseModel):
    """A document's labels."""

    id: str
    labels: list[str]
    suggestions: list[Suggested]
    abstained: bool


class Suggestions(BaseModel):
    """Answers to documents, in their order."""

    model: Model
    documents: list[Labelled]


class Problem(BaseModel):
    """A failure (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
