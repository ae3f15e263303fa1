"""Exporting and importing a store as JSON lines: its settings, then its documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from reprlib import repr as short
from typing import Any

from polytopic.corpus.document import Document
from polytopic.errors import StoreError
from polytopic.labels import LabelTree
from polytopic.store.receipts import Receipt
from polytopic.store.schema import Settings
from polytopic.store.store import Store
from polytopic.text import Analyzer

START, END = "polytopic_store", "polytopic_store_end"  # keys of the first and the last line
BATCH = 1000  # documents per transaction
SETTINGS = ("analyzer", "fields", "model", "keep_texts")


def export_lines(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the lines of an export: settings and tree, each document, and their number.

    Former versions of documents and published models are not exported.
    """
    tree = store.tree
    yield {
        START: 1,
        "analyzer": store.analyzer.to_dict(),
        "fields": store.fields,
        "model": store.model,
        "keep_texts": store.keep_texts,
        "tree": tree and tree.to_dict(),
    }
    n_docs = 0
    for document in store.documents():
        yield document.to_dict()
        n_docs += 1
    yield {END: n_docs}


def import_lines(url: str | Path, lines: Iterable[Mapping[str, Any]]) -> Iterator[Receipt]:
    """Learn the documents of an export, batch by batch; yield a receipt for each batch.

    The store is created if it does not exist. An existing store must have the same settings, and no
    other tree of labels. The last batch of an incomplete export is not learned.
    """
    records = iter(lines)
    head = next(records, {})
    if not isinstance(head, Mapping) or head.get(START) != 1:
        raise StoreError(
            "the first line is not that of an exported store; to learn plain documents, run "
            "polytopic store learn."
        )
    missing = [name for name in (*SETTINGS, "tree") if name not in head]
    if missing:
        raise StoreError(
            f"the first line has no {missing[0]!r}, must be that of an exported store."
        )
    settings = {name: head[name] for name in SETTINGS}
    settings["analyzer"] = _parse(Analyzer.from_dict, head, "analyzer")
    settings["fields"] = _parse(dict, head, "fields")
    tree = _parse(LabelTree.from_dict, head, "tree")
    _check_settings(settings)  # before a store is made
    documents = _documents(records)
    with Store(url, **settings) as store:
        _check_same(store, "fields", store.fields or {}, head["fields"] or {})
        if tree is not None:
            _check_same(store, "tree", store.tree or tree, tree)
    with Store(url, tree=tree, **settings) as store:
        while batch := list(islice(documents, BATCH)):
            yield store.learn(batch)


def _parse(parse: Callable[[Any], Any], head: Mapping[str, Any], name: str) -> Any:
    """Return a value of the first line; all but the analyzer may be null."""
    value = head[name]
    if value is None and name != "analyzer":
        return None
    try:
        if not isinstance(value, dict):
            raise TypeError(f"{name} == {short(value)}, must be an object.")
        return parse(value)
    except (KeyError, TypeError, ValueError) as error:
        reason = str(error.args[0]).rstrip(".")
        raise StoreError(f"the first line has no valid {name!r}: {reason}.") from error


def _check_settings(settings: dict[str, Any]) -> None:
    try:
        if not isinstance(settings["keep_texts"], bool):
            raise TypeError(f"keep_texts == {short(settings['keep_texts'])}, must be true or false")
        Settings.new(language=None, **settings)
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise StoreError(f"the first line has no valid settings: {reason}.") from error


def _check_same(store: Store, setting: str, value: Any, exported: Any) -> None:
    if value != exported:
        raise StoreError(
            f"{store} and the exported store differ in their {setting}; import into a new store. "
            "Nothing was learned."
        )


def _documents(lines: Iterator[Mapping[str, Any]]) -> Iterator[Document]:
    """Yield the documents of an export; raise if it is incomplete."""
    for number, line in enumerate(lines, start=2):
        if not isinstance(line, Mapping):
            raise StoreError(f"line {number}: {short(line)} must be an object.")
        if END in line:
            if line[END] != number - 2:
                raise StoreError(
                    f"the export is damaged: it should have {short(line[END])} documents, but has "
                    f"{number - 2:,}. Only complete batches of {BATCH:,} documents were learned."
                )
            return
        try:
            yield Document.from_dict(line)
        except ValueError as error:
            raise StoreError(f"line {number}: {error}") from error
    raise StoreError(
        "the export is incomplete: its last line is missing. Only complete batches of "
        f"{BATCH:,} documents were learned."
    )
