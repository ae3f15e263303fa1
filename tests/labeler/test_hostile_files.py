"""Malicious model files with a correct digest are rejected when they are loaded."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import polytopic
from polytopic import Labeler
from polytopic.corpus import load_sample
from polytopic.decision import TopK
from polytopic.errors import ModelFileError
from polytopic.labeler.files import to_bytes
from polytopic.modelfile import model_bytes, parse_model
from polytopic.models import MML, CoL, RandomForest, Stack


@pytest.fixture(scope="module")
def contents():
    """Return a model file of each family, by name."""
    labelers = {
        "nb": Labeler("nb", max_terms=30, rule=TopK(2), fields={"title": 2.0}),
        "pmm1": Labeler("pmm1", max_terms=30),
        "pmm2": Labeler("pmm2", max_terms=30),
        "mml": Labeler("mml", max_terms=30, abstain=0.1),
        "col": Labeler(CoL(n_topics=10), max_terms=30),
        "boostexter": Labeler("boostexter", max_terms=30),
        "knn": Labeler("knn", max_terms=30),
        "forest": Labeler(RandomForest(3), max_terms=30),
        "svm": Labeler("svm", max_terms=30),
        "stack": Labeler(Stack(("svm", "knn")), max_terms=30),
    }
    documents = load_sample()[:60]
    return {name: to_bytes(labeler.fit(documents)) for name, labeler in labelers.items()}


def set_at(value, *place):
    """Return a function that changes an array, or a plain value, at a place."""

    def change(original):
        is_array = isinstance(original, np.ndarray)
        changed = original.copy() if is_array else json.loads(json.dumps(original))
        inner = changed
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        return changed

    return change


ARRAYS = [
    ("mml", "model.docs", set_at(5, 0), "more documents than there are"),
    ("mml", "model.docs", set_at(50, 1), "more documents than there are"),
    ("mml", "model.docs", set_at(9999, 0), "documents without a label"),
    ("boostexter", "model.docs", lambda a: -a, "'docs' holds values from"),
    ("col", "model.label_docs", lambda a: a * 0, "'columns' must hold the labels with documents"),
    ("mml", "model.weights_values", lambda a: a * np.float32(1e30), "'weights' holds values"),
    ("mml", "model.columns", lambda a: a[[0] * a.size], "'columns' must hold"),
    ("svm", "model.columns", lambda a: a[::-1].copy(), "in ascending order"),
    ("mml", "model.vectors", lambda a: a[:, :0], r"'weights' has the shape|'vectors' has the"),
    ("mml", "weights.idf", set_at(np.nan, 0), "'weights.idf' holds values from nan"),
    ("pmm1", "model.set_docs", lambda a: a * 0, "'set_docs' holds values from 0"),
    ("pmm1", "counts.set_docs", set_at(9, 0), "different documents|more documents"),
    ("pmm1", "model.world_counts", lambda a: -a.astype(float), "'world_counts' holds values"),
    ("pmm1", "model.set_indices", lambda a: a[::-1].copy(), "must ascend|sorted and distinct"),
    ("pmm1", "model.n_iter", lambda a: a.astype(np.float64), "'n_iter' is float64, must be int64"),
    ("nb", "counts.document_frequency", lambda a: a * 0, "'document_frequency' holds values"),
    ("pmm2", "model.bias", lambda a: a * 0.5, "biases of two labels must sum to one"),
    ("col", "model.covariance", lambda a: -a, "'covariance' must have no negative eigenvalue"),
    ("col", "model.covariance", set_at(3.0, 0, 1), "'covariance' must be symmetric"),
    ("col", "model.beta", lambda a: a / 2, "probabilities that sum to one"),
    ("col", "model.size_proba", lambda a: np.full(5000, 1 / 5000), "more sizes of label sets"),
    ("col", "model.size_proba", lambda a: np.eye(1, a.size)[0], "must have a probability above 0"),
    ("boostexter", "model.z", lambda a: a + 1, "'z' holds values"),
]


@pytest.mark.parametrize(("model", "name", "change", "sentence"), ARRAYS)
def test_arrays(contents, model, name, change, sentence):
    """Arrays that no model can have are rejected, and nothing is computed with them."""
    manifest, arrays = parse_model(contents[model], "m")
    arrays[name] = change(arrays[name])

    with pytest.raises(ModelFileError, match=sentence):
        polytopic.labeler.files.from_bytes(model_bytes(manifest, arrays), "m")


FACTS = [
    ("mml", ("settings", "abstain"), 2, "abstain == 2, must be <= 1"),
    ("mml", ("settings", "abstain"), float("nan"), "abstain == nan"),
    ("mml", ("model", "parameters", "calibrate"), False, "abstain needs the probability"),
    ("mml", ("model", "chosen"), {"C": 1.0}, "abstain needs the probability"),
    ("mml", ("model", "chosen", "set_curve"), [[0, 1], [0.9, 0.1]], "'set_curve' must not"),
    ("mml", ("model", "chosen", "label_curve"), [[0, 1], [0, 4.4]], "numbers to probabilities"),
    ("pmm1", ("model", "chosen", "temperature"), 0, "the tuned temperature == 0"),
    ("col", ("model", "chosen"), {}, "the tuned values have no threshold"),
    ("col", ("model", "chosen", "threshold"), 0.5, "the tuned threshold == 0.5"),
    ("knn", ("model", "parameters", "n_neighbours"), 10**400, "n_neighbours == 1"),
    ("forest", ("model", "parameters", "n_trees"), 10**400, "n_trees == 1"),
    ("stack", ("model", "chosen", "weights", 0), 1e308, "a weight, the intercept or a threshold"),
    ("stack", ("model", "chosen", "weights", 0), float("nan"), "a weight, the intercept or"),
    ("stack", ("model", "chosen", "weights", 0), 10**400, "a weight, the intercept or"),
    ("stack", ("model", "chosen", "curves"), {}, "curves must be a list of 2 values"),
    ("stack", ("model", "chosen"), {"members": [{}, {}]}, "the tuned values have no curves"),
    ("stack", ("model", "chosen", "thresholds"), [], "thresholds is a list, must be a mapping"),
    ("stack", ("model", "chosen", "set_curve"), [["1"], ["1"]], "two lists of finite numbers"),
    ("stack", ("model", "chosen", "set_curve"), [[10**400], [1]], "two lists of finite numbers"),
    ("stack", ("model", "parameters", "members"), None, "members == None, must be a tuple"),
    ("stack", ("model", "parameters", "members"), ["knn"] * 9999, "9999 models, must have at m"),
    ("nb", ("counts", "beside"), [None], "terms of the counts that .* must be a list of strings"),
    ("nb", ("tree",), {"x": {}}, "a tree has 'x', must have 'parents'"),
    ("nb", ("tree",), {"parents": []}, "parents is a list, must be a mapping of labels"),
    ("nb", ("tree",), {"parents": {"a": None}, "alternatives": {"a": 1}}, "must be a list of n"),
    ("nb", ("settings", "rule", "name"), "x" * 10**6, "rule == 'xxx[^ ]{400,500}…"),
    ("nb", ("settings", "fields", "title"), "x", r"fields\['title'\] == 'x'"),
    ("nb", ("settings", "rule", "parameters", "k"), 0, "k == 0, must be >= 1"),
    ("nb", ("settings", "rule", "parameters", "reject"), "x", "reject == 'x'"),
    ("nb", ("settings", "rule", "name"), "eval", "rule == 'eval', must be one of"),
    ("nb", ("analyzer", "language"), "xx", "language == 'xx'"),
    ("nb", ("analyzer", "numbers"), [], r"numbers == \[\]"),
    ("nb", ("labels", 0), 7, "labels must be a list of strings"),
    ("nb", ("labels", 0), "~", "labels must be sorted and distinct"),
    ("nb", ("vocabulary", 0), "~", "the vocabulary must be sorted and distinct"),
    ("nb", ("training", "documents"), "x", "training.documents in its manifest is str"),
    ("nb", ("model", "name"), "x", "model == 'x', must be one of"),
    ("nb", ("model", "parameters", "smoothing"), 10**400, "smoothing == 1"),
    ("nb", ("tree",), {"parents": {"a": "b", "b": "a"}}, "labels form a cycle"),
]


@pytest.mark.parametrize(("model", "place", "value", "sentence"), FACTS)
def test_facts(contents, model, place, value, sentence):
    """Settings, names and tuned values are checked when a file is loaded, not when it is used."""
    manifest, arrays = parse_model(contents[model], "m")
    manifest = set_at(value, *place)(manifest)

    with pytest.raises(ModelFileError, match=sentence):
        polytopic.labeler.files.from_bytes(model_bytes(manifest, arrays), "m")


@pytest.mark.parametrize("kind", ["F8_E4M3", "BF16", "F16", "BOOL", "x", None])
def test_types_of_other_programs(contents, kind):
    """An array of a type that no model has is rejected with a clear message."""
    content = contents["nb"]
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["model.set_docs"]["dtype"] = kind
    encoded = json.dumps(header).encode()

    with pytest.raises(ModelFileError, match=f"'model.set_docs' has the type {kind!r}"):
        parse_model(len(encoded).to_bytes(8, "little") + encoded + content[8 + size :], "m")


def test_too_many_arrays(contents):
    """The parser takes time quadratic in the number of arrays, so there is a limit."""
    manifest, arrays = parse_model(contents["nb"], "m")
    arrays |= {f"{k}": np.zeros(0, np.uint8) for k in range(10_001)}

    with pytest.raises(ModelFileError, match="arrays, at most 10000 are read"):
        polytopic.labeler.files.from_bytes(model_bytes(manifest, arrays), "m")


def test_weights_that_would_fill_the_memory(contents):
    """A few kilobytes of empty bits and many dimensions do not become terabytes."""
    manifest, arrays = parse_model(contents["mml"], "m")
    rank, n_columns = 1 << 20, arrays["model.columns"].size
    arrays["model.weights_mask"] = np.zeros((1 << 16, -(-n_columns // 8)), np.uint8)
    arrays["model.weights_values"] = np.zeros((rank, 0), np.float32)

    with pytest.raises(ModelFileError, match=r"would take [\d,.]+ GiB of memory"):
        polytopic.labeler.files.from_bytes(model_bytes(manifest, arrays), "m")


def test_words_and_labels_that_would_fill_the_memory(contents):
    """Names alone, without counts, do not become a table of all pairs."""
    manifest, arrays = parse_model(contents["nb"], "m")
    n = 200_000
    names = [f"{k:06d}" for k in range(n)]
    manifest |= {"labels": names, "vocabulary": names, "counts": None}
    arrays["model.sizes"] = np.zeros(n, np.uint8)
    arrays["model.world_counts"] = np.ones(n)
    for name in ("gaps", "gaps_mask", "gaps_high"):
        arrays[f"model.{name}"] = np.zeros(0, np.uint8)
    for name in ("data", "data_mask", "data_more"):
        arrays.pop(f"model.{name}", None)
    arrays["model.data"] = np.zeros(0)

    with pytest.raises(ModelFileError, match=r"would take [\d,.]+ GiB of memory"):
        polytopic.labeler.files.from_bytes(model_bytes(manifest, arrays), "m")


def test_a_labeler_that_could_not_abstain_is_not_fitted():
    """fit, not predict, reports too few documents to estimate how probable a label set is."""
    with pytest.raises(ValueError, match="abstain needs the probability of a label set"):
        Labeler(MML(calibrate=True), abstain=0.5).fit(["goal", "orbit"], [["sport"], ["space"]])


@pytest.mark.parametrize("command", ["info", "suggest"])
def test_devices_and_pipes_are_not_read(tmp_path, command):
    """A file that may have no end is rejected before it is read, in little memory and at once."""
    os.mkfifo(tmp_path / "pipe")
    limited = (
        "import resource, sys; from polytopic.cli import main; "
        "resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31)); main()"
    )

    for path in ("/dev/zero", tmp_path / "pipe"):
        run = subprocess.run(
            [sys.executable, "-c", limited, command, str(path), *["text"] * (command == "suggest")],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 1
        assert "it is a device or a pipe, must be a file." in run.stderr


@pytest.mark.parametrize("length", [0, 1, 1 << 40, (1 << 64) - 1])
def test_headers_with_a_wrong_length(contents, tmp_path, length):
    """A header length beyond the end of the file is not trusted."""
    content = contents["nb"]
    (tmp_path / "m").write_bytes(length.to_bytes(8, "little") + content[8:])

    with pytest.raises(ModelFileError, match=r"is not a polytopic model file|is damaged"):
        polytopic.load(tmp_path / "m")


def test_a_file_that_is_larger_than_its_arrays_is_not_read(contents, tmp_path):
    """A terabyte after a valid header takes no memory."""
    (tmp_path / "m").write_bytes(contents["nb"])
    os.truncate(tmp_path / "m", 1 << 40)

    with pytest.raises(ModelFileError, match="which is not what the header says"):
        polytopic.load(tmp_path / "m")


def test_a_large_foreign_file_is_not_read(tmp_path):
    """Of a file that does not begin like a model file, only the beginning is read."""
    with open(tmp_path / "m", "wb") as file:
        file.truncate(1 << 40)  # a sparse file: a terabyte of zeros that takes no space

    with pytest.raises(ModelFileError, match="is not a polytopic model file"):
        polytopic.load(tmp_path / "m")
