"""The tree of labels."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

_SEPARATORS = ("/", "::", "--")
_HEADERS = {"label", "child", "id"}


class LabelTree:
    """Which label lies under which: a forest, fixed once it is made.

    Parameters
    ----------
    parents : mapping of str to str or None
        The parent of each label; None for a root. A parent that is no key is a root too.
    names : mapping of str to str, optional
        Display names; a label may go without.

    Attributes
    ----------
    nodes : tuple of str
        All labels, sorted.
    roots : tuple of str
        Labels without a parent, sorted.
    names : mapping of str to str
        Display names, read-only.

    Examples
    --------
    >>> tree = LabelTree({"space": "science", "mars": "space", "sport": None})
    >>> tree
    LabelTree(nodes=4, roots=2, levels=3)
    >>> tree.ancestors("mars"), tree.children("science"), tree.siblings("sport")
    (['space', 'science'], ['space'], ['science'])
    """

    def __init__(
        self, parents: Mapping[str, str | None], names: Mapping[str, str] | None = None
    ) -> None:
        self._parents = _with_roots(parents)
        self._levels = _levels(self._parents)
        self._children = _children(self._parents)
        self._names = dict(names or {})
        for label in self._names:
            self._check(label)

    @classmethod
    def from_names(cls, labels: Iterable[str], separator: str | None = "/") -> "LabelTree":
        """Read the tree from labels that are paths; missing upper labels are added.

        Parameters
        ----------
        labels : iterable of str
            Labels such as ``science/space/mars``.
        separator : str or None, default="/"
            What stands between the steps of a path. None takes the one of ``/``, ``::`` and
            ``--`` that occurs in the labels, and raises where none or several do.

        Examples
        --------
        >>> LabelTree.from_names(["role::program", "role::plugin"], "::").children("role")
        ['role::plugin', 'role::program']
        """
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
        return cls(parents)

    @classmethod
    def from_file(cls, path: str | Path) -> "LabelTree":
        """Read lines of label, parent and, if present, display name.

        Columns stand between commas in a file that ends in ``.csv``, between tabs in ``.tsv``,
        otherwise between tabs if the file holds any. Only commas allow quotes. A first line that
        starts with ``label``, ``child`` or ``id`` is a header. An empty parent makes a root.
        """
        parents: dict[str, str | None] = {}
        names = {}
        for line, (label, parent, name) in _read_rows(Path(path)):
            if not label:
                raise ValueError(f"{str(path)!r} has no label in line {line}.")
            if parents.setdefault(label, parent or None) != (parent or None):
                raise ValueError(
                    f"label {label!r} has two parents in {str(path)!r}, {parents[label] or ''!r} "
                    f"and {parent!r} (line {line}); a tree allows one."
                )
            if name:
                names[label] = name
        return cls(parents, names)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> "LabelTree":
        """Make the tree that :meth:`to_dict` wrote."""
        return cls(tree["parents"], tree.get("names"))

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as a dict of plain values, ready for JSON."""
        return {"parents": dict(self._parents), "names": dict(self._names)}

    @property
    def nodes(self) -> tuple[str, ...]:
        """All labels, sorted."""
        return tuple(self._parents)

    @property
    def roots(self) -> tuple[str, ...]:
        """Labels without a parent, sorted."""
        return tuple(self._children[None])

    @property
    def names(self) -> Mapping[str, str]:
        """Display names, read-only."""
        return MappingProxyType(self._names)

    def parent(self, label: str) -> str | None:
        """Return the label above, None for a root."""
        return self._parents[self._check(label)]

    def children(self, label: str) -> list[str]:
        """Return the labels right below, sorted."""
        return list(self._children[self._check(label)])

    def siblings(self, label: str) -> list[str]:
        """Return the other labels with the same parent, sorted; roots are siblings of roots."""
        return [other for other in self._children[self.parent(label)] if other != label]

    def ancestors(self, label: str) -> list[str]:
        """Return all labels above, nearest first."""
        found = []
        above = self.parent(label)
        while above is not None:
            found.append(above)
            above = self._parents[above]
        return found

    def descendants(self, label: str) -> list[str]:
        """Return all labels below; each before those below it."""
        found = []
        waiting = self.children(label)[::-1]
        while waiting:
            found.append(waiting.pop())
            waiting.extend(reversed(self._children[found[-1]]))
        return found

    def level(self, label: str) -> int:
        """Return the number of labels above; a root has 0."""
        return self._levels[self._check(label)]

    def at_level(self, label: str, level: int) -> str:
        """Return the ancestor at a level, or the label itself if it lies no deeper.

        Examples
        --------
        >>> tree = LabelTree.from_names(["science/space/mars"])
        >>> tree.at_level("science/space/mars", 1), tree.at_level("science", 1)
        ('science/space', 'science')
        """
        if level < 0:
            raise ValueError(f"level == {level}, must be >= 0.")
        return [label, *self.ancestors(label)][max(0, self.level(label) - level)]

    def _check(self, label: str) -> str:
        if label not in self:
            raise KeyError(f"label {label!r} is not in the tree.")
        return label

    def __contains__(self, label: object) -> bool:
        return label in self._parents

    def __len__(self) -> int:
        return len(self._parents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTree):
            return NotImplemented
        return self._parents == other._parents and self._names == other._names

    def __hash__(self) -> int:
        return hash(tuple(self._parents.items()))

    def __repr__(self) -> str:
        levels = 1 + max(self._levels.values(), default=-1)
        return f"LabelTree(nodes={len(self)}, roots={len(self.roots)}, levels={levels})"


def _with_roots(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the parents with every parent as a key, sorted."""
    full: dict[str, str | None] = {above: None for above in parents.values() if above is not None}
    full.update(parents)
    for label in full:
        if not isinstance(label, str):
            raise TypeError(f"label {label!r} is not a string.")
        if not label:
            raise ValueError("a label is empty, needs at least one character.")
    return {label: full[label] for label in sorted(full)}


def _levels(parents: Mapping[str, str | None]) -> dict[str, int]:
    """Return the level of each label; a label that is its own ancestor raises."""
    levels: dict[str, int] = {}
    for start in parents:
        path: dict[str, None] = {}
        label: str | None = start
        while label is not None and label not in levels:
            if label in path:
                raise ValueError(_cycle_sentence(list(path), label))
            path[label] = None
            label = parents[label]
        above = -1 if label is None else levels[label]
        levels.update(zip(reversed(path), range(above + 1, above + 1 + len(path)), strict=True))
    return levels


def _cycle_sentence(path: list[str], label: str) -> str:
    """Tell a cycle, at most five labels of it."""
    cycle = path[path.index(label) :]
    shown = [repr(node) for node in cycle[:5]] + ["..."] * (len(cycle) > 5) + [repr(label)]
    return f"labels form a cycle, {' under '.join(shown)}; a tree has none."


def _children(parents: Mapping[str, str | None]) -> dict[str | None, list[str]]:
    """Return the sorted labels below each label; those below None are the roots."""
    children: dict[str | None, list[str]] = {label: [] for label in (None, *parents)}
    for label, parent in parents.items():
        children[parent].append(label)
    return children


def _guess_separator(labels: list[str]) -> str:
    """Return the one separator that occurs in the labels."""
    found = [mark for mark in _SEPARATORS if any(mark in label for label in labels)]
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


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and the cells label, parent, name of each row below the header."""
    rows = _read_cells(path)
    if rows and rows[0][1][0].lower() in _HEADERS:
        _check_header(path, rows.pop(0)[1])
    for line, row in rows:
        if len(row) > 3:
            raise ValueError(
                f"{str(path)!r} has {len(row)} columns in line {line}, needs label, parent[, name]."
            )
    return [(line, [*row, "", ""][:3]) for line, row in rows]


def _read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and cells of each row that is not blank."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".tsv" or (path.suffix != ".csv" and "\t" in text):
        reader = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(io.StringIO(text), strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{str(path)!r} is no CSV: line {reader.line_num}, {error}.") from None
    return [(line, row) for line, row in rows if any(row)]


def _check_header(path: Path, header: list[str]) -> None:
    """Refuse a header that puts something else than the parent second."""
    if len(header) < 2 or not header[1].lower().startswith("parent"):
        raise ValueError(
            f"{str(path)!r} has the header {', '.join(header)}; needs label, parent[, name]."
        )
