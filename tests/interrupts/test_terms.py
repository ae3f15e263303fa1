"""An analyzer's cache of terms survives an interrupted call."""

import sys

from polytopic.text import packed_words
from polytopic.text.packed_words import pack


def is_interrupted(function, line):
    """Call a function, and interrupt it before this line of the code that numbers terms.

    Returns False if that code has fewer lines.
    """
    n_left = line

    def trace(frame, event, argument):
        nonlocal n_left
        if frame.f_code.co_filename != packed_words.__file__:
            return None
        n_left -= event == "line"
        if n_left < 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_terms_are_whole_after_an_interrupt_at_any_line():
    """Terms that were being numbered have valid numbers afterwards, and are found by them."""
    new = pack(["goalkeeper", "internationalisation", "film"])
    names = ["internationalisation", "train", "striker"]
    line, interrupted = 0, True

    while interrupted:
        terms = packed_words.Terms()
        terms.number(pack(["striker"]))
        interrupted = is_interrupted(lambda terms=terms: terms.number(new), line)
        numbers = terms.number(pack(names))

        assert terms.names(numbers) == names
        assert sorted(numbers) == sorted({*numbers} & {*range(len(terms))})
        line += 1
    assert line > 10
