"""Finding wrong labels: AUROC of suspicion, by model, on corpora with 5 % wrong labels.

    python benchmarks/audits.py enron --models nb,pmm1,mml,stack --draws 3

"replaced": 5 % of the documents get the label set of another document. "swapped": one label of 5 %
of the documents is replaced by another one. The AUROC over documents is that of the suspicion; that
over labels is, for models that are audited by folds, that of the probability of each label that a
document has or lacks.
"""

import argparse

import numpy as np
from common import corpus_path, markdown
from sklearn.metrics import roc_auc_score

from polytopic import Labeler
from polytopic.corpus import read_documents
from polytopic.labeler.held_out import calibrate, hold_out

WRONG = 0.05


def with_wrong_labels(documents, kind, rng):
    """Return the labels of documents, and which of them are wrong."""
    labels = [sorted(document.labels) for document in documents]
    every = sorted({label for names in labels for label in names})
    wrong = np.zeros(len(labels), dtype=bool)
    for doc in rng.permutation(len(labels))[: round(WRONG * len(labels))]:
        wrong[doc] = True
        own = set(labels[doc])
        if kind == "replaced":
            others = [names for names in labels if set(names) != own]
            labels[doc] = others[rng.integers(len(others))]
        else:
            others = [label for label in every if label not in own]
            place = rng.integers(len(own))
            labels[doc] = [*labels[doc][:place], *labels[doc][place + 1 :]]
            labels[doc].append(others[rng.integers(len(others))])
    return labels, wrong


def auroc_of_documents(labeler, documents, labels, wrong):
    """Return the AUROC of the suspicion; 0 for a document that is not suspected."""
    suspicion = np.zeros(len(documents))
    for suspect in labeler.audit(documents, labels, k=len(documents)):
        suspicion[suspect.index] = suspect.suspicion
    return roc_auc_score(wrong, suspicion)


def auroc_of_labels(labeler, documents, labels):
    """Return the AUROC of probabilities against labels that documents wrongly have or lack."""
    if labeler.model_.audit_method != "out-of-fold":
        return np.nan
    state = labeler.state_
    given = state.space.encode(labels).toarray() > 0
    known = set(state.space)
    true = state.space.encode([known & set(d.labels) for d in documents]).toarray() > 0
    proba = calibrate(hold_out(labeler, state, labeler.documents_).scores, given)
    return roc_auc_score((given != true).ravel(), np.where(given, 1 - proba, proba).ravel())


def main():
    """Print a table of corpora and models."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--models", default="nb,pmm1,mml,stack")
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.corpora:
        documents = [d for d in read_documents(corpus_path(name)) if d.labels]
        language = None if documents[0].counts else "en"
        for kind in ("replaced", "swapped"):
            for model in arguments.models.split(","):
                values = []
                for draw in range(arguments.draws):
                    rng = np.random.default_rng(draw)
                    labels, wrong = with_wrong_labels(documents, kind, rng)
                    labeler = Labeler(model, language=language).fit(documents, labels)
                    values.append(
                        (
                            auroc_of_documents(labeler, documents, labels, wrong),
                            auroc_of_labels(labeler, documents, labels),
                        )
                    )
                means = np.mean(values, axis=0)
                rows.append((name, kind, model, *(f"{mean:.3f}" for mean in means)))
    markdown(["corpus", "labels", "model", "AUROC of documents", "AUROC of labels"], rows)


if __name__ == "__main__":
    main()
