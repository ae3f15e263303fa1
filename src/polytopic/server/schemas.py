"""Requests and responses of the API.

Responses that Python gives as records (an answer, an explanation, a period) have no definition of
their own here: :func:`response_schema` derives it from the record's class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from itertools import islice
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from polytopic import explain
from polytopic.corpus.document import Document
from polytopic.labeler.answers import Answer, Suggestion
from polytopic.store.analysis import LabelPeriod, Period
from polytopic.store.assignments import Topic
from polytopic.store.models import PublishedModel

MAX_DOCUMENTS = 10_000  # in one request; a stream may have more
MAX_FIELDS = 20  # of an object; more than any request has
MAX_EXPLAINED = 1 << 20  # characters of a text to explain, which takes seconds
MAX_EXPLAINED_SHARES = 1 << 23  # characters of a text × requested labels
LARGEST_FLOAT = 1.7e308
STORABLE = r"^[^\x00]*$"  # PostgreSQL cannot store NUL characters


# Requests


def keep_first_invalid(is_valid: Callable[[Any], bool]) -> BeforeValidator:
    """Return a validator that reduces an object to its first invalid entry, if it has one.

    Pydantic would otherwise create an error per entry, which takes a hundred times its memory.
    """

    def check(values: Any) -> Any:
        if isinstance(values, dict):
            for name, value in values.items():
                if not is_valid(value):
                    return {name: value}
        return values

    return BeforeValidator(check)


def truncate(max_entries: int) -> BeforeValidator:
    """Return a validator that cuts an object with too many entries down to one too many."""

    def check(values: Any) -> Any:
        if isinstance(values, dict) and len(values) > max_entries:
            return dict(islice(values.items(), max_entries + 1))
        return values

    return BeforeValidator(check)


def _is_count(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= LARGEST_FLOAT  # excludes True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


Name = Annotated[str, Field(min_length=1, max_length=500, pattern=STORABLE)]
Names = Annotated[list[Name], Field(max_length=MAX_DOCUMENTS, fail_fast=True)]
RequestedLabels = Annotated[list[str], Field(max_length=1000, fail_fast=True)]
Count = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class StrictModel(BaseModel):
    """A request that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_field(cls, values):
        """Reject many unknown fields by the first one: Pydantic would create an error for each."""
        if isinstance(values, dict) and len(values) > MAX_FIELDS:
            unknown = next(name for name in values if name not in cls.model_fields)
            raise ValueError(f"{unknown[:100]!r} is not a known field")
        return values


CONTENT = {"text": "string", "fields": "object", "counts": "object"}


class Item(NamedTuple):
    """A document to label: its id, and a text, fields or counts."""

    id: str
    content: str | Mapping[str, Any]


class Content(StrictModel):
    """The content of a document: exactly one of text, fields and counts."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [name], "properties": {name: {"type": kind}}}
                for name, kind in CONTENT.items()
            ]
        }
    )
    text: str | None = None
    fields: Annotated[dict[str, str] | None, keep_first_invalid(_is_text)] = None
    counts: Annotated[dict[str, Count] | None, keep_first_invalid(_is_count)] = None

    @model_validator(mode="after")
    def _check_content(self):
        if (self.text is None) + (self.fields is None) + (self.counts is None) != 2:
            raise ValueError("exactly one of text, fields and counts is required")
        return self

    def to_document(self, id: str, **facts: Any) -> Document:
        """Return the library's document; ``facts`` are its labels and time."""
        content = {"text": self.text, "fields": self.fields, "counts": self.counts}
        return Document.from_dict({"id": id, **content, **facts})


class NewDocument(Content):
    """A document to label."""

    id: str | None = None

    def to_item(self, number: int) -> Item:
        """Return what to label; ``number`` is its id if it has none."""
        id = self.id or str(number)
        if self.text is not None:  # the usual case, without the checks of a document
            return Item(id, self.text)
        document = self.to_document(id)
        return Item(document.id, document.content)


class LabelledDocument(Content):
    """A document to learn."""

    id: Name
    labels: Names = []
    time: str | None = Field(None, description="A date or time in ISO 8601 format.")


class SuggestOptions(StrictModel):
    """How to label documents."""

    k: int = Field(5, ge=1, le=1000, description="Number of suggestions per document.")
    threshold: float | None = Field(None, ge=0, le=1)
    include: list[str] | None = Field(None, max_length=1000)
    exclude: list[str] | None = Field(None, max_length=1000)
    level: int | None = Field(None, ge=0, le=1000)
    language: str | None = None
    abstain: float | None = Field(None, ge=0, le=1)

    @property
    def key(self) -> tuple:
        """The options that were given, as a hashable value."""
        names = OPTIONS & self.model_fields_set
        if not names:  # the usual case
            return ()
        values = [(name, getattr(self, name)) for name in sorted(names)]
        return tuple([(name, tuple(v) if type(v) is list else v) for name, v in values])


OPTIONS = frozenset(SuggestOptions.model_fields)


class SuggestRequest(SuggestOptions):
    """Documents to label."""

    documents: list[NewDocument] = Field(min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True)


class SuggestOneRequest(SuggestOptions, NewDocument):
    """A document to label."""

    @property
    def documents(self) -> list[NewDocument]:
        """The document, as a list of one."""
        return [self]


class ExplainRequest(Content):
    """A text to explain."""

    labels: RequestedLabels | None = None
    why_not: RequestedLabels = []
    shares: bool = False

    @model_validator(mode="after")
    def _check_length(self):
        """Reject texts that nobody would read an explanation of: it lists every word."""
        content = [self.text or "", *(self.fields or {}).values(), *(self.counts or {})]
        length = sum(map(len, content))
        if length > MAX_EXPLAINED:
            raise ValueError(
                f"the text has {length:,} characters, must have at most {MAX_EXPLAINED:,} to be "
                "explained"
            )
        n_labels = len(self.labels or ()) + len(self.why_not)
        if length * n_labels > MAX_EXPLAINED_SHARES:
            limit = MAX_EXPLAINED_SHARES // n_labels
            raise ValueError(
                f"the text has {length:,} characters, must have at most {limit:,} to be explained "
                f"for {n_labels:,} labels"
            )
        return self


class LearnRequest(StrictModel):
    """Documents to learn."""

    documents: list[LabelledDocument] = Field(
        min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True
    )

    def to_documents(self) -> list[Document]:
        """Return the library's documents."""
        return [d.to_document(d.id, labels=d.labels, time=d.time) for d in self.documents]


class ForgetRequest(StrictModel):
    """Documents to forget."""

    ids: list[str] = Field(min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True)
    purge: bool = False


class RelabelRequest(StrictModel):
    """New labels of documents, by document id."""

    labels: Annotated[
        dict[Annotated[str, Field(min_length=1)], Names],
        Field(min_length=1, max_length=MAX_DOCUMENTS),
        truncate(MAX_DOCUMENTS),
    ]


class PublishRequest(StrictModel):
    """A model to fit and publish."""

    model: str | None = None
    rule: str | None = Field(None, max_length=100, description="Decision rule, such as cohort.")
    since: str | None = None
    until: str | None = None
    labels: RequestedLabels | None = None
    note: str | None = Field(None, max_length=1000, pattern=STORABLE)


class RollbackRequest(StrictModel):
    """The published model to return to; the previous one by default."""

    number: int | None = Field(None, ge=1, le=2**53)


class LabelsQuery(StrictModel):
    """Which labels to list."""

    q: str = Field("", max_length=200, description="A part of the id or name.")
    k: int = Field(1000, ge=1, le=10_000, description="Maximum number of labels.")
    language: str | None = Field(None, max_length=35, description="Language of the names.")


class TopicsQuery(StrictModel):
    """Which documents to count by topic and period."""

    topic: list[Name] | None = Field(None, max_length=100, description="Topics, and those below.")
    since: str | None = Field(None, max_length=40, description="A time in ISO 8601 format.")
    until: str | None = Field(None, max_length=40)
    min_probability: float | None = Field(None, ge=0, le=1)
    by: Literal["day", "week", "month", "year"] = "day"


class DocumentsQuery(StrictModel):
    """Which documents to find."""

    topic: list[Name] | None = Field(None, max_length=100, description="Topics, and those below.")
    since: str | None = Field(None, max_length=40, description="A time in ISO 8601 format.")
    until: str | None = Field(None, max_length=40)
    min_probability: float | None = Field(None, ge=0, le=1)
    text: str | None = Field(None, max_length=1000, pattern=STORABLE, description="Words.")
    k: int = Field(20, ge=1, le=200, description="Number of documents.")
    after: str | None = Field(None, max_length=100, description="The next of the previous page.")


class LabelQuery(StrictModel):
    """What to include in the description of a label."""

    k: int = Field(20, ge=1, le=1000, description="Number of terms.")
    drift: bool = True


class QueueQuery(StrictModel):
    """Which documents to review."""

    kind: Literal["unlabelled", "doubtful"] = "unlabelled"
    k: int = Field(20, ge=1, le=200, description="Number of documents.")


# Responses


@cache
def response_schema(record: type) -> type[BaseModel]:
    """Return the schema of a dataclass or named tuple as its ``to_dict`` encodes it.

    Every number may be null, because JSON has no infinity.
    """
    types = {name: _json_type(hint) for name, hint in get_type_hints(record).items()}
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in types.items() if kind is not None}
    summary = (record.__doc__ or "").partition("\n")[0]
    return create_model(record.__name__, __doc__=summary, **fields)


def _json_type(hint: Any) -> Any:
    """Return the type of an attribute in JSON; None for functions, which are left out."""
    if hint is float:
        return float | None
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, tuple)):
        return response_schema(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(map(_json_type, arguments))]  # noqa: UP007  # built at run time
    if origin in (list, dict):
        return origin[tuple(map(_json_type, arguments))]
    return None if origin is not None and origin is not Literal else hint


class Model(BaseModel):
    """The model that answered, its number in the history, and the revision of its counts."""

    name: str
    number: int | None
    revision: int | None


class NamedSuggestion(response_schema(Suggestion)):  # type: ignore[misc]  # made at run time
    """A label for a document, with its name."""

    name: str


class DocumentAnswer(response_schema(Answer)):  # type: ignore[misc]
    """The labels of a document."""

    id: str
    labels: list[str]
    suggestions: list[NamedSuggestion]


class SuggestResponse(BaseModel):
    """Answers in the order of the documents."""

    model: Model
    documents: list[DocumentAnswer]


class ExplainResponse(response_schema(explain.Explanation)):  # type: ignore[misc]
    """Why a text has its labels."""

    model: Model
    places: list[response_schema(explain.Place)]  # type: ignore[valid-type]
    names: dict[str, str]


class ListedLabel(BaseModel):
    """A label in a list."""

    label: str
    name: str
    parent: str | None
    documents: int


class LabelsResponse(BaseModel):
    """Labels that match a query."""

    model: Model
    labels: list[ListedLabel]


class ProbableTerm(BaseModel):
    """A term of a label: its probability, and the ratio to its probability in all texts."""

    term: str
    probability: float | None
    lift: float | None


class WeightedTerm(BaseModel):
    """A term of a label, with its weight in a linear model."""

    term: str
    weight: float | None


class Neighbour(BaseModel):
    """A label that occurs together with another more often, or less often, than by chance."""

    label: str
    correlation: float | None
    documents: int


class LabelCounts(BaseModel):
    """Documents of a label over time; periods are given by their first days."""

    by: str
    starts: list[str]
    documents: list[int]


class DatedLabelPeriod(response_schema(LabelPeriod)):  # type: ignore[misc]
    """A label in a period, and the number of documents expected from its earlier share."""

    start: str
    trend: Literal["", "new", "growing", "vanishing"]


class LabelResponse(ListedLabel):
    """A label in detail."""

    model: Model
    words: list[ProbableTerm | WeightedTerm]
    children: list[str]
    ancestors: list[str]
    together: list[Neighbour]
    alike: list[str]
    counts: LabelCounts | None
    drift: list[DatedLabelPeriod] | None = None


class DriftResponse(BaseModel):
    """The last periods of a store, each evaluated with a model of the time before it."""

    model: Model
    by: str | None
    periods: list[Period]


class QueuedDocument(BaseModel):
    """A document to review."""

    id: str
    labels: list[str]
    excerpt: str
    suggested: list[str]
    certainty: float | None = None
    missing: list[str] = []
    extra: list[str] = []
    words: list[str] = []


class QueueResponse(BaseModel):
    """Documents to review next."""

    model: Model
    documents: list[QueuedDocument]


class StoredDocument(BaseModel):
    """A document of the store."""

    id: str
    text: str | None = None
    fields: dict[str, str] | None = None
    counts: dict[str, float] | None = None
    labels: list[str]
    time: str | None = None


class AssignedTopic(response_schema(Topic)):  # type: ignore[misc]
    """A label that a model has assigned to a document."""

    name: str


class FoundDocument(BaseModel):
    """A document that was found, and the model that has assigned its topics."""

    id: str
    time: str
    labels: list[str]
    topics: list[AssignedTopic]
    known: float | None
    model: int | None
    revision: int | None
    assigned: str | None
    address: str | None
    author: str | None
    language: str | None
    duplicate_of: str | None
    excerpt: str


class DocumentsResponse(BaseModel):
    """Documents, newest first; ``next`` is null on the last page."""

    model: Model | None
    documents: list[FoundDocument]
    next: str | None


class TopicsResponse(BaseModel):
    """Documents of each topic, and all documents, by period."""

    model: Model | None
    by: str
    starts: list[str]
    documents: list[int]
    labels: dict[str, list[int]]


class HistoryResponse(BaseModel):
    """The active model, and the published models, newest first."""

    model: Model | None
    models: list[PublishedModel]


class LiveResponse(BaseModel):
    """The service is running."""

    status: Literal["live"]


class ReadyResponse(BaseModel):
    """The service can answer."""

    status: Literal["ready"]
    model: Model


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
