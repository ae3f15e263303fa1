"""Stores as lines of JSON: what a store is, then its documents."""

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
from polytopic.store.settings import Settings
from polytopic.store.store import Store
from polytopic.text import Analyzer

MARK, END = "polytopic_store", "polytopic_store_end"  # of the first and the last line
BATCH = 1000  # documents learned in one transaction
SETTINGS = ("analyzer", "fields", "model", "keep_texts")


def export_lines(store: Store) -> Iterator[dict[str, Any]]:
    """Yield a store as objects for JSON: its settings and tree, then each document as it is now.

    The last one tells how many documents there are. Earlier versions of documents and published
    models are left out.
    """
    tree = store.tree
    yield {
        MARK: 1,
        "analyzer": store.analyzer.to_dict(),
        "fields": store.fields,
        "model": store.model,
        "keep_texts": store.keep_texts,
        "tree": tree and tree.to_dict(),
    }
    number = 0
    for document in store.documents():
        yield document.to_dict()
        number += 1
    yield {END: number}


def import_lines(url: str | Path, lines: Iterable[Mapping[str, Any]]) -> Iterator[Receipt]:
    """Learn what :func:`export_lines` gave, batch by batch; yield a receipt for each.

    The store is made if it is not there; one that is must have the same settings, and no other
    tree of labels. An export that ends too early is told, and its last batch is not learned.
    """
    rest = iter(lines)
    head = next(rest, {})
    if head.get(MARK) != 1:
        raise StoreError(
            "the first line is not that of an exported store; store learn takes plain documents."
        )
    missing = [name for name in (*SETTINGS, "tree") if name not in head]
    if missing:
        raise StoreError(
            f"the first line has no {missing[0]!r}, must be that of an exported store."
        )
    settings = {name: head[name] for name in SETTINGS}
    settings["analyzer"] = _made(Analyzer.from_dict, head, "analyzer")
    settings["fields"] = _made(dict, head, "fields")
    tree = _made(LabelTree.from_dict, head, "tree")
    _check_settings(settings)  # before a store is made
    documents = _documents(rest)
    with Store(url, **settings) as store:
        _check_same(store, "fields", store.fields or {}, head["fields"] or {})
        if tree is not None:
            _check_same(store, "a tree", store.tree or tree, tree)
    with Store(url, tree=tree, **settings) as store:
        while batch := list(islice(documents, BATCH)):
            yield store.learn(batch)


def _made(make: Callable[[Any], Any], head: Mapping[str, Any], name: str) -> Any:
    """Return what the first line says under a name; only an analyzer must be there."""
    value = head[name]
    if value is None and name != "analyzer":
        return None
    try:
        if not isinstance(value, dict):
            raise TypeError(f"{name} == {short(value)}, must be an object.")
        return make(value)
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


def _check_same(store: Store, what: str, own: Any, exported: Any) -> None:
    if own != exported:
        raise StoreError(
            f"{store} has {what} of its own, other than the exported store; import it into a new "
            "store. Nothing was learned."
        )


def _documents(lines: Iterator[Mapping[str, Any]]) -> Iterator[Document]:
    """Yield the documents of an export, and see that it is whole."""
    for number, line in enumerate(lines, start=2):
        if END in line:
            if line[END] != number - 2:
                raise StoreError(
                    f"the export is damaged: it tells of {short(line[END])} documents and holds "
                    f"{number - 2:,}. Of what came, only whole batches of {BATCH:,} documents "
                    "were learned."
                )
            return
        try:
            yield Document.from_dict(line)
        except ValueError as error:
            raise StoreError(f"line {number}: {error}") from error
    raise StoreError(
        "the export is cut: its last line is missing. Of what came, only whole batches of "
        f"{BATCH:,} documents were learned."
    )
