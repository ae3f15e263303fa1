"""An analyzer remembers terms from call to call, even if one of them was interrupted."""

import sys

from polytopic.text import packed_words
from polytopic.text.packed_words import pack


def is_interrupted(function, line):
    """Call a function, and interrupt it before a line of those where it numbers terms.

    Returns False if these are fewer.
    """
    left = line

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename != packed_words.__file__:
            return None
        left -= event == "line"
        if left < 0:
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
    """Terms that were being numbered get numbers by which they are found, as others do."""
    new = pack(["goalkeeper", "internationalisation", "film"])
    later = ["internationalisation", "train", "striker"]
    line, interrupted = 0, True

    while interrupted:
        known = packed_words.Terms()
        known.number(pack(["striker"]))
        interrupted = is_interrupted(lambda own=known: own.number(new), line)
        numbers = known.number(pack(later))

        assert known.names(numbers) == later
        assert sorted(numbers) == sorted({*numbers} & {*range(len(known))})
        line += 1
    assert line > 10
