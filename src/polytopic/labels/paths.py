"""Labels that are paths, such as ``science/space``."""

from __future__ import annotations

from collections.abc import Iterable

SEPARATORS = ("/", "::", "--")


def parents_of_paths(labels: Iterable[str], separator: str | None) -> dict[str, str | None]:
    """Return the parent of each path, and of the upper paths that are missing."""
    if isinstance(labels, str):
        raise TypeError(f"labels is the string {labels!r}, needs a collection of labels.")
    labels = list(labels)
    if separator == "":
        raise ValueError("separator is empty, needs at least one character.")
    separator = _guess_separator(labels) if separator is None else separator
    parents: dict[str, str | None] = {}
    for label in labels:
        node: str | None = label
        while node is not None and node not in parents:
            above = _upper(node, separator)
            parents[node] = above
            node = above
    return parents


def _guess_separator(labels: list[str]) -> str:
    """Return the one separator that occurs in the labels."""
    found = [mark for mark in SEPARATORS if any(mark in label for label in labels)]
    if len(found) != 1:
        what = f"{' and '.join(map(repr, found))} occur" if found else "no '/', '::' or '--' occurs"
        raise ValueError(f"the separator is not clear: {what} in the labels. Give separator.")
    return found[0]


def _upper(label: str, separator: str) -> str | None:
    """Return the path one step up, None at the top; doubled separators are one."""
    upper = _trimmed(_trimmed(label, separator).rpartition(separator)[0], separator)
    return upper or None


def _trimmed(path: str, separator: str) -> str:
    """Return a path without separators at its end."""
    while path.endswith(separator):
        path = path.removesuffix(separator)
    return path
