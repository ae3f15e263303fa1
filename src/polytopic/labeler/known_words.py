"""Texts with few known words, or in a language that a model has not learned.

They get a warning, and their probabilities shrink. Learned documents have few unknown words, so
probabilities are calibrated on such documents alone. How often predictions are still right was
measured on held-out documents of which only a part of the words was left (docs/measurements.md).
It depends on the share of known words, compared with the usual share.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from polytopic.counts import LabelSetCounts
from polytopic.explain.explanation import strings_of
from polytopic.labeler.state import LabelerState
from polytopic.text import Vocabulary
from polytopic.text.detection import name_of_language, other_language, other_script

NO_KNOWN_WORD = "The model does not know any word in this text."
MIN_KNOWN = 0.3  # share of known words, below which there is a warning
CERTAIN_KNOWN = 0.9  # share of known words, from which on the language must be right

# Measured: how much of the difference between the probability of a label and the share of
# documents that have it is justified, at each share of known words over the usual one
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.9)
TRUST = (0.3, 0.35, 0.42, 0.52, 0.66, 0.75, 0.85, 0.93, 1.0)


def find_warning(state: LabelerState, text, known: float) -> str | None:
    """Return why the answer for a text may be of little use, None if nothing speaks against it.

    ``known`` is the share of its words that the model knows. If it is below ``CERTAIN_KNOWN``, the
    language of the text is compared with that of the model.
    """
    if known >= CERTAIN_KNOWN:
        return None
    string = "\n".join(strings_of(text).values())
    script = other_script(string, state.scripts)
    if script is not None:
        return f"This text is in {script} script, which the model has not learned."
    language = other_language(string, state.analyzer.language)
    if language is not None:
        own = name_of_language(state.analyzer.language)
        return f"This text seems to be in {language}, but the model has learned {own} texts."
    if not known:
        return NO_KNOWN_WORD
    if known < MIN_KNOWN:
        return f"The model knows only {known:.0%} of the words in this text."
    return None


def usual_share(counts: LabelSetCounts, vocabulary: Vocabulary, min_df: int) -> float:
    """Return the share of the words of a learned document that the other documents teach."""
    totals = np.asarray(counts.matrix.sum(axis=0)).ravel()
    is_taught = (vocabulary.columns(counts.terms) >= 0) & (counts.document_frequency > min_df)
    return float(totals[is_taught].sum() / totals.sum()) if totals.size else 0.0


def shrink_labels(state: LabelerState, proba, known):
    """Return the probabilities of labels, given the known shares of the words of texts.

    With few known words, they are drawn to the share of learned documents that have the label. A
    probability of 0, of a label that is not allowed, stays.
    """
    trust = _trust(state, known)
    if (trust == 1).all():
        return proba
    base = np.minimum(state.model.label_docs_ / max(state.training["documents"], 1), 1.0)
    if sparse.issparse(proba):
        shrunk, rows = proba.copy(), np.repeat(trust, np.diff(proba.indptr))
        shrunk.data = base[proba.indices] + rows * (proba.data - base[proba.indices])
        return shrunk
    return np.where(proba > 0, base + trust[:, None] * (proba - base), 0.0)


def shrink_sets(state: LabelerState, proba, known):
    """Return the probabilities of label sets, given the known shares of the words of texts."""
    return _trust(state, known) * proba


def _trust(state: LabelerState, known) -> np.ndarray:
    """Return how much of a probability is justified, from 0 to 1.

    A text without known words gets the most frequent labels, whose probabilities are right.
    """
    known, usual = np.asarray(known), state.training.get("known", 0.0)
    if not usual:  # no word is in two documents, or the model file is older
        return np.ones(known.shape)
    return np.where(known > 0, np.interp(known, np.multiply(SHARES, usual), TRUST), 1.0)
