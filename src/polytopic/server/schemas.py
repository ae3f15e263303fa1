"""What requests and answers look like."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from polytopic.corpus.document import Document
from polytopic.store.drift import Period
from polytopic.store.publishing import PublishedModel

MOST = 10_000  # documents in one request; streams have any number
EXPLAINED = 1 << 20  # characters of a text to explain, which takes seconds then
EXPLAINED_SHARES = 1 << 23  # characters of a text times labels that are asked for
STORABLE = r"^[^\x00]*$"  # PostgreSQL takes no NUL


def first_wrong(is_right: Callable[[Any], bool]) -> BeforeValidator:
    """Return what leaves of an object its first wrong entry alone, if it has one.

    An error would be made of each of them, which takes a hundred times the memory of the entry.
    """

    def check(values: Any) -> Any:
        if isinstance(values, dict):
            for name, value in values.items():
                if not is_right(value):
                    return {name: value}
        return values

    return BeforeValidator(check)


def first_entries(most: int) -> BeforeValidator:
    """Return what leaves of an object one entry too many, if there are more."""

    def check(values: Any) -> Any:
        if isinstance(values, dict) and len(values) > most:
            return dict(islice(values.items(), most + 1))
        return values

    return BeforeValidator(check)


def _is_count(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= LARGEST  # true is not 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


LARGEST = 1.7e308  # number that is not infinite
Name = Annotated[str, Field(min_length=1, max_length=500, pattern=STORABLE)]
Labels = Annotated[list[Name], Field(max_length=MOST, fail_fast=True)]
Asked = Annotated[list[str], Field(max_length=1000, fail_fast=True)]
Count = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = float | None  # None stands for infinity


class Request(BaseModel):
    """A request: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, values):
        """Refuse many unknown keys at once: an error would be made of each of them."""
        if isinstance(values, dict) and len(values) > len(cls.model_fields):
            unknown = next(name for name in values if name not in cls.model_fields)
            raise ValueError(f"{unknown[:100]!r} is not a known key")
        return values


KINDS = {"text": "string", "fields": "object", "counts": "object"}


class Content(Request):
    """What a document says: exactly one of text, fields and counts."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [name], "properties": {name: {"type": kind}}}
                for name, kind in KINDS.items()
            ]
        }
    )
    text: str | None = None
    fields: Annotated[dict[str, str] | None, first_wrong(_is_text)] = None
    counts: Annotated[dict[str, Count] | None, first_wrong(_is_count)] = None

    @model_validator(mode="after")
    def _one(self):
        given = [name for name in KINDS if getattr(self, name) is not None]
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

    id: Name
    labels: Labels = []
    time: str | None = Field(None, description="A time or a date of ISO 8601.")


class SuggestHow(Request):
    """How to label documents."""

    limit: int = Field(5, ge=1, le=1000)
    threshold: float | None = Field(None, ge=0, le=1)
    include: list[str] | None = Field(None, max_length=1000)
    exclude: list[str] | None = Field(None, max_length=1000)
    level: int | None = Field(None, ge=0, le=1000)
    language: str | None = None
    abstain: float | None = Field(None, ge=0, le=1)

    @property
    def key(self) -> tuple:
        """What is equal where the same is asked for."""
        values = (getattr(self, name) for name in SuggestHow.model_fields)
        return tuple(tuple(v) if isinstance(v, list) else v for v in values)


class Suggest(SuggestHow):
    """Documents to label, and how."""

    documents: list[NewDocument] = Field(min_length=1, max_length=MOST, fail_fast=True)

    @model_validator(mode="before")
    @classmethod
    def _one_document(cls, values):
        """Take a request of one document, too."""
        if isinstance(values, dict) and "documents" not in values:
            own = {name: values[name] for name in NewDocument.model_fields if name in values}
            rest = {name: value for name, value in values.items() if name not in own}
            return {**rest, "documents": [own]}
        return values


class SuggestOne(SuggestHow, NewDocument):
    """A document to label, and how."""


class Explain(Content):
    """A text to explain."""

    labels: Asked | None = None
    why_not: Asked = []
    shares: bool = False

    @model_validator(mode="after")
    def _short(self):
        """Refuse what nobody reads: each word is answered with all its shares."""
        content = [self.text or "", *(self.fields or {}).values(), *(self.counts or {})]
        length = sum(map(len, content))
        if length > EXPLAINED:
            raise ValueError(
                f"it has {length:,} characters, must have {EXPLAINED:,} at most to be explained"
            )
        n_labels = len(self.labels or ()) + len(self.why_not)
        if length * n_labels > EXPLAINED_SHARES:
            raise ValueError(
                f"it has {length:,} characters, must have {EXPLAINED_SHARES // n_labels:,} at most "
                f"to be explained for {n_labels:,} labels"
            )
        return self


class Learn(Request):
    """Documents to learn."""

    documents: list[LabelledDocument] = Field(min_length=1, max_length=MOST, fail_fast=True)

    def to_documents(self) -> list[Document]:
        """Return the library's documents."""
        return [d.document(0, labels=d.labels, time=d.time) for d in self.documents]


class Forget(Request):
    """Documents to forget."""

    ids: list[str] = Field(min_length=1, max_length=MOST, fail_fast=True)
    purge: bool = False


class Relabel(Request):
    """Documents to give other labels, by their ids."""

    labels: Annotated[
        dict[Annotated[str, Field(min_length=1)], Labels],
        Field(min_length=1, max_length=MOST),
        first_entries(MOST),
    ]


class Publish(Request):
    """A model to fit and to publish."""

    model: str | None = None
    since: str | None = None
    until: str | None = None
    labels: Asked | None = None
    note: str | None = Field(None, max_length=1000, pattern=STORABLE)


class Rollback(Request):
    """The published model to go back to; the one before if there is no number."""

    number: int | None = Field(None, ge=1, le=2**53)


class FindLabels(Request):
    """Which labels to list."""

    q: str = Field("", max_length=200, description="A part of their ids or names.")
    limit: int = Field(1000, ge=1, le=10_000)
    language: str | None = Field(None, max_length=35, description="Of the names.")


class TellLabel(Request):
    """What to tell of a label."""

    terms: int = Field(20, ge=1, le=1000)
    drift: bool = True


class AskQueue(Request):
    """Which documents to check."""

    kind: Literal["unlabelled", "doubtful"] = "unlabelled"
    limit: int = Field(20, ge=1, le=200)


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


class Word(BaseModel):
    """A word that speaks for a label."""

    term: str
    count: float
    share: Number
    evidence: Number


class Reason(BaseModel):
    """A label of a text, and its words."""

    label: str
    share: Number
    score: Number
    probability: Number
    evidence: Number
    words: list[Word]


class Keyword(BaseModel):
    """A word that tells labels apart."""

    term: str
    entropy: Number
    label: str
    share: Number
    evidence: Number


class Ledger(BaseModel):
    """How the score of the labels comes about."""

    corpus: Number
    words: Number
    mixing: Number
    log_likelihood: Number
    temperature: Number
    log_prior: Number
    score: Number


class Objection(BaseModel):
    """What a word says against a label."""

    term: str
    amount: Number


class WhyNot(BaseModel):
    """Why a text does not have a label."""

    label: str
    labels: list[str]
    difference: Number
    words: list[Objection]
    mixing: Number
    prior: Number


class Place(BaseModel):
    """Where a word stands: its first character, and that after its last one."""

    start: int
    end: int
    term: str
    shares: dict[str, Number]
    evidence: Number
    field: str | None


class Explanation(BaseModel):
    """Why a text has its labels."""

    model: Model
    labels: list[Reason]
    keywords: list[Keyword]
    ledger: Ledger
    why_not: list[WhyNot]
    places: list[Place]
    unknown: list[str]
    unit: Literal["nats", "score"]
    names: dict[str, str]


class ListedLabel(BaseModel):
    """A label in a list."""

    label: str
    name: str
    parent: str | None
    documents: int


class ListedLabels(BaseModel):
    """Labels that were found."""

    model: Model
    labels: list[ListedLabel]


class LabelWord(BaseModel):
    """A word of a label: its probability, and how many times that in all texts it is."""

    term: str
    probability: Number
    lift: Number


class WeighedWord(BaseModel):
    """A word of a label, with its weight in a linear model."""

    term: str
    weight: Number


class Neighbour(BaseModel):
    """A label that comes with another more often, or less often, than by chance."""

    label: str
    correlation: Number
    documents: int


class LabelCounts(BaseModel):
    """Documents of a label over time: periods by their first days."""

    by: str
    starts: list[str]
    documents: list[int]


class DatedLabel(BaseModel):
    """A label in a period, beside what its earlier share lets expect."""

    start: str
    label: str
    documents: int
    expected: Number
    perplexity: Number
    trend: Literal["", "new", "growing", "vanishing"]


class LabelFacts(ListedLabel):
    """What is known of a label."""

    model: Model
    words: list[LabelWord | WeighedWord]
    children: list[str]
    ancestors: list[str]
    together: list[Neighbour]
    alike: list[str]
    counts: LabelCounts | None
    drift: list[DatedLabel] | None = None


class StoreDrift(BaseModel):
    """The last periods of a store, each judged by a model of what was known before it."""

    model: Model
    by: str | None
    periods: list[Period]


class Queued(BaseModel):
    """A document to check."""

    id: str
    labels: list[str]
    begins: str
    suggested: list[str]
    certainty: float | None = None
    missing: list[str] = []
    extra: list[str] = []
    words: list[str] = []


class Queue(BaseModel):
    """Documents to check next."""

    model: Model
    documents: list[Queued]


class StoredDocument(BaseModel):
    """A document as the store has it."""

    id: str
    text: str | None = None
    fields: dict[str, str] | None = None
    counts: dict[str, float] | None = None
    labels: list[str]
    time: str | None = None


class History(BaseModel):
    """The model that answers, and the published ones, the newest first."""

    model: Model | None
    models: list[PublishedModel]


class IsLive(BaseModel):
    """The service runs."""

    status: Literal["live"]


class IsReady(BaseModel):
    """The service can answer."""

    status: Literal["ready"]
    model: Model


class Problem(BaseModel):
    """A failure (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
