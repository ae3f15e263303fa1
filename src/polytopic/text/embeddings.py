"""Sentence embeddings of an installed model, as features beside the words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from polytopic.errors import PolytopicError

LIBRARIES = ("sentence-transformers", "model2vec")


class Embeddings(TransformerMixin, BaseEstimator):
    """Sentence embeddings of a sentence-transformers or model2vec model.

    The model is read from a folder, or from the cache of Hugging Face. It is downloaded only if
    you allow it.

    Parameters
    ----------
    model : str or Path
        A folder, or the name of a model: "sentence-transformers/all-MiniLM-L6-v2".
    library : {"sentence-transformers", "model2vec"}, default="sentence-transformers"
        The package that reads the model.
    allow_download : bool, default=False
        Whether to download a model that is not on this computer.
    batch_size : int, default=32
        Number of texts that the model reads at once.
    """

    def __init__(
        self,
        model,
        *,
        library="sentence-transformers",
        allow_download=False,
        batch_size=32,
    ):
        self.model = model
        self.library = library
        self.allow_download = allow_download
        self.batch_size = batch_size

    def fit(self, texts: Sequence[str], y=None):
        """Load the model; nothing is learned from the texts."""
        self._load()
        return self

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return the embedding of each text, (n_texts, n_dimensions)."""
        model = self._load()
        rows = model.encode(list(texts), batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(rows, dtype=np.float64)

    def _load(self):
        if "_model" not in vars(self):
            if self.library not in LIBRARIES:
                known = ", ".join(LIBRARIES)
                raise ValueError(f"library == {self.library!r}, must be one of {known}.")
            self._model = self._read_model()
        return self._model

    def _read_model(self):
        try:
            if self.library == "model2vec":
                return _static_model(str(self.model), self.allow_download)
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(str(self.model), local_files_only=not self.allow_download)
        except ImportError as error:
            raise PolytopicError(
                f"{error.name} is not installed. Install it with: "
                "pip install 'polytopic[embeddings]'"
            ) from error
        except (OSError, ValueError) as error:
            raise PolytopicError(
                f"the embedding model {str(self.model)!r} cannot be read, or is not on this "
                f"computer; download it before, or use Embeddings({str(self.model)!r}, "
                "allow_download=True)."
            ) from error

    def __getstate__(self):
        return {name: v for name, v in super().__getstate__().items() if name != "_model"}

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _static_model(name: str, allow_download: bool):
    """Return a model of model2vec, from a folder or from the cache."""
    from huggingface_hub import snapshot_download
    from model2vec import StaticModel

    if Path(name).exists():
        return StaticModel.from_pretrained(name)
    return StaticModel.from_pretrained(snapshot_download(name, local_files_only=not allow_download))
