"""The news desk: from feeds, pages and archives to documents in a store.

===================  ===============================================================
``addresses``        which addresses may be visited, and how they are written
``fetching``         polite requests: robots.txt, delays, limits, retries
``sources``          feeds, sitemaps, pages, folders, WARC archives and JSON lines
``articles``         one article: clean text and what is known about it
``near_duplicates``  copies of an article with small changes
``label_sources``    labels from the categories or sections of a news server
``ingestion``        a run: all sources into a store, with a receipt
``settings``         the TOML file of a desk
``worker``           what a desk does, again and again
``alarms``           labels that grow or vanish, strange words, silent sources
``logs``             structured logs
===================  ===============================================================
"""

from polytopic.desk.fetching import FetchLimits
from polytopic.desk.ingestion import IngestionReceipt, SourceReport, ingest
from polytopic.desk.label_sources import LabelMapping

__all__ = ["FetchLimits", "IngestionReceipt", "LabelMapping", "SourceReport", "ingest"]
