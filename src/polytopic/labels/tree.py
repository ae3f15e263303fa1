"""The tree of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from polytopic.labels import skos, tables
from polytopic.labels.names import (
    Alternatives,
    Name,
    name_in,
    one_line,
    read_alternatives,
    read_name,
)
from polytopic.labels.paths import parents_of_paths


class LabelTree:
    """Which label lies under which, and what labels are called: a forest, fixed once it is made.

    Parameters
    ----------
    parents : mapping of str to str or None
        The parent of each label; None for a root. A parent that is no key is a root too.
    names : mapping of label to str, or of label to {language: str}, optional
        Names to show; a label may go without. Wherever a name has space, one is kept.
    alternatives : mapping of label to list of str, or of label to {language: list}, optional
        Other names that a label is known by.
    notations : mapping of label to str, optional
        Codes of a classification, where they are not the labels themselves.

    Attributes
    ----------
    nodes : tuple of str
        All labels, sorted.
    roots : tuple of str
        Labels without a parent, sorted.
    depth : int
        How many levels there are.
    names, alternatives, notations : mapping
        As given, by label and language (``""`` for none), read-only.

    Examples
    --------
    >>> tree = LabelTree({"space": "science", "mars": "space", "sport": None})
    >>> tree
    LabelTree(nodes=4, roots=2, levels=3)
    >>> tree.ancestors("mars"), tree.children("science"), tree.siblings("sport")
    (['space', 'science'], ['space'], ['science'])
    >>> tree = LabelTree({"t1": None}, {"t1": {"en": "Space", "cs": "Vesmír"}})
    >>> tree.name("t1", "cs"), tree.find("Space")
    ('Vesmír', 't1')
    """

    def __init__(
        self,
        parents: Mapping[str, str | None],
        names: Mapping[str, Name] | None = None,
        *,
        alternatives: Mapping[str, Alternatives] | None = None,
        notations: Mapping[str, str] | None = None,
    ) -> None:
        self._parents = _with_roots(parents)
        self._levels = _levels(self._parents)
        self._children = _children(self._parents)
        self._names = self._of_labels(names, read_name)
        self._alternatives = self._of_labels(alternatives, read_alternatives)
        self._notations = self._of_labels(notations, one_line)

    def _of_labels(self, values, read) -> dict[str, Any]:
        """Return what is said of labels, sorted, without what is empty."""
        values = values or {}
        found = {self._check(label): read(values[label]) for label in sorted(values)}
        return {label: value for label, value in found.items() if value}

    @classmethod
    def from_names(cls, labels: Iterable[str], separator: str | None = "/") -> LabelTree:
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
        return cls(parents_of_paths(labels, separator))

    @classmethod
    def from_file(cls, path: str | Path) -> LabelTree:
        r"""Read a tree, or a flat list, of labels and their names from a file.

        The ending tells the format:

        - ``.ttl``, ``.rdf`` and ``.nt`` hold SKOS: concepts with broader and narrower ones,
          preferred and alternative labels, notations. Ids are the concepts' URIs. Of several
          broader concepts the first in sorted order is kept, with a warning; deprecated concepts
          are left out.
        - ``.csv``: columns between commas; ``.tsv``: between tabs, without quotes; otherwise
          tabs if there are any. A header names the columns: ``id`` (or ``uri``, ``label``,
          ``child``), ``parent``, ``name`` (or ``label``), ``alt``, ``notation``, the names also
          by language (``label_en``, ``alt_fi``). Alternative names stand between ``|``. Without
          a header the columns are label, parent and name; or, where the first label is a URI in
          angle brackets, label, name and notation. An empty parent makes a root.
        """
        path = Path(path)
        if path.suffix.lower() in skos.FORMATS:
            return cls(**skos.read(path))
        return cls(**tables.read(path))

    def to_file(self, path: str | Path) -> None:
        """Write the tree to a file that :meth:`from_file` reads; whole, or not at all.

        Labels that are no URIs are written to SKOS as URIs that begin with
        ``urn:polytopic:label:``. What a format cannot hold is refused.
        """
        path = Path(path)
        if path.suffix.lower() in skos.FORMATS:
            skos.write(self, path)
        else:
            tables.write(self, path)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> LabelTree:
        """Make the tree that :meth:`to_dict` wrote."""
        return cls(**tree)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as a dict of plain values, ready for JSON."""
        alternatives = {
            label: {language: list(names) for language, names in found.items()}
            for label, found in self._alternatives.items()
        }
        return {
            "parents": dict(self._parents),
            "names": {label: dict(found) for label, found in self._names.items()},
            "alternatives": alternatives,
            "notations": dict(self._notations),
        }

    def including(self, labels: Iterable[str]) -> LabelTree:
        """Return the tree with these labels too: those it does not hold are roots."""
        tree = self.to_dict()
        tree["parents"] = dict.fromkeys(labels) | tree["parents"]
        return LabelTree.from_dict(tree)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All labels, sorted."""
        return tuple(self._parents)

    @property
    def roots(self) -> tuple[str, ...]:
        """Labels without a parent, sorted."""
        return tuple(self._children[None])

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return 1 + max(self._levels.values(), default=-1)

    @property
    def names(self) -> Mapping[str, Mapping[str, str]]:
        """Names to show by language, read-only."""
        return MappingProxyType(self._names)

    @property
    def alternatives(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Alternative names by language, read-only."""
        return MappingProxyType(self._alternatives)

    @property
    def notations(self) -> Mapping[str, str]:
        """Codes of a classification, read-only."""
        return MappingProxyType(self._notations)

    def name(self, label: str, language: str | None = None) -> str:
        """Return the name to show: in this language or a variant of it, else in any.

        Before any other come names without a language and English ones. A label without a name,
        or one that is not in the tree, is shown as it is.
        """
        return name_in(self._names.get(label, {}), language) or label

    def find(self, label: str) -> str | None:
        """Return the label that is meant by its id, notation, name or alternative name.

        These come in this order; names of every language count. None is returned for what is
        not known, or stands for several labels.
        """
        return self._meant.get(label)

    @cached_property
    def _meant(self) -> dict[str, str | None]:
        """Labels by all that they are called."""
        kinds = (
            ((text, label) for label, text in self._notations.items()),
            ((text, label) for label, names in self._names.items() for text in names.values()),
            (
                (text, label)
                for label, names in self._alternatives.items()
                for texts in names.values()
                for text in texts
            ),
        )
        meant: dict[str, str | None] = {label: label for label in self._parents}
        for pairs in kinds:
            found: dict[str, str | None] = {}
            for text, label in pairs:
                found[text] = label if found.get(text, label) == label else None
            meant = found | meant
        return meant

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
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self._parents.items()))

    def __deepcopy__(self, memo):
        return self  # nothing can change it

    def __reduce__(self):
        return LabelTree.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"LabelTree(nodes={len(self)}, roots={len(self.roots)}, levels={self.depth})"


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
