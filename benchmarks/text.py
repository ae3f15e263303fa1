"""The time from texts to counts compared with scikit-learn's CountVectorizer, on one core.

CountVectorizer runs with its own tokens, and with ours: the same regular expression, on lower-case
text. Counting is ``fit_transform`` there and ``Analyzer.count`` here; looking up the terms of a
vocabulary is ``transform`` there and ``Analyzer.count_known`` here, each with the same vocabulary.
An analyzer caches tokens; "first" clears the cache before each repeat, as in a new process. Each
repeat runs all in turn; CPU time, medians, and ratios paired by repeat with their range. The goal:
at least 5.
"""

import argparse
import os
import time

os.environ["POLYTOPIC_NUM_THREADS"] = "1"

import numpy as np
from common import corpus_path, markdown
from sklearn.feature_extraction.text import CountVectorizer

from polytopic.corpus import read_documents
from polytopic.text import Analyzer, Vocabulary, analyzer
from polytopic.text.tokens import TokenPattern

CORPORA = {"reuters21578": 7, "debtags-en": 7, "arxiv-cs": 3}  # repeats
MOST = 15_000  # documents of arxiv-cs, which has many
SAME_TOKENS = TokenPattern(numbers=False, hyphens=False).compile_for("").pattern
SMALL = 16, 1  # documents at once


def contenders(texts):
    """Return functions that count texts, and functions that look up known terms, by name."""
    own, same = CountVectorizer(), CountVectorizer(token_pattern=SAME_TOKENS)
    for peer in (own, same):
        peer.fit(texts)
    count = {
        "CountVectorizer, our tokens": same.fit_transform,
        "CountVectorizer": own.fit_transform,
        "Analyzer(None), first": lambda texts: fresh(None).count(texts),
        "Analyzer(None)": Analyzer(None).count,
        'Analyzer("en"), first': lambda texts: fresh("en").count(texts),
        'Analyzer("en")': Analyzer("en").count,
    }
    for function in list(count.values())[2:]:
        function(texts)
    look_up = {"CountVectorizer, our tokens": same.transform, "CountVectorizer": own.transform}
    for language in (None, "en"):
        words = Analyzer(language)
        vocabulary = Vocabulary(words.count(texts)[1])
        look_up[repr(words)] = lambda texts, words=words, known=vocabulary: words.count_known(
            texts, known
        )
    return count, look_up


def fresh(language):
    """Return an analyzer without cached tokens."""
    analyzer._lexicon.cache_clear()
    return Analyzer(language)


def measure(functions, texts, repeats, calls=1):
    """Return the CPU microseconds per document of each function in each repeat."""
    times = np.empty((len(functions), repeats))
    for repeat in range(repeats):
        for row, function in enumerate(functions.values()):
            start = time.process_time()
            for _ in range(calls):
                function(texts)
            times[row, repeat] = (time.process_time() - start) / calls / len(texts) * 1e6
    return times


def rows(functions, times):
    """Yield the lines of a table; ratios are to the first function."""
    for name, own in zip(functions, times, strict=True):
        ratio = times[0] / own
        faster = f"{np.median(ratio):.1f} ({ratio.min():.1f}–{ratio.max():.1f})"
        yield name, f"{np.median(own):.1f}", f"{own.min():.1f}", faster


def main():
    """Print a table for each corpus and each size of a batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=list(CORPORA))
    header = "", "µs per document", "least", "times faster"
    for name in parser.parse_args().corpora:
        texts = [document.text for document in read_documents(corpus_path(name))]
        texts = texts[:MOST] if name == "arxiv-cs" else texts
        count, look_up = contenders(texts)
        print(f"\n{name}: {len(texts):,} documents, {np.mean([*map(len, texts)]):.0f} characters\n")
        for what, functions in (("count all terms", count), ("look up known terms", look_up)):
            times = measure(functions, texts, CORPORA.get(name, 3))
            markdown((what, *header[1:]), rows(functions, times))
            print()
        for n in SMALL:
            times = measure(look_up, texts[100 : 100 + n], 50, calls=64 // n)
            markdown((f"look up, {n} at once", *header[1:]), rows(look_up, times))
            print()


if __name__ == "__main__":
    main()
