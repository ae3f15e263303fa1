"""Labeler: analyzer, model and decision as one estimator on texts.

===============  =========================================================================
``estimator``    :class:`Labeler`, which users work with
``reading``      texts and labels as they are given, and their counts
``learning``     from counts or documents to a state
``features``     what is read beside the words: n-grams, embeddings, other transformers
``state``        :class:`LabelerState`, what was learned, in one immutable object
``answers``      suggestions, explanations, and descriptions of labels
``known_words``  warnings about texts that the model hardly knows
``selection``    texts about given topics
``guarantee``    the threshold that keeps a promised recall
``audit``        learned texts whose labels are doubtful
``held_out``     predictions for learned documents by models that have not learned them
``files``        labelers as model files
===============  =========================================================================
"""

from polytopic.labeler.answers import Answer, Suggestion
from polytopic.labeler.audit import Suspect, Suspects
from polytopic.labeler.estimator import Labeler
from polytopic.labeler.files import load
from polytopic.labeler.selection import Selector, TopicMatch

__all__ = [
    "Answer",
    "Labeler",
    "Selector",
    "Suggestion",
    "Suspect",
    "Suspects",
    "TopicMatch",
    "load",
]
