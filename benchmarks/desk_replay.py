"""The replay of a news desk: a corpus in simulated time, each month judged before it is learned.

The first documents are learned as an archive. Then each month is labelled by models of all earlier
documents, and the labels of a share of its documents are learned. Count models (naive Bayes, PMM1)
are fitted again each month, the default model (MML) at the beginning of each quarter. Rules are
tuned at the beginning of each year, on a fifth of the documents learned by then.
"""

import argparse
import random
import tempfile
import time
from collections import defaultdict
from copy import copy
from pathlib import Path

from common import corpus_path, markdown

from polytopic import Document, Store
from polytopic.corpus import read_documents
from polytopic.decision import TopK
from polytopic.metrics import samples_f1, samples_precision, samples_recall

DESKS = {"nb": "cohort", "pmm1": None, "mml": None}  # models and their rules
METHODS = (
    "NB, one topic",
    "NB, three topics",
    "NB, cohort",
    "PMM1",
    "MML (default)",
)


def with_rule(labeler, rule):
    """Return a labeler with another rule."""
    other = copy(labeler)
    other.rule = rule
    return other


class Desk:
    """A store with one model, and the labeler that answers in the present month."""

    def __init__(self, folder, model, rule):
        self.model, self.rule = model, {} if rule is None else {"rule": rule}
        self.store = Store(Path(folder) / f"{model}.db", language="cs", model=model)
        self.seconds, self.labeler = 0.0, None

    def learn(self, documents, month):
        """Learn documents; publish or refresh the model when it is due."""
        start = time.process_time()
        self.store.learn(documents)
        if self.labeler is None or month.endswith("-01"):
            self.store.publish(keep=2, **self.rule)
        elif self.model == "mml" and month[-2:] in ("04", "07", "10"):
            self.store.refresh(keep=2)
        if self.model != "mml" or self.labeler is None or month[-2:] in ("01", "04", "07", "10"):
            self.labeler = self.store.labeler()
        self.seconds += time.process_time() - start


def replay(documents, n_archive, share, folder):
    """Return the true and predicted label sets of each method by year, and the desks."""
    desks = {model: Desk(folder, model, rule) for model, rule in DESKS.items()}
    rng, answers = random.Random(0), defaultdict(lambda: defaultdict(lambda: ([], [])))
    months = defaultdict(list)
    for document in documents[n_archive:]:
        months[document.time.strftime("%Y-%m")].append(document)
    for desk in desks.values():
        desk.learn(documents[:n_archive], f"{documents[n_archive].time:%Y-%m}")
    for month, articles in sorted(months.items()):
        texts, true = [a.content for a in articles], [set(a.labels) for a in articles]
        nb = desks["nb"].labeler
        labelers = (with_rule(nb, TopK(1)), with_rule(nb, TopK(3)), nb)
        labelers += (desks["pmm1"].labeler, desks["mml"].labeler)
        for method, labeler in zip(METHODS, labelers, strict=True):
            kept_true, predicted = answers[method][month[:4]]
            kept_true += true
            predicted += map(set, labeler.predict(texts))
        learned = [
            a if rng.random() < share else Document(a.id, a.text, time=a.time) for a in articles
        ]
        for desk in desks.values():
            desk.learn(learned, month)
    return answers, desks


def report(answers, desks, n_docs):
    """Print F1 by year, and precision, recall and F1 of all."""
    years = sorted(answers[METHODS[0]])
    rows = []
    for method in METHODS:
        by_year = answers[method]
        true = [labels for year in years for labels in by_year[year][0]]
        predicted = [labels for year in years for labels in by_year[year][1]]
        p, r = samples_precision(true, predicted), samples_recall(true, predicted)
        own = [f"{samples_f1(*by_year[year]):.3f}" for year in years]
        rows.append(
            [method, *own, f"{samples_f1(true, predicted):.3f}", f"{2 * p * r / (p + r):.3f}"]
        )
    counts = [str(len(answers[METHODS[0]][year][0])) for year in years]
    header = ["samples F1", *years, "all", "F1 of P and R"]
    markdown(header, [["documents", *counts, "", ""], *rows])
    for model, desk in desks.items():
        print(f"{model}: {1000 * desk.seconds / n_docs:.1f} ms of CPU time per document")


def main():
    """Replay a corpus."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", default="czech-pirati")
    parser.add_argument("--archive", type=int, default=600, help="documents before the first month")
    parser.add_argument("--share", type=float, default=1.0, help="share of labels that are learned")
    arguments = parser.parse_args()
    documents = [d for d in read_documents(corpus_path(arguments.corpus)) if d.labels and d.time]
    documents.sort(key=lambda d: d.time)
    with tempfile.TemporaryDirectory() as folder:
        answers, desks = replay(documents, arguments.archive, arguments.share, folder)
        report(answers, desks, len(documents))
        for desk in desks.values():
            desk.store.close()


if __name__ == "__main__":
    main()
