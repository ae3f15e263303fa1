"""Embeddings of models by name, with stand-ins for the packages that read them."""

import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

from polytopic import Labeler, load
from polytopic.errors import PolytopicError
from polytopic.labeler.files import from_bytes, to_bytes
from polytopic.modelfile import model_bytes, parse_model
from polytopic.text import Embeddings

TEXTS, LABELS = ["goal match", "film actor", "goal film"], [["s"], ["f"], ["f", "s"]]


class Model:
    """Stands for a model of either package: the number of each letter."""

    loaded: list  # what it was asked for

    def __init__(self, name, **settings):
        self.loaded.append((name, settings))
        if "missing" in name:
            raise OSError("not in the cache, and the network is not used")

    @classmethod
    def from_pretrained(cls, name):
        """Return the model in a folder."""
        return cls(name)

    def encode(self, texts, *, batch_size, show_progress_bar):
        """Return the rows of texts."""
        assert not show_progress_bar
        return np.array([[t.count(c) for c in "abcdefghijklm"] for t in texts], np.float32)


@pytest.fixture
def loaded(monkeypatch):
    """Install the stand-ins, and return what is asked of them."""
    Model.loaded = []

    def snapshot_download(name, *, local_files_only):
        Model.loaded.append((name, {"local_files_only": local_files_only}))
        return f"/cache/{name}"

    for package, names in {
        "sentence_transformers": {"SentenceTransformer": Model},
        "model2vec": {"StaticModel": Model},
        "huggingface_hub": {"snapshot_download": snapshot_download},
    }.items():
        module = ModuleType(package)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, package, module)
    return Model.loaded


def test_nothing_is_downloaded(loaded, tmp_path):
    """The network is used only if it is allowed; a model is loaded once."""
    embeddings = Embeddings("mini")
    embeddings.transform(TEXTS)
    embeddings.transform(TEXTS)
    Embeddings("mini", allow_download=True).fit(TEXTS)
    Embeddings("potion", library="model2vec").fit(TEXTS)
    Embeddings(tmp_path, library="model2vec").fit(TEXTS)

    assert loaded == [
        ("mini", {"local_files_only": True}),
        ("mini", {"local_files_only": False}),
        ("potion", {"local_files_only": True}),
        ("/cache/potion", {}),
        (str(tmp_path), {}),
    ]


def test_labeler_and_file(loaded, tmp_path):
    """A file has the name of the model, which is found again, and never downloaded."""
    labeler = Labeler("svm", features=[Embeddings("mini", allow_download=True)])
    labeler.fit(TEXTS, LABELS).save(tmp_path / "m")
    loaded.clear()

    again = load(tmp_path / "m")

    np.testing.assert_array_equal(again.decision_function(TEXTS), labeler.decision_function(TEXTS))
    assert loaded == [("mini", {"local_files_only": True})]


def test_a_folder_is_given_again(loaded, tmp_path):
    """A file never decides which folder is read, because a folder may contain code."""
    (tmp_path / "mini").mkdir()
    embeddings = Embeddings(tmp_path / "mini")
    Labeler("svm", features=[embeddings]).fit(TEXTS, LABELS).save(tmp_path / "m")
    loaded.clear()

    with pytest.raises(PolytopicError, match=r"'Embeddings' \(Embeddings\) are not in the file"):
        load(tmp_path / "m")
    assert not loaded

    assert load(tmp_path / "m", features=[embeddings]).predict(["goal"])


@pytest.mark.parametrize("name", ["/evil", "../evil", "a/b/c", "", ".", 3, None, "mini"])
def test_hostile_names(loaded, tmp_path, monkeypatch, name):
    """A changed file cannot make anything but a published name be read."""
    monkeypatch.chdir(tmp_path)
    content = to_bytes(Labeler("svm", features=[Embeddings("mini")]).fit(TEXTS, LABELS))
    manifest, arrays = parse_model(content, "m")
    manifest["features"][0]["model"] = name
    manifest["features"][0]["source"] = "Embeddings"
    (tmp_path / "mini").mkdir()
    loaded.clear()

    with pytest.raises(PolytopicError, match="are not in the file; give them"):
        from_bytes(model_bytes(manifest, arrays), "m")
    assert not loaded


@pytest.mark.usefixtures("loaded")
def test_a_missing_model(tmp_path, monkeypatch):
    """The sentence names the model, when it is used and when a file is loaded."""
    sentence = "'missing' cannot be read, or is not on this computer; .*allow_download=True"
    with pytest.raises(PolytopicError, match=sentence):
        Embeddings("missing").transform(TEXTS)
    Labeler("svm", features=[Embeddings("mini")]).fit(TEXTS, LABELS).save(tmp_path / "m")

    def fail(self, name, **settings):
        raise OSError

    monkeypatch.setattr(Model, "__init__", fail)
    with pytest.raises(PolytopicError, match="the embedding model 'mini' cannot be read"):
        load(tmp_path / "m")


def test_another_model(loaded, tmp_path, monkeypatch):
    """A model that gives other numbers is rejected."""
    Labeler("svm", features=[Embeddings("mini")]).fit(TEXTS, LABELS).save(tmp_path / "m")
    monkeypatch.setattr(Model, "encode", lambda self, texts, **s: np.ones((len(texts), 13)))

    with pytest.raises(PolytopicError, match="are not those that the model was trained with"):
        load(tmp_path / "m")


@pytest.mark.parametrize("library", ["sentence-transformers", "model2vec"])
def test_missing_packages(library, monkeypatch):
    """The sentence says how to install them."""
    for package in ("sentence_transformers", "model2vec"):
        monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(PolytopicError, match=r"is not installed.* 'polytopic\[embeddings\]'"):
        Embeddings("mini", library=library).fit(TEXTS)


@pytest.mark.usefixtures("loaded")
def test_settings():
    """A wrong library is reported on first use; the loaded model is not pickled."""
    with pytest.raises(ValueError, match="library == 'magic', must be one of"):
        Embeddings("mini", library="magic").transform(TEXTS)

    embeddings = Embeddings("mini").fit(TEXTS)
    assert len(pickle.dumps(embeddings)) < 1000
