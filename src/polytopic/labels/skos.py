"""Trees of labels as SKOS, the format of library vocabularies, in Turtle or RDF/XML."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urljoin
from xml.parsers import expat

from polytopic.errors import LabelWarning, PolytopicError
from polytopic.files import new_file
from polytopic.labels.tabular import URI
from polytopic.lines import read_bytes

if TYPE_CHECKING:
    from polytopic.labels.tree import LabelTree

FORMATS = {".ttl": "turtle", ".rdf": "xml", ".xml": "xml", ".nt": "nt"}
OURS = "urn:polytopic:label:"  # prefix of labels that are not URIs
SCHEME = "urn:polytopic:labels"
BASE = "http://relative.invalid/"  # of relative URIs, and removed again
MAX_ENTITY = 1000  # characters
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a tree: parents, names, alternatives and notations."""
    graph = _parse(path)
    concepts = _concepts(graph)
    names, alternatives = _names(graph, concepts)
    codes = _texts(graph, "notation", concepts)
    return {
        "parents": _parents(path, graph, concepts),
        "names": names,
        "alternatives": alternatives,
        "notations": {label: min(text for _, text in found) for label, found in codes.items()},
    }


def write(tree: LabelTree, path: Path) -> None:
    """Write a tree as one concept scheme."""
    format = FORMATS[path.suffix.lower()]
    content = _turtle(tree) if format == "turtle" else _serialized(tree, format)
    with new_file(path, PolytopicError) as file:
        file.write(content)


def _rdflib():
    """Import rdflib, an optional dependency."""
    try:
        import rdflib
    except ImportError:
        raise PolytopicError(
            "rdflib is not installed. Install it with: pip install 'polytopic[formats]'"
        ) from None
    return rdflib


# Reading


def _parse(path: Path):
    """Return the statements of a file."""
    rdflib, content, format = _rdflib(), read_bytes(path), FORMATS[path.suffix.lower()]
    if format == "xml":
        _check_entities(path, content)
    try:
        return rdflib.Graph().parse(data=content, format=format, publicID=BASE)
    except Exception as error:  # rdflib's parsers raise many types
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise ValueError(f"{str(path)!r} cannot be read as {format}: {reason}.") from error


def _check_entities(path: Path, content: bytes) -> None:
    """Raise for entities that could expand without limit; short ones are common in namespaces."""
    parser = expat.ParserCreate()

    def declared(name, is_parameter, value, *origin) -> None:
        if is_parameter or value is None or "&" in value or len(value) > MAX_ENTITY:
            raise ValueError(
                f"{str(path)!r} declares the entity {short(name)}, must be at most "
                f"{MAX_ENTITY:,} characters without other entities."
            )

    def begun(name, attributes) -> None:
        raise EOFError  # all entities are declared

    parser.EntityDeclHandler, parser.StartElementHandler = declared, begun
    with suppress(EOFError, expat.ExpatError):  # rdflib reports invalid XML
        parser.Parse(content, True)


def _concepts(graph) -> set:
    """Return the concepts that are in use and have a URI."""
    rdflib = _rdflib()
    SKOS, RDF, OWL = rdflib.SKOS, rdflib.RDF, rdflib.OWL
    found = set(graph.subjects(RDF.type, SKOS.Concept))
    for relation in (SKOS.broader, SKOS.narrower):
        found.update(graph.subjects(relation), graph.objects(None, relation))
    found.update(graph.subjects(SKOS.topConceptOf), graph.objects(None, SKOS.hasTopConcept))
    old = {s for s, o in graph.subject_objects(OWL.deprecated) if str(o).lower() in ("true", "1")}
    return {concept for concept in found - old if isinstance(concept, rdflib.URIRef)}


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
        kept, other, *_ = sorted(broader[several[0]])
        warnings.warn(
            f"{len(several):,} labels of {str(path)!r} have several parents; a tree keeps the "
            f"first: {several[0]!r} is under {kept!r}, not under {other!r}.",
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
    for label, found in _texts(graph, "prefLabel", concepts).items():
        names[label] = {}
        for language, text in sorted(found):
            if names[label].setdefault(language, text) != text:
                others[label][language].append(text)
    for label, found in _texts(graph, "altLabel", concepts).items():
        for language, text in found:
            others[label][language].append(text)
    return names, others


def _texts(graph, relation: str, concepts: set) -> dict[str, list[tuple[str, str]]]:
    """Return the languages and texts of each label."""
    rdflib = _rdflib()
    found = defaultdict(list)
    for concept, text in graph.subject_objects(rdflib.SKOS[relation]):
        if concept in concepts and isinstance(text, rdflib.Literal) and text.strip():
            found[_label(concept)].append(((text.language or "").lower(), str(text)))
    return found


def _label(concept) -> str:
    """Return the label of a concept."""
    if concept.startswith(OURS):
        return unquote(concept.removeprefix(OURS))
    return str(concept.removeprefix(BASE))


# Writing


def _turtle(tree: LabelTree) -> bytes:
    """Return a tree as Turtle, in sorted order; rdflib's own writer is many times slower."""
    rdflib = _rdflib()
    skos = str(rdflib.SKOS)

    def said(verb, what) -> str:
        if verb == rdflib.RDF.type:
            return f"a skos:{what.removeprefix(skos)}"
        return f"skos:{verb.removeprefix(skos)} {what.n3()}"

    blocks = [f"@prefix skos: <{skos}> .\n"]
    for subject, triples in groupby(_triples(tree), itemgetter(0)):
        facts = " ;\n    ".join(said(verb, what) for _, verb, what in triples)
        blocks.append(f"{subject.n3()} {facts} .\n")
    return "\n".join(blocks).encode()


def _serialized(tree: LabelTree, format: str) -> bytes:
    """Return a tree in another format of RDF."""
    graph = _rdflib().Graph()
    for triple in _triples(tree):
        graph.add(triple)
    wrong = format == "xml" and next((o for o in graph.objects() if NO_XML.search(o)), None)
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
    ours = label.startswith((OURS, BASE)) or label == SCHEME
    plain = URI.fullmatch(label) and not ours and urljoin(BASE, label) == label
    return label if plain else OURS + quote(label, safe="")
