"""What a labeler says about texts that it does not know: languages, and topics it has not learned.

    python benchmarks/known.py languages
    python benchmarks/known.py topics reuters21578 slashdot --draws 3
    python benchmarks/known.py calibration enron medical slashdot
    python benchmarks/known.py words reuters21578 debtags-en goemotions slashdot

"languages": how many texts of other corpora and languages get a warning, and how many like those
that were learned. "topics": a tenth of the labels is left out of training with all their documents;
the AUROC says how well the probability of the predicted set, and the share of known words, tell
documents of these labels from others. Each is compared with a document of about the same length.
"calibration": the calibration errors of labels and label sets. "words": the same of texts of which
only some words are left, and the others are replaced by unknown ones, before and after
probabilities are shrunk; the mean of the highest probability, and how often it is right.
"""

import sys

import numpy as np
from common import corpus_path, markdown
from sklearn.metrics import roc_auc_score

from polytopic import Labeler
from polytopic.corpus import random_split, read_documents
from polytopic.metrics import Tally, expected_calibration_error

MOST = 4000
MOST_THINNED = 800
PARTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the words
LEFT_OUT = 0.1  # of the labels
LANGUAGES = {
    "debtags-en": "en",
    "reuters21578": "en",
    "goemotions": "en",
    "czech-pirati": "cs",
    "debtags-cs": "cs",
    "fi-kirjastonhoitaja": "fi",
}


def sample(name):
    """Return at most ``MOST`` labelled documents of a corpus, in random order."""
    documents = [d for d in read_documents(corpus_path(name)) if d.labels]
    order = np.random.default_rng(0).permutation(len(documents))[:MOST]
    return [documents[k] for k in order]


def language_of(documents):
    """Return None for bags of words."""
    return None if documents[0].counts else "en"


def languages():
    """Print the share of texts with a warning, by corpus that was learned and corpus of texts."""
    corpora, rows = {name: sample(name) for name in LANGUAGES}, []
    for learned, language in LANGUAGES.items():
        documents = corpora[learned]
        labeler = Labeler("nb", language=language).fit(documents[200:])
        row = [learned]
        for name, texts in corpora.items():
            warnings = [answer.warning for answer in labeler.suggest(texts[:100])]
            same = LANGUAGES[name] == language and name != learned
            row.append("" if same else sum(warning is not None for warning in warnings))
        rows.append(row)
        print(*row, flush=True)
    markdown(["learned", *corpora], rows)


def topics(names, n_draws):
    """Print how well documents of labels that were not learned are told from others."""
    rows = []
    for name in names:
        documents, values = sample(name), []
        every = sorted({label for document in documents for label in document.labels})
        for draw in range(n_draws):
            rng = np.random.default_rng(draw)
            new = set(rng.permutation(every)[: max(1, round(LEFT_OUT * len(every)))].tolist())
            old = [d for d in documents if new.isdisjoint(d.labels)]
            train, test = ([old[k] for k in part] for part in random_split(old, 0.3, draw))
            labeler = Labeler(language=language_of(documents)).fit(train)
            unseen = [d for d in documents if new.issuperset(d.labels)]
            matched = of_same_length(labeler, unseen, test)
            unseen, test = zip(*matched, strict=True)
            truth = np.repeat([1, 0], len(matched))
            certainty = labeler.certainty([*unseen, *test])
            known = [answer.known for answer in labeler.suggest([*unseen, *test])]
            proba = labeler.predict_proba([*unseen, *test]).max(axis=1)
            signals = (certainty, proba, known)
            values.append([roc_auc_score(truth, -np.asarray(signal)) for signal in signals])
        rows.append((name, len(matched), *map("{:.3f}".format, np.mean(values, axis=0))))
        print(*rows[-1], flush=True)
    markdown(["corpus", "pairs", "set", "best label", "known words"], rows)


def of_same_length(labeler, first, second):
    """Return pairs of documents with nearly the same number of words."""
    sizes = [labeler.analyzer_.count(documents)[0].sum(axis=1).A1 for documents in (first, second)]
    free, pairs = dict(enumerate(sizes[1].tolist())), []
    for place, size in enumerate(sizes[0].tolist()):
        if free:
            best = min(free, key=lambda k: abs(free[k] - size))
            if abs(free.pop(best) - size) <= 0.1 * size + 1:
                pairs.append((first[place], second[best]))
    return pairs


def calibration(names):
    """Print the calibration errors of the default."""
    rows = []
    for name in names:
        documents = sample(name)
        train, test = ([documents[k] for k in part] for part in random_split(documents, 0.5, 0))
        labeler = Labeler(language=language_of(documents)).fit(train)
        tally = Tally(labeler.classes_.tolist())
        tally.add(
            [d.labels for d in test],
            labeler.predict(test),
            proba=labeler.predict_proba(test),
            certainty=labeler.certainty(test),
        )
        rows.append((name, len(test), *map("{:.4f}".format, tally.calibration.metrics().values())))
        print(*rows[-1], flush=True)
    markdown(["corpus", "documents", "labels", "label sets"], rows)


def words(names):
    """Print the calibration errors of texts with few known words."""
    rows = []
    for name in names:
        documents = sample(name)
        train, test = ([documents[k] for k in part] for part in random_split(documents, 0.5, 0))
        labeler, test = Labeler(language=language_of(documents)).fit(train), test[:MOST_THINNED]
        own = np.array([[label in d.labels for label in labeler.classes_] for d in test])
        for share in PARTS:
            rng = np.random.default_rng(0)
            texts = [replace_words(document, share, rng) for document in test]
            known = np.array([answer.known for answer in labeler.suggest(texts)])
            truth, before, after = (
                table[known > 0]
                for table in (
                    own,
                    labeler.model_.predict_proba(labeler.transform(texts)),
                    labeler.predict_proba(texts),
                )
            )
            best = before.argmax(axis=1)
            docs = np.arange(len(best))
            figures = [
                known[known > 0].mean(),
                *(expected_calibration_error(truth, proba) for proba in (before, after)),
                *(proba[docs, best].mean() for proba in (before, after)),
                truth[docs, best].mean(),
            ]
            rows.append((name, share, len(best), *map("{:.4f}".format, figures)))
            print(*rows[-1], flush=True)
    head = ["corpus", "words left", "texts", "known", "error before", "after", "best before"]
    markdown([*head, "after", "right"], rows)


def replace_words(document, share, rng):
    """Return a text or bag of words of which a share of the words is left."""
    if document.counts:
        counts = {}
        for term, n in document.counts.items():
            left = rng.binomial(max(1, round(n)), share)
            counts |= {term: float(left)} if left else {}
            counts |= {f"zzq{term}": float(n - left)} if n > left else {}
        return counts
    terms = "\n".join([document.text] if document.text else document.fields.values()).split()
    left = rng.random(len(terms)) < share
    return " ".join(term if own else f"zzq{term}" for term, own in zip(terms, left, strict=True))


if __name__ == "__main__":
    what, *names = sys.argv[1:] or ["languages"]
    n_draws = 3
    if "--draws" in names:
        place = names.index("--draws")
        n_draws, names = int(names[place + 1]), names[:place] + names[place + 2 :]
    {
        "languages": languages,
        "topics": lambda: topics(names, n_draws),
        "calibration": lambda: calibration(names),
        "words": lambda: words(names),
    }[what]()
