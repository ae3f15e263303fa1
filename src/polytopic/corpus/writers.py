"""Write documents to files and standard output, one at a time."""

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from reprlib import repr as short
from typing import IO, Any

from polytopic.corpus.document import Document
from polytopic.corpus.formats import Columns, find_format
from polytopic.errors import CorpusError
from polytopic.files import new_file
from polytopic.lines import source_name

Target = str | os.PathLike[str] | IO[Any]


def write_documents(
    documents: Iterable[Document],
    target: Target,
    *,
    format: str | None = None,
    text_column: str = "text",
    labels_column: str = "labels",
    id_column: str = "id",
    time_column: str = "time",
    label_separator: str = ",",
) -> int:
    """Write documents one at a time; return their number.

    A document that the format cannot represent raises ValueError with its id: tables have no
    counts, SVMlight has only counts and labels, ``text`` only texts of one line, and Annif's TSV
    only such texts, and labels without spaces. The last three have no ids.

    Parameters
    ----------
    documents : iterable of Document
        The documents.
    target : path or file object
        ``"-"`` is standard output. A path that ends in ``.gz`` is gzipped, reproducibly. A file
        appears under its name only when it is complete.
    format : {"jsonl", "csv", "tsv", "svmlight", "text", "annif"}, optional
        By default, it is inferred from the file extension; without a name, it is JSON lines.
    text_column, labels_column, id_column, time_column, label_separator : str
        As for :func:`read_documents`, for tables.

    Returns
    -------
    int
        Number of documents written.
    """
    name = source_name(target)
    path = isinstance(target, (str, os.PathLike)) and target != "-"
    format = find_format(format, name, default=None if path else "jsonl", known=_ENCODERS)
    columns = Columns(text_column, labels_column, id_column, time_column, label_separator)
    header, encode = _encoder(format, columns)
    n_docs = 0
    with open_target(target) as write:
        write(header.encode())
        for document in documents:
            line = encode(document)
            if line.startswith("\ufeff") and not header and not n_docs:
                raise _unwritable(document, "the file would begin with a byte order mark")
            write(_bytes(document, line))
            n_docs += 1
    return n_docs


def _encoder(format: str, columns: Columns) -> tuple[str, Callable[[Document], str]]:
    """Return the header of a format and the function that turns a document into a line."""
    delimiter = _DELIMITERS.get(format)
    if delimiter is None:
        return "", _ENCODERS[format]
    to_line = csv.writer(_Echo(), delimiter=delimiter).writerow
    header = [columns.id, *columns.texts, columns.labels, columns.time, "split"]
    return to_line(header), lambda document: to_line(_row(document, columns))


def _json(document: Document) -> str:
    return json.dumps(document.to_dict(), ensure_ascii=False) + "\n"


def _row(document: Document, columns: Columns) -> list[str]:
    for label in document.labels:
        if columns.split_labels(label) != [label]:
            raise _unwritable(
                document, f"the label {short(label)} contains a separator or outer space"
            )
    labels = columns.separator.join(document.labels)
    time = document.time.isoformat() if document.time else ""
    row = [document.id, *_texts(document, columns), labels, time, document.split or ""]
    if any("\0" in cell for cell in row):
        raise _unwritable(document, "a table cannot contain a NUL character")
    return row


def _texts(document: Document, columns: Columns) -> list[str]:
    names = columns.texts
    if len(names) == 1 and document.text is not None:
        return [document.text]
    if len(names) == 1 or document.fields is None or set(document.fields) != set(names):
        raise _unwritable(document, f"its content is not in {columns.text}, the text columns")
    return [document.fields[name] for name in names]


def _svmlight(document: Document) -> str:
    if document.counts is None or document.time or document.split:
        raise _unwritable(document, "SVMlight has only counts and labels")
    for word in (*document.labels, *document.counts):
        if word.split() != [word] or "#" in word or "\0" in word:
            raise _unwritable(document, f"{short(word)} contains space, # or NUL")
    for label in document.labels:
        if "," in label or ":" in label:
            raise _unwritable(document, f"the label {short(label)} contains a comma or colon")
    if not document.labels and not document.counts:
        raise _unwritable(document, "it has neither counts nor labels")
    pairs = [f"{term}:{count!r}" for term, count in document.counts.items()]
    return " ".join([",".join(document.labels), *pairs]) + "\n"


def _text(document: Document) -> str:
    text = document.text
    if text is None or document.labels or document.time or document.split:
        raise _unwritable(document, "the text format has only texts")
    if not text.strip() or "\n" in text or "\0" in text or text.endswith("\r"):
        raise _unwritable(document, "its text is empty, or has a line end or a NUL character")
    return text + "\n"


def _annif(document: Document) -> str:
    text = document.text
    if text is None or document.time or document.split:
        raise _unwritable(document, "Annif's TSV has only texts and labels")
    if not text.strip() or any(sign in text for sign in "\t\n\r\0"):
        raise _unwritable(
            document, "its text is empty, or has a tab, a line end or a NUL character"
        )
    for label in document.labels:
        if label.split() != [label] or "\0" in label or label[0] == "<":
            raise _unwritable(document, f"the label {short(label)} contains space or begins with <")
    return f"{text}\t{' '.join(f'<{label}>' for label in document.labels)}\n"


def _bytes(document: Document, line: str) -> bytes:
    try:
        return line.encode()
    except UnicodeEncodeError:
        raise _unwritable(document, "it contains half of a surrogate pair") from None


def _unwritable(document: Document, reason: str) -> ValueError:
    return ValueError(f"document {short(document.id)} cannot be written: {reason}.")


_DELIMITERS = {"csv": ",", "tsv": "\t"}
_ENCODERS: dict[str, Any] = {
    "jsonl": _json,
    "csv": _row,
    "tsv": _row,
    "svmlight": _svmlight,
    "text": _text,
    "annif": _annif,
}


class _Echo:
    """A file for csv.writer, so that writerow returns the line."""

    def write(self, line: str) -> str:
        return line


@contextmanager
def open_target(target: Target) -> Iterator[Callable[[bytes], object]]:
    """Open a target of :func:`write_documents`; yield the function that writes bytes to it."""
    if isinstance(target, (str, os.PathLike)) and target != "-":
        with new_file(target, CorpusError) as file:
            if os.fspath(target).lower().endswith(".gz"):
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                    yield zipped.write
            else:
                yield file.write
        return
    stream: Any = getattr(sys.stdout, "buffer", sys.stdout) if target == "-" else target
    if isinstance(stream, io.TextIOBase):
        yield lambda data: stream.write(data.decode())
    else:
        yield stream.write
    stream.flush()
