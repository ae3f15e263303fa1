"""Files of label trees: tables (CSV and TSV), and SKOS, the format of library vocabularies."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urljoin
from xml.parsers import expat

from polytopic.errors import LabelWarning, PolytopicError
from polytopic.files import new_file
from polytopic.lines import read_bytes

if TYPE_CHECKING:
    from polytopic.labels.tree import LabelTree

RDF_FORMATS = {".ttl": "turtle", ".rdf": "xml", ".xml": "xml", ".nt": "nt"}
URI = re.compile(r"(?:https?://|urn:)[^\x00-\x20<>\"{}|\\^`\x7f-\xa0]+")


def read_tree(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a tree: parents, names, alternatives and notations."""
    return _read_skos(path) if path.suffix.lower() in RDF_FORMATS else _read_table(path)


def write_tree(tree: LabelTree, path: Path) -> None:
    """Write a tree to a file, completely or not at all."""
    ending = path.suffix.lower()
    if ending in RDF_FORMATS:
        content = _skos(tree, RDF_FORMATS[ending])
    elif ending in (".csv", ".tsv"):
        content = _table(tree, tabs=ending == ".tsv")
    else:
        raise ValueError(f"{str(path)!r} must end in .ttl, .rdf, .nt, .csv or .tsv.")
    with new_file(path, PolytopicError) as file:
        file.write(content)


# Tables

NEEDED = "needs id, parent[, name]"


class Column(NamedTuple):
    """The kind of a column and, for names, the language."""

    kind: str
    language: str = ""


ID, PARENT, NAME, NOTATION = map(Column, ("id", "parent", "name", "notation"))
IDS = ("uri", "id", "child", "label")  # the first of them in a header
PLAIN, SUBJECTS = (ID, PARENT, NAME), (ID, NAME, NOTATION)  # without a header


def _read_table(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a tree in a table."""
    parents: dict[str, str | None] = {}
    names: dict[str, dict[str, str]] = {}
    alternatives: dict[str, dict[str, list[str]]] = {}
    notations: dict[str, str] = {}
    for line, row in _rows(path):
        label, parent = row.pop(ID, ""), row.pop(PARENT, "") or None
        if not label:
            raise ValueError(f"{str(path)!r} has no label in line {line}.")
        if parents.setdefault(label, parent) != parent:
            raise ValueError(
                f"label {label!r} has two parents in {str(path)!r}, {parents[label] or ''!r} "
                f"and {parent or ''!r} (line {line}); a tree allows one."
            )
        if notation := row.pop(NOTATION, ""):
            notations[label] = notation
        for (kind, language), cell in row.items():
            if kind == "name" and cell:
                names.setdefault(label, {})[language] = cell
            elif kind == "alt":
                alternatives.setdefault(label, {})[language] = _split(cell)
    return {
        "parents": parents,
        "names": names,
        "alternatives": alternatives,
        "notations": notations,
    }


def _rows(path: Path) -> Iterator[tuple[int, dict[Column, str]]]:
    """Yield the line number and the cells by column of each row below the header."""
    lines = _read_cells(path)
    if not lines:
        return
    columns = _read_header(path, lines[0][1])
    if columns is not None:
        del lines[0]
    elif lines[0][1][0] != _bare(lines[0][1][0]):
        columns = list(SUBJECTS)
    else:
        columns = list(PLAIN)
    for line, cells in lines:
        if len(cells) > len(columns):
            raise ValueError(f"{str(path)!r} has {len(cells)} columns in line {line}, {NEEDED}.")
        row = {column: cell for column, cell in zip(columns, cells, strict=False) if column}
        yield line, row | {key: _bare(row[key]) for key in (ID, PARENT) if key in row}


def _read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Return line number and cells of each row that is not blank."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not valid UTF-8 (byte {error.start + 1}).") from None
    lines, ending = io.StringIO(text, newline=""), path.suffix.lower()
    if ending == ".tsv" or (ending != ".csv" and "\t" in text):
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(
            f"{str(path)!r} is not valid CSV: line {reader.line_num}, {error}."
        ) from None
    return [(line, row) for line, row in rows if any(row)]


def _read_header(path: Path, cells: list[str]) -> list[Column | None] | None:
    """Return the columns, with None for an unknown one; None if this is not a header."""
    titles = [cell.lower() for cell in cells]
    known = all(title in IDS or _meaning(title) for title in titles)
    if titles[0] not in IDS and "uri" not in titles and not (known and set(titles) & set(IDS)):
        return None
    label = next(title for title in IDS if title in titles)
    columns = [ID if title == label else _meaning(title) for title in titles]
    times = Counter(columns)
    repeated = next((column for column in columns if column and times[column] > 1), None)
    if repeated:
        same = [cell for cell, column in zip(cells, columns, strict=True) if column == repeated]
        raise ValueError(
            f"{str(path)!r} has the columns {' and '.join(same)}, which mean the same; keep one."
        )
    if len(columns) > 1 and not any(column not in (ID, None) for column in columns):
        raise ValueError(f"{str(path)!r} has the header {', '.join(cells)}; {NEEDED}.")
    ignored = [cell for cell, column in zip(cells, columns, strict=True) if column is None]
    if ignored:
        sentence = f"{str(path)!r}: the columns {', '.join(ignored)} are ignored."
        warnings.warn(sentence, LabelWarning, stacklevel=2)
    return columns


def _meaning(title: str) -> Column | None:
    """Return the column with this title, None if it is unknown."""
    kind, _, language = title.partition("_")
    if kind in ("parent", "broader"):
        return PARENT
    kind = {"label": "name", "preflabel": "name", "altlabel": "alt"}.get(kind, kind)
    if kind in ("name", "alt"):
        return Column(kind, language.replace("_", "-"))
    return NOTATION if title == "notation" else None


def _bare(label: str) -> str:
    """Return a URI without the angle brackets around it."""
    inner = label.removeprefix("<").removesuffix(">")
    return inner if len(inner) == len(label) - 2 and URI.fullmatch(inner) else label


def _split(cell: str) -> list[str]:
    r"""Return the names in a cell; ``\`` escapes ``|`` and itself."""
    parts = re.findall(r"(?:[^|\\]|\\.?)+", cell, flags=re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts]


def _table(tree: LabelTree, *, tabs: bool) -> bytes:
    """Return a tree as a table with a header."""
    columns = _columns(tree)
    uris = all(URI.fullmatch(label) for label in tree.nodes)
    rows = [[_title(column, uris) for column in columns]]
    for label in tree.nodes:
        _check(label, tabs)
        rows.append([_cell(tree, label, column) for column in columns])
    text = io.StringIO(newline="")
    if tabs:
        text.writelines("\t".join(row) + "\n" for row in rows)
    else:
        csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _columns(tree: LabelTree) -> list[Column]:
    """Return the columns of a tree."""
    languages = {language for names in tree.names.values() for language in names}
    others = {language for names in tree.alternatives.values() for language in names}
    columns = [ID, PARENT, *(Column("name", language) for language in sorted(languages))]
    columns += [Column("alt", language) for language in sorted(others)]
    return [*columns, NOTATION] if tree.notations else columns


def _title(column: Column, uris: bool) -> str:
    kind = {"id": "uri" if uris else "id", "name": "label"}.get(column.kind, column.kind)
    return f"{kind}_{column.language}" if column.language else kind


def _cell(tree: LabelTree, label: str, column: Column) -> str:
    kind, language = column
    if kind == "id":
        return label
    if kind == "parent":
        return tree.parent(label) or ""
    if kind == "notation":
        return tree.notations.get(label, "")
    if kind == "name":
        return tree.names.get(label, {}).get(language, "")
    others = tree.alternatives.get(label, {}).get(language, ())
    return "|".join(re.sub(r"([|\\])", r"\\\1", name) for name in others)


def _check(label: str, tabs: bool) -> None:
    """Raise if a label would be read as another one."""
    if label != label.strip() or label != _bare(label):
        raise ValueError(
            f"label {label!r} has space or angle brackets around it, which a table cannot "
            "represent; write SKOS (.ttl)."
        )
    if tabs and re.search(r"[\t\r\n]", label):
        raise ValueError(
            f"label {label!r} contains a tab or line end, which TSV cannot represent; write CSV."
        )


# SKOS

LABEL_PREFIX = "urn:polytopic:label:"  # turns labels into URIs
SCHEME = "urn:polytopic:labels"
BASE = "http://relative.invalid/"  # resolves relative URIs, and is removed again
MAX_ENTITY = 1000  # characters
INVALID_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _read_skos(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a tree in SKOS."""
    graph = _parse(path)
    concepts = _concepts(graph)
    names, alternatives = _names(graph, concepts)
    codes = _texts(graph, "notation", concepts)
    return {
        "parents": _parents(path, graph, concepts),
        "names": names,
        "alternatives": alternatives,
        "notations": {label: min(text for _, text in texts) for label, texts in codes.items()},
    }


def _rdflib():
    """Import rdflib, an optional dependency."""
    try:
        import rdflib
    except ImportError:
        raise PolytopicError(
            "rdflib is not installed. Install it with: pip install 'polytopic[formats]'"
        ) from None
    return rdflib


def _parse(path: Path):
    """Return the statements of a file."""
    rdflib, content, format = _rdflib(), read_bytes(path), RDF_FORMATS[path.suffix.lower()]
    if format == "xml":
        _check_entities(path, content)
    try:
        return rdflib.Graph().parse(data=content, format=format, publicID=BASE)
    except Exception as error:  # rdflib's parsers raise many types
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise ValueError(f"{str(path)!r} cannot be read as {format}: {reason}.") from error


def _check_entities(path: Path, content: bytes) -> None:
    """Raise for entities that could expand without limit; short ones are common in namespaces."""
    parser = expat.ParserCreate("utf-8")  # as rdflib reads it, whatever encoding it declares

    def on_entity(name, is_parameter, value, *origin) -> None:
        if is_parameter or value is None or "&" in value or len(value) > MAX_ENTITY:
            raise ValueError(
                f"{str(path)!r} declares the entity {short(name)}, must be at most "
                f"{MAX_ENTITY:,} characters without other entities."
            )

    def on_element(name, attributes) -> None:
        raise EOFError  # entities are declared before the first element

    parser.EntityDeclHandler, parser.StartElementHandler = on_entity, on_element
    with suppress(EOFError, expat.ExpatError):  # rdflib reports invalid XML
        parser.Parse(content, True)


def _concepts(graph) -> set:
    """Return the concepts that are in use and have a URI."""
    rdflib = _rdflib()
    SKOS, RDF, OWL = rdflib.SKOS, rdflib.RDF, rdflib.OWL
    concepts = set(graph.subjects(RDF.type, SKOS.Concept))
    for relation in (SKOS.broader, SKOS.narrower):
        concepts.update(graph.subjects(relation), graph.objects(None, relation))
    concepts.update(graph.subjects(SKOS.topConceptOf), graph.objects(None, SKOS.hasTopConcept))
    old = {s for s, o in graph.subject_objects(OWL.deprecated) if str(o).lower() in ("true", "1")}
    return {concept for concept in concepts - old if isinstance(concept, rdflib.URIRef)}


def _parents(path: Path, graph, concepts: set) -> dict[str, str | None]:
    """Return the broader concept of each concept, the first if there are several."""
    SKOS = _rdflib().SKOS
    broader: dict[str, set[str]] = defaultdict(set)
    pairs = [*graph.subject_objects(SKOS.broader)]
    pairs += [(below, above) for above, below in graph.subject_objects(SKOS.narrower)]
    for below, above in pairs:
        if below in concepts and above in concepts:
            broader[_label(below)].add(_label(above))
    several = sorted(label for label, above in broader.items() if len(above) > 1)
    if several:
        first, other, *_ = sorted(broader[several[0]])
        warnings.warn(
            f"{len(several):,} labels of {str(path)!r} have several parents; a tree keeps the "
            f"first: {several[0]!r} is under {first!r}, not under {other!r}.",
            LabelWarning,
            stacklevel=2,
        )
    return {label: min(broader[label], default=None) for label in map(_label, concepts)}


def _names(graph, concepts: set) -> tuple[dict, dict]:
    """Return preferred and alternative names by label and language.

    If a language has several preferred names, the first in sorted order is the name.
    """
    names: dict[str, dict[str, str]] = {}
    others: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for label, texts in _texts(graph, "prefLabel", concepts).items():
        names[label] = {}
        for language, text in sorted(texts):
            if names[label].setdefault(language, text) != text:
                others[label][language].append(text)
    for label, texts in _texts(graph, "altLabel", concepts).items():
        for language, text in texts:
            others[label][language].append(text)
    return names, others


def _texts(graph, relation: str, concepts: set) -> dict[str, list[tuple[str, str]]]:
    """Return the languages and texts of each label."""
    rdflib = _rdflib()
    texts = defaultdict(list)
    for concept, text in graph.subject_objects(rdflib.SKOS[relation]):
        if concept in concepts and isinstance(text, rdflib.Literal) and text.strip():
            texts[_label(concept)].append(((text.language or "").lower(), str(text)))
    return texts


def _label(concept) -> str:
    """Return the label of a concept."""
    if concept.startswith(LABEL_PREFIX):
        return unquote(concept.removeprefix(LABEL_PREFIX))
    return str(concept.removeprefix(BASE))


def _skos(tree: LabelTree, format: str) -> bytes:
    """Return a tree as one concept scheme."""
    return _turtle(tree) if format == "turtle" else _serialize(tree, format)


def _turtle(tree: LabelTree) -> bytes:
    """Return a tree as Turtle, in sorted order; rdflib's own writer is many times slower."""
    rdflib = _rdflib()
    skos = str(rdflib.SKOS)

    def turtle(predicate, value) -> str:
        if predicate == rdflib.RDF.type:
            return f"a skos:{value.removeprefix(skos)}"
        return f"skos:{predicate.removeprefix(skos)} {value.n3()}"

    blocks = [f"@prefix skos: <{skos}> .\n"]
    for subject, triples in groupby(_triples(tree), itemgetter(0)):
        statements = " ;\n    ".join(turtle(predicate, value) for _, predicate, value in triples)
        blocks.append(f"{subject.n3()} {statements} .\n")
    return "\n".join(blocks).encode()


def _serialize(tree: LabelTree, format: str) -> bytes:
    """Return a tree in another format of RDF."""
    graph = _rdflib().Graph()
    for triple in _triples(tree):
        graph.add(triple)
    wrong = format == "xml" and next((o for o in graph.objects() if INVALID_IN_XML.search(o)), None)
    if wrong:
        raise ValueError(f"the name {str(wrong)!r} cannot be written as XML; write .ttl.")
    return graph.serialize(format=format, encoding="utf-8")


def _triples(tree: LabelTree) -> Iterator[tuple]:
    """Yield the statements of a tree, concept by concept."""
    rdflib = _rdflib()
    SKOS, Literal = rdflib.SKOS, rdflib.Literal
    concepts = {label: rdflib.URIRef(_uri(label)) for label in tree.nodes}
    scheme = rdflib.URIRef(SCHEME)
    yield scheme, rdflib.RDF.type, SKOS.ConceptScheme
    yield from ((scheme, SKOS.hasTopConcept, concepts[label]) for label in tree.roots)
    for label, concept in concepts.items():
        parent = tree.parent(label)
        yield concept, rdflib.RDF.type, SKOS.Concept
        yield concept, SKOS.inScheme, scheme
        if parent is None:
            yield concept, SKOS.topConceptOf, scheme
        else:
            yield concept, SKOS.broader, concepts[parent]
        yield from ((concept, SKOS.narrower, concepts[child]) for child in tree.children(label))
        for language, name in tree.names.get(label, {}).items():
            yield concept, SKOS.prefLabel, Literal(name, lang=language or None)
        for language, others in tree.alternatives.get(label, {}).items():
            yield from (
                (concept, SKOS.altLabel, Literal(name, lang=language or None)) for name in others
            )
        if label in tree.notations:
            yield concept, SKOS.notation, Literal(tree.notations[label])


def _uri(label: str) -> str:
    """Return a label as a URI; one that would be read differently gets a prefix."""
    reserved = label.startswith((LABEL_PREFIX, BASE)) or label == SCHEME
    plain = URI.fullmatch(label) and not reserved and urljoin(BASE, label) == label
    return label if plain else LABEL_PREFIX + quote(label, safe="")
