"""Model files: loading any file raises a ModelFileError, or the model works."""

import warnings
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from scipy import sparse

from polytopic import Labeler, LabelTree
from polytopic.corpus import load_sample
from polytopic.decision import TNorm, TreeCohort, UnconstrainedCohort, WorldModel
from polytopic.errors import ModelFileError
from polytopic.labeler.files import from_bytes, to_bytes
from polytopic.modelfile import model_bytes, parse_model
from polytopic.models import MML, PMM1, CoL, RandomForest, Stack
from polytopic.models.registry import find_model, model_names
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.mutation import mutated_bytes, mutated_value

TEXTS = ["", "A goal from orbit", "vaccine trial and the film music", "nonsense"]
TREE = LabelTree({"health": "life", "music": "arts", "film": "arts"}, {"film": {"en": "Movies"}})


@cache
def files() -> list[bytes]:
    """Return small model files of every kind."""
    documents = load_sample()[:60]
    labelers = [
        Labeler("nb", max_terms=40, rule=WorldModel(0.9), fields={"title": 2.0}),
        Labeler("nb", max_terms=40, rule=TreeCohort(), tree=TREE),
        Labeler("pmm1", max_terms=40, abstain=0.2),
        Labeler("pmm2", max_terms=40, rule=TNorm()),
        Labeler("pdmm", max_terms=40),
        Labeler("mml", max_terms=40, abstain=0.1),
        Labeler(MML(rank=None), max_terms=40, rule=UnconstrainedCohort(3)),
        Labeler(CoL(n_topics=12), max_terms=40),
        Labeler(CoL(n_topics=12, predict_mode="sets"), max_terms=40),
        Labeler(CoL(n_topics=12, inference="paper"), max_terms=40),
        Labeler(PMM1(estimate="nb"), max_terms=40),
        Labeler("boostexter", max_terms=40),
        Labeler("svm", max_terms=40),
        Labeler("knn", max_terms=40),
        Labeler(RandomForest(4), max_terms=40),
        Labeler(Stack(("mml", "svm", "knn", "forest")), max_terms=40, abstain=0.1),
        Labeler(Stack(("knn", "svm"), goal="exact"), max_terms=40),
        Labeler("shortlist-svm", max_terms=40),
        Labeler("candidate-stack", max_terms=40),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = [labeler.fit(documents) for labeler in labelers]
        fitted.append(Labeler(MML(solver="exact"), max_terms=40).fit(with_few_labels(documents)))
    ours = {name for name in model_names() if find_model(name).path.startswith("polytopic.")}
    assert {labeler.model_.name for labeler in fitted} == ours
    return [to_bytes(labeler) for labeler in fitted] + [to_bytes(fitted[2], counts=False)]


def with_few_labels(documents):
    """Return documents of a few frequent labels."""
    few = {"culture/books", "culture/music", "economy/energy", "health/food"}
    reduced = [replace(one, labels=sorted(few.intersection(one.labels))) for one in documents]
    return [document for document in reduced if document.labels]


def load_and_ask(content: bytes) -> None:
    """Load a model file and call all methods of the labeler."""
    try:
        labeler = from_bytes(content, "mutant")
    except ModelFileError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(labeler)


def numbers_of(answer) -> np.ndarray:
    """Return the numbers of an array, or of a sparse matrix."""
    return answer.data if sparse.issparse(answer) else answer


def ask(labeler: Labeler) -> None:
    """Call all methods of a labeler, and check their results."""
    labels = set(labeler.classes_.tolist())
    for proba in (labeler.predict_proba(TEXTS), labeler.certainty(TEXTS)):
        values = numbers_of(proba)
        assert ((values >= 0) & (values <= 1)).all()
    assert not np.isnan(numbers_of(labeler.decision_function(TEXTS))).any()
    assert all(labels.issuperset(answer) for answer in labeler.predict(TEXTS))
    for answer in labeler.suggest(TEXTS, 3):
        assert all(0 <= one.probability <= 1 and one.label in labels for one in answer)
    labeler.suggest(TEXTS, exclude=[sorted(labels)[0]] if len(labels) > 1 else None)
    labeler.label_terms(3)
    for text in TEXTS:
        labeler.explain(text, sorted(labels)[:2])


def mutated_array(array: np.ndarray, random: Random) -> np.ndarray:
    """Return an array that differs in values, shape or type."""
    kind = random.randrange(8)
    if kind == 0:
        return array[: random.randrange(len(array) + 1)].copy()
    if kind == 1:
        return np.concatenate([array, array[: random.randrange(1, 4)]])
    if kind == 2:
        types = ("u1", "u2", "u4", "u8", "i1", "i4", "i8", "f4", "f8", "?", "f2")
        return array.astype(random.choice(types))
    if kind == 3:
        return array.reshape(random.choice(((-1,), (-1, 1), (1, -1), (*array.shape, 1))))
    if kind == 4:
        return np.ascontiguousarray(array[::-1])
    changed = array.copy()
    for _ in range(random.choice((1, 1, 3))):
        if changed.size:
            place = random.randrange(changed.size)
            old = changed.flat[place]
            changed.flat[place] = random.choice(
                [old + 1, -old, old * 2, 0, 1, changed.max(), *_extremes(changed.dtype)]
            )
    return changed


def _extremes(dtype):
    if dtype.kind == "f":
        return [np.nan, np.inf, -np.inf, 1e-30, -1e-30, 1e30, -1.0, 0.5]
    return [np.iinfo(dtype).min, np.iinfo(dtype).max]


def mutated_parts(content: bytes, random: Random) -> bytes:
    """Return a model file with another manifest or other arrays, and their digest."""
    manifest, arrays = parse_model(content, "seed")
    for _ in range(random.choice((1, 1, 1, 2))):
        if random.random() < 0.4:
            name = random.choice([name for name in manifest if not name.startswith("format")])
            manifest[name] = mutated_value(manifest[name], random)
        else:
            name = random.choice(list(arrays))
            kind = random.random()
            if kind < 0.03:
                del arrays[name]
            elif kind < 0.06:
                arrays[random.choice(["model.x", "x", "counts.data"])] = arrays.pop(name)
            elif kind < 0.12:
                arrays[name] = arrays[random.choice(list(arrays))]
            else:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    arrays[name] = mutated_array(arrays[name], random)
            if arrays.get(name, np.zeros(0)).dtype.name in ("bool", "float16"):
                arrays[name] = arrays[name].astype(np.uint8)
    return model_bytes(manifest, arrays)


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("mutate", [mutated_bytes, mutated_parts])
def test_model_files(mutate, long):
    """Bytes change anywhere, or parts change together with the digest."""
    assert fuzz(load_and_ask, files(), mutate, long=long) > 0


def test_seeds_are_sound():
    """The files that mutants are made from work."""
    for content in files():
        ask(from_bytes(content, "seed"))
