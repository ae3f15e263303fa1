"""The tree of labels: which label is under which, and what labels are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar

from polytopic.labels.targets import group_columns, merge, name_in
from polytopic.labels.tree_files import read_tree, write_tree

Name = str | Mapping[str, str]
"""A name without a language, or names by language."""
Alternatives = Iterable[str] | Mapping[str, Iterable[str]]
"""Alternative names without a language, or by language."""

Value = TypeVar("Value")

SEPARATORS = ("/", "::", "--")
_LANGUAGE = re.compile(r"[a-z]{1,8}(-[a-z0-9]{1,8})*")


class LabelTree:
    """An immutable forest of labels, with their names.

    Parameters
    ----------
    parents : mapping of str to str or None
        The parent of each label; None for a root. A parent without a key is a root, too.
    names : mapping of label to str, or of label to {language: str}, optional
        Display names; optional for each label. Runs of spaces are collapsed.
    alternatives : mapping of label to list of str, or of label to {language: list}, optional
        Alternative names.
    notations : mapping of label to str, optional
        Classification codes, if they are not the labels themselves.

    Attributes
    ----------
    nodes : tuple of str
        All labels, sorted.
    roots : tuple of str
        Labels without a parent, sorted.
    depth : int
        Number of levels.
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
        for name, values in {
            "parents": parents,
            "names": names or {},
            "alternatives": alternatives or {},
            "notations": notations or {},
        }.items():
            if not isinstance(values, Mapping):
                raise TypeError(
                    f"{name} is a {type(values).__name__}, must be a mapping of labels."
                )
        self._parents = _with_roots(parents)
        self._levels = _levels(self._parents)
        self._children = _children(self._parents)
        self._names = self._of_labels(names, _read_name)
        self._alternatives = self._of_labels(alternatives, _read_alternatives)
        self._notations = self._of_labels(notations, _one_line)

    def _of_labels(self, values, read) -> dict[str, Any]:
        """Return the values of labels, sorted, without empty ones."""
        values = values or {}
        readings = {self._check(label): read(values[label]) for label in sorted(values)}
        return {label: value for label, value in readings.items() if value}

    @classmethod
    def from_names(cls, labels: Iterable[str], separator: str | None = "/") -> LabelTree:
        """Return the tree of labels that are paths; missing upper labels are added.

        Parameters
        ----------
        labels : iterable of str
            Labels such as ``science/space/mars``.
        separator : str or None, default="/"
            Separates the steps of a path. With None, it is the one of ``/``, ``::`` and ``--`` that
            occurs in the labels; if none or several occur, ValueError is raised.

        Examples
        --------
        >>> LabelTree.from_names(["role::program", "role::plugin"], "::").children("role")
        ['role::plugin', 'role::program']
        """
        return cls(_parents_of_paths(labels, separator))

    @classmethod
    def from_file(cls, path: str | Path) -> LabelTree:
        r"""Read a tree, or a flat list, of labels with their names from a file.

        The extension determines the format:

        - ``.ttl``, ``.rdf`` and ``.nt`` are SKOS: concepts with broader and narrower concepts,
          preferred and alternative labels, and notations. Ids are the concepts' URIs. If a concept
          has several broader ones, the first in sorted order is used, with a warning. Deprecated
          concepts are skipped.
        - ``.csv`` has columns separated by commas, ``.tsv`` by tabs, without quotes; other files
          by tabs if there are any. A header names the columns: ``id`` (or ``uri``, ``label``,
          ``child``), ``parent``, ``name`` (or ``label``), ``alt``, ``notation``, and names by
          language (``label_en``, ``alt_fi``). Alternative names are separated by ``|``. Without a
          header, the columns are label, parent and name or, if the first label is a URI in angle
          brackets, label, name and notation. A label with an empty parent is a root.
        """
        return cls(**read_tree(Path(path)))

    def to_file(self, path: str | Path) -> None:
        """Write the tree to a file that :meth:`from_file` reads, completely or not at all.

        In SKOS, labels that are not URIs become URIs that begin with ``urn:polytopic:label:``. A
        tree that the format cannot represent raises ValueError.
        """
        write_tree(self, Path(path))

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> LabelTree:
        """Return the tree that :meth:`to_dict` described."""
        unknown = set(tree) - {"parents", "names", "alternatives", "notations"}
        if unknown or "parents" not in tree:
            raise ValueError(
                f"a tree has {', '.join(map(repr, sorted(tree))) or 'nothing'}, must have "
                "'parents' and may have 'names', 'alternatives' and 'notations'."
            )
        return cls(**tree)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as a dict of plain values, ready for JSON."""
        alternatives = {
            label: {language: list(texts) for language, texts in names.items()}
            for label, names in self._alternatives.items()
        }
        return {
            "parents": dict(self._parents),
            "names": {label: dict(names) for label, names in self._names.items()},
            "alternatives": alternatives,
            "notations": dict(self._notations),
        }

    def including(self, labels: Iterable[str]) -> LabelTree:
        """Return the tree with these labels added as roots, unless it has them."""
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
        """Number of levels."""
        return 1 + max(self._levels.values(), default=-1)

    @property
    def names(self) -> Mapping[str, Mapping[str, str]]:
        """Display names by language, read-only."""
        return MappingProxyType(self._names)

    @property
    def alternatives(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Alternative names by language, read-only."""
        return MappingProxyType(self._alternatives)

    @property
    def notations(self) -> Mapping[str, str]:
        """Classification codes, read-only."""
        return MappingProxyType(self._notations)

    def name(self, label: str, language: str | None = None) -> str:
        """Return the display name in this language or a variant of it, else in another.

        Among others, names without a language and in English come first. A label without a name,
        or one that is not in the tree, is returned unchanged.
        """
        return name_in(self._names.get(label, {}), language) or label

    def find(self, label: str) -> str | None:
        """Return the label with this id, notation, name or alternative name, in this order.

        Names in every language count. None is returned if there is no such label, or several.
        """
        return self._labels_by_name.get(label)

    @cached_property
    def _labels_by_name(self) -> dict[str, str | None]:
        """Labels by id, notation, name and alternative name."""
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
        labels: dict[str, str | None] = {label: label for label in self._parents}
        for pairs in kinds:
            labels_of_kind: dict[str, str | None] = {}
            for text, label in pairs:
                labels_of_kind[text] = label if labels_of_kind.get(text, label) == label else None
            labels = labels_of_kind | labels
        return labels

    def parent(self, label: str) -> str | None:
        """Return the parent, None for a root."""
        return self._parents[self._check(label)]

    def children(self, label: str) -> list[str]:
        """Return the children, sorted."""
        return list(self._children[self._check(label)])

    def siblings(self, label: str) -> list[str]:
        """Return the other labels with the same parent, sorted; roots are siblings of roots."""
        return [other for other in self._children[self.parent(label)] if other != label]

    def ancestors(self, label: str) -> list[str]:
        """Return all ancestors, nearest first."""
        ancestors = []
        above = self.parent(label)
        while above is not None:
            ancestors.append(above)
            above = self._parents[above]
        return ancestors

    def descendants(self, label: str) -> list[str]:
        """Return all descendants, each before its own descendants."""
        descendants = []
        stack = self.children(label)[::-1]
        while stack:
            descendants.append(stack.pop())
            stack.extend(reversed(self._children[descendants[-1]]))
        return descendants

    def level(self, label: str) -> int:
        """Return the number of ancestors; a root has 0."""
        return self._levels[self._check(label)]

    def at_level(self, label: str, level: int) -> str:
        """Return the ancestor at a level, or the label itself if it is not deeper.

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
        return self  # immutable

    def __reduce__(self):
        return LabelTree.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"LabelTree(nodes={len(self)}, roots={len(self.roots)}, levels={self.depth})"


class Level:
    r"""Labels rolled up to their ancestors at one level of the tree.

    A label that is not deeper than the level, or not in the tree, stays as it is. Rolling up to one
    level and then to a higher one is the same as rolling up to the higher one at once.

    Parameters
    ----------
    labels : sequence of str
        The labels of the columns.
    tree : LabelTree
        Their tree.
    level : int
        0 for the roots.

    Attributes
    ----------
    labels : tuple of str
        The labels at the level, sorted.
    matrix : csr_matrix of shape (n_labels, n_labels_at_level)
        1 if a label is, or is under, a label at the level.

    Examples
    --------
    >>> tree = LabelTree.from_names(["science/space", "science/biology", "sport"])
    >>> level = Level(["science/biology", "science/space", "sport"], tree, 0)
    >>> level.labels, level.proba(np.array([[0.5, 0.5, 0.1]]))
    (('science', 'sport'), array([[0.75, 0.1 ]]))
    """

    def __init__(self, labels: Sequence[str], tree: LabelTree, level: int) -> None:
        check_scalar(level, "level", Integral, min_val=0)
        space, self.matrix = group_columns(_rolled_up(labels, tree, level))
        self.labels: tuple[str, ...] = space.ids
        place = self.matrix.indices
        self._order = np.argsort(place, kind="stable")
        self._starts = np.searchsorted(place[self._order], np.arange(len(space)))

    def sets(self, Y: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return the indicator of the labels of each row, rolled up."""
        return merge(Y, self.matrix)

    def scores(self, scores):
        """Return the highest score of the labels that are rolled up into one."""
        if sparse.issparse(scores):
            return self._rolled(scores, np.maximum)
        return np.maximum.reduceat(scores[:, self._order], self._starts, axis=1)

    def proba(self, proba):
        r"""Return the probability that any of them is right, if they were independent.

        .. math:: p = 1 - \prod_l (1 - p_l)

        Labels are not independent, so this is an approximation. It is never below the probability
        of the best label and never above their sum.
        """
        if sparse.issparse(proba):
            wrong = proba.copy()
            wrong.data = 1.0 - wrong.data
            right = self._rolled(wrong, np.multiply)
            right.data = 1.0 - right.data
            return right
        wrong = np.multiply.reduceat(1.0 - proba[:, self._order], self._starts, axis=1)
        return 1.0 - wrong

    def _rolled(self, values: sparse.csr_matrix, reduce: np.ufunc) -> sparse.csr_matrix:
        """Return the numbers of candidates, where those of labels rolled up into one are joined."""
        values = sparse.csr_matrix(values)
        rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        columns = self.matrix.indices[values.indices].astype(np.int64)
        order = np.lexsort((columns, rows))
        rows, columns, data = rows[order], columns[order], values.data[order]
        first = np.flatnonzero(np.diff(rows * len(self.labels) + columns, prepend=-1))
        joined = reduce.reduceat(data, first) if data.size else data
        ends = np.searchsorted(rows[first], np.arange(values.shape[0] + 1))
        shape = (values.shape[0], len(self.labels))
        return sparse.csr_matrix((joined, columns[first], ends), shape=shape)


def _rolled_up(labels: Sequence[str], tree: LabelTree, level: int) -> list[str]:
    """Return the ancestor of each label at a level; each step of the tree is taken once."""
    known: dict[str, str] = {}
    for label in labels:
        path, above = [], label
        while above in tree and above not in known and tree.level(above) > level:
            path.append(above)
            above = str(tree.parent(above))
        known.update(dict.fromkeys([*path, label], known.get(above, above)))
    return [known[label] for label in labels]


def _with_roots(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the parents with every parent as a key, sorted."""
    full: dict[str, str | None] = {above: None for above in parents.values() if above is not None}
    full.update(parents)
    for label in full:
        if not isinstance(label, str):
            raise TypeError(f"label {label!r} is not a string.")
        if not label:
            raise ValueError("a label is empty, must have at least one character.")
    return {label: full[label] for label in sorted(full)}


def _levels(parents: Mapping[str, str | None]) -> dict[str, int]:
    """Return the level of each label; raise if a label is its own ancestor."""
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
    """Return a sentence that shows at most five labels of a cycle."""
    cycle = path[path.index(label) :]
    nodes = [repr(node) for node in cycle[:5]] + ["..."] * (len(cycle) > 5) + [repr(label)]
    return f"labels form a cycle, {' under '.join(nodes)}, must be a tree."


def _children(parents: Mapping[str, str | None]) -> dict[str | None, list[str]]:
    """Return the sorted children of each label; those of None are the roots."""
    children: dict[str | None, list[str]] = {label: [] for label in (None, *parents)}
    for label, parent in parents.items():
        children[parent].append(label)
    return children


# Labels that are paths, such as science/space


def _parents_of_paths(labels: Iterable[str], separator: str | None) -> dict[str, str | None]:
    """Return the parent of each path, and of the upper paths that are missing."""
    if isinstance(labels, str):
        raise TypeError(f"labels is the string {labels!r}, must be a collection of labels.")
    labels = list(labels)
    if separator == "":
        raise ValueError("separator is empty, must have at least one character.")
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
    separators = [mark for mark in SEPARATORS if any(mark in label for label in labels)]
    if len(separators) != 1:
        names = " and ".join(map(repr, separators))
        what = f"{names} occur" if names else "no '/', '::' or '--' occurs"
        raise ValueError(f"the separator is ambiguous: {what} in the labels. Give separator.")
    return separators[0]


def _upper(label: str, separator: str) -> str | None:
    """Return the path one step up, None at the top; repeated separators count as one."""
    upper = _trim(_trim(label, separator).rpartition(separator)[0], separator)
    return upper or None


def _trim(path: str, separator: str) -> str:
    """Return a path without trailing separators."""
    end = len(path)
    while path.endswith(separator, 0, end):
        end -= len(separator)
    return path[:end]


# Names


def _read_name(name: Name) -> Mapping[str, str]:
    """Return names by language, sorted and read-only; ``""`` means no language."""
    by_language = name if isinstance(name, Mapping) else {"": name}
    return _by_language({language: _one_line(text) for language, text in by_language.items()})


def _read_alternatives(names: Alternatives) -> Mapping[str, tuple[str, ...]]:
    """Return alternative names by language, sorted, distinct and read-only."""
    if isinstance(names, str):
        raise TypeError(f"alternatives == {names!r} is one string, must be a list of names.")
    by_language = names if isinstance(names, Mapping) else {"": names}
    for texts in by_language.values():
        if not isinstance(texts, Iterable):
            raise TypeError(f"alternatives == {texts!r}, must be a list of names.")
    return _by_language(
        {
            language: tuple(sorted({line for text in texts if (line := _one_line(text))}))
            for language, texts in by_language.items()
        }
    )


def _one_line(text: str) -> str:
    """Return a name with single spaces."""
    return " ".join(str(text).split())


def _by_language(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return values by language, in lower case and sorted, without empty values."""
    tagged = {_tag(language): value for language, value in values.items() if value}
    return MappingProxyType(dict(sorted(tagged.items())))


@lru_cache
def _tag(language: str) -> str:
    """Return a language tag in lower case; the empty tag is allowed."""
    tag = language.lower()
    if tag and not _LANGUAGE.fullmatch(tag):
        raise ValueError(f"language == {language!r}, must be a tag such as 'en' or 'pt-br'.")
    return tag
