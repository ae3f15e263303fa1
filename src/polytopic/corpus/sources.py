"""Where documents are read from: a file, a stream, or the files of a folder or a pattern."""

import glob
import os
from collections.abc import Sequence

from polytopic.corpus.formats import FORMATS, find_format, format_of
from polytopic.errors import CorpusError
from polytopic.lines import Source, file_error, source_name

COMPANIONS = {"arff": "pubmed", "annif": "tsv"}
"""What lies beside files of a format and is none of its own: lists of labels."""


def find_sources(source: Source, format: str | None) -> tuple[str, Sequence[Source]]:
    """Return the format and what is to be read, in order."""
    name = source_name(source)
    if not isinstance(source, (str, os.PathLike)) or source == "-":
        return find_format(format, name, default="jsonl"), [source]
    if os.path.isdir(source):
        format = find_format(format or _format_of_folder(name), name)
        return format, [source] if format == "annif" else _files_of_folder(name, format)
    if glob.has_magic(name) and not os.path.exists(name):
        return find_format(format, name), _matches(name)
    return find_format(format, name), [source]


def _format_of_folder(folder: str) -> str:
    found = {format_of(name) for name in _names(folder)} - {None}
    if "text" in found:  # each file a document, which Annif's folders are
        found = found - {"text"} | {"annif"}
    for format, companion in COMPANIONS.items():
        if format in found:
            found.discard(companion)
    if not found:
        endings = ", ".join(ending for each in FORMATS.values() for ending in each)
        raise CorpusError(
            f"{folder!r} is a folder without files of a known ending ({endings}). "
            f"Give the format: {', '.join(FORMATS)}."
        )
    if len(found) > 1:
        several = ", ".join(sorted(map(str, found)))
        raise CorpusError(
            f"{folder!r} holds files of several formats ({several}). Give the format."
        )
    return str(found.pop())


def _files_of_folder(folder: str, format: str) -> list[str]:
    """Return the files that end as the format does; all of them, if it has no endings."""
    names = [name for name in _names(folder) if not FORMATS[format] or format_of(name) == format]
    if not names:
        endings = ", ".join(FORMATS[format]) or "any"
        raise CorpusError(f"{folder!r} holds no files to read as {format} (endings: {endings}).")
    return [os.path.join(folder, name) for name in names]


def _names(folder: str) -> list[str]:
    """Return the names of the files in a folder that are not hidden, sorted."""
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    except OSError as error:
        raise file_error(folder, error) from error


def _matches(pattern: str) -> list[str]:
    found = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    if not found:
        raise CorpusError(f"{pattern!r} matches no file.")
    return found
