"""A slow, obvious table of counts by label set."""

from collections import Counter


def label_set_table(bags, label_sets):
    """Return {label set: (documents, Counter of words)} of bags of words."""
    table = {}
    for bag, labels in zip(bags, label_sets, strict=True):
        if labels:
            documents, words = table.setdefault(tuple(sorted(labels)), [0, Counter()])
            table[tuple(sorted(labels))] = [documents + 1, words + Counter(bag)]
    return table
