"""The store: a ledger of documents, its counts, and published models in a database.

===============  ===================================================================
``store``      :class:`Store`, which users work with
``database``   connections, transactions and errors of SQLite and PostgreSQL
``schema``     tables, settings, state and the tree of labels
``encoding``   counts and label sets as bytes and JSON, and digests of documents
``terms``      the terms, by number
``ledger``     rows of documents, and selections of them
``writer``     one change: the ledger, and all tables that follow from it
``assignments``  topics that models assign to documents, and the entries to find them by
``search``     finding documents by topic, time, probability and words
``articles``   what is known about documents that the news desk has acquired
``receipts``   receipts of changes, and repeated requests
``seals``      digests of tables, which reveal damage
``erasure``    overwriting every copy of a deleted document
``reader``     counts, documents, training data and verification
``models``     published models, and what a service that follows a store polls
``analysis``   diff, drift and timeline (``drift_plot`` draws)
``tokens``     access tokens for the service
``transfer``   export and import
===============  ===================================================================
"""

from polytopic.store.models import PublishedModel
from polytopic.store.reader import StoredCounts, Verification
from polytopic.store.receipts import Receipt
from polytopic.store.store import Store

__all__ = ["PublishedModel", "Receipt", "Store", "StoredCounts", "Verification"]
