"""The living store: a ledger of documents, its counts, and published models in a database."""

from polytopic.store.publishing import PublishedModel
from polytopic.store.reading import StoredCounts
from polytopic.store.receipts import Receipt, Verification
from polytopic.store.store import Store

__all__ = ["PublishedModel", "Receipt", "Store", "StoredCounts", "Verification"]
