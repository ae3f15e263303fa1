"""Warnings about texts with few known words, or in a language that a model has not learned."""

from __future__ import annotations

from polytopic.explain.explanation import strings_of
from polytopic.labeler.state import LabelerState
from polytopic.text.detection import name_of_language, other_language, other_script

NO_KNOWN_WORD = "The model does not know any word in this text."
MIN_KNOWN = 0.3  # share of known words, below which there is a warning
CERTAIN_KNOWN = 0.9  # share of known words, from which on the language must be right


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
