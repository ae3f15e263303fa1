"""Operations on a store while system calls fail, and the states that may remain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polytopic import Document, LabelTree
from polytopic.cli.store import export
from polytopic.errors import StoreError
from polytopic.labeler import Labeler
from polytopic.store import Store
from polytopic.store.encoding import MultisetDigest
from polytopic.store.transfer import export_lines, import_lines
from polytopic.text import Analyzer

ANALYZER = Analyzer(None)  # every word is a term
WORDS = " ".join(f"word{k}" for k in range(120))
SECRET = [b"secret-id", b"xylophone", b"private"]
TREE = LabelTree({"sport": "news", "space": "news"})
ABSENT = "no store"


def _documents(prefix, first, last):
    return [
        Document(f"{prefix}{k}", f"{WORDS} own{k}", labels=["sport" if k % 2 else "space"])
        for k in range(first, last)
    ]


def prepare(folder: Path) -> None:
    """Create what operations start from: stores with published models, an export, a model file."""
    with _open(folder) as store:
        store.learn([*_documents("d", 0, 12), Document("secret-id", "erstwhile", labels=["sport"])])
        store.learn([Document("secret-id", f"xylophone {WORDS}", labels=["private"])])
        store.publish()
        store.learn(_documents("d", 12, 14))
        store.publish()
        store.learn(_documents("d", 14, 15))
        store.fit().save(folder / "labeler.model")
    with _open(folder, "other.db") as other:
        other.learn(_documents("e", 0, 6))


def _open(folder: Path, name: str = "store.db", **settings: Any) -> Store:
    return Store(
        folder / name, analyzer=ANALYZER, model="nb", keep_texts=True, timeout=2, **settings
    )


def _changing(change: Callable[[Store], Any]) -> Callable[[Path], None]:
    def run(folder):
        with _open(folder, create=False) as store:
            change(store)

    return run


def _merge(folder: Path) -> None:
    with _open(folder) as store, _open(folder, "other.db") as other:
        store.merge(other)


def _import(folder: Path) -> None:
    with _open(folder) as store:
        lines = list(export_lines(store))
    list(import_lines(folder / "new.db", lines))


def _export(folder: Path) -> None:
    arguments = [str(folder / "store.db"), "--to", str(folder / "export.jsonl")]
    export.main(arguments, standalone_mode=False)


def _save(folder: Path) -> None:
    texts, labels = ["goal match", "mars rover"] * 4, [["sport"], ["space"]] * 4
    Labeler("nb", analyzer=ANALYZER).fit(texts, labels).save(folder / "labeler.model")


def _plant(folder: Path) -> None:
    _open(folder, tree=TREE).close()


def read_store(path: Path) -> Any:
    """Return the contents of a store, which must verify."""
    try:
        store = Store(path, create=False)
    except StoreError as error:
        if "has no store" in str(error) or "does not exist" in str(error):
            return ABSENT
        raise
    with store:
        problems = store.verify().problems
        if problems:
            raise AssertionError(problems)
        return {
            "documents": [document.to_dict() for document in store.documents()],
            "counts": store.digest,
            "models": [(one.id, one.current, one.marked is None) for one in store.history()],
            "tree": store.tree and store.tree.to_dict(),
        }


def _read_file(path: Path) -> Any:
    return path.read_bytes() if path.exists() else ABSENT


@dataclass(frozen=True)
class Operation:
    """Something that is done to what is in a folder.

    Attributes
    ----------
    run : callable
        Does it.
    target : str
        The file that it changes, and that is afterwards as it was or as it should be.
    read : callable
        Returns what is in that file.
    stages : tuple
        What else may be in the file, where the operation takes several changes.
    secrets : list of bytes
        What must not be in the store's files once it is done.
    """

    run: Callable[[Path], None]
    target: str = "store.db"
    read: Callable[[Path], Any] = read_store
    stages: tuple = ()
    secrets: tuple[bytes, ...] = ()


EMPTY = {"documents": [], "counts": MultisetDigest().text, "models": [], "tree": None}
OPERATIONS = {
    "learn": Operation(
        _changing(
            lambda store: store.learn(
                [*_documents("f", 0, 5), Document("d1", "corrected", labels=["sport"])], key="a key"
            )
        )
    ),
    "relabel": Operation(_changing(lambda store: store.relabel({"d1": ["space"], "d2": ["new"]}))),
    "forget": Operation(
        _changing(lambda store: store.forget(["secret-id", "d3"])), secrets=tuple(SECRET[:1])
    ),
    "purge": Operation(
        _changing(lambda store: store.forget(["secret-id"], purge=True)), secrets=tuple(SECRET)
    ),
    "publish": Operation(_changing(lambda store: store.publish(keep=1))),
    "refresh": Operation(_changing(lambda store: store.refresh())),
    "rollback": Operation(_changing(lambda store: store.rollback())),
    "merge": Operation(_merge),
    "plant": Operation(_plant),
    "import": Operation(_import, target="new.db", stages=(EMPTY,)),
    "export": Operation(_export, target="export.jsonl", read=_read_file),
    "save": Operation(_save, target="labeler.model", read=_read_file),
}
