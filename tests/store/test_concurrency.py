"""Many processes write and read one store at the same time."""

from collections import Counter
from itertools import pairwise

import pytest

from polytopic.counts import LabelSetCounts
from tests.store.children import read_for, write_for
from tests.store.plain import open_store
from tests.store.processes import messages_of, start

N = 4  # writers, and as many readers


def work_together(url, seconds):
    """Run writers and readers; no change is lost, made twice, or visible in part."""
    writers = [start(write_for, seconds, url, seed) for seed in range(N)]
    readers = [start(read_for, seconds, url, seed) for seed in range(N)]
    written = [list(messages_of(pipe)) for _, pipe in writers]
    seen = [list(messages_of(pipe)) for _, pipe in readers]
    for process, _ in writers + readers:
        process.join()
        assert process.exitcode == 0

    known, receipts = {}, []
    for ((own, given),) in written:
        known |= own
        receipts += [receipt for receipt in given if receipt.changed]
        assert given  # none waits forever
    receipts.sort(key=lambda receipt: receipt.revision_after)
    assert [r.revision_after for r in receipts] == list(range(1, len(receipts) + 1))
    assert all(a.digest_after == b.digest_before for a, b in pairwise(receipts))
    with open_store(url) as store:
        bags = [(Counter(words), labels) for words, labels in known.values()]
        assert store.counts() == LabelSetCounts(bags)
        assert store.revision == len(receipts)
        assert store.verify().ok

    n_docs, digests = [0], [receipts[0].digest_before]
    for receipt in receipts:
        n_docs.append(n_docs[-1] + receipt.learned - receipt.forgotten)
        digests.append(receipt.digest_after)
    for (looks,) in seen:
        revisions = [revision for revision, *_ in looks]
        assert revisions == sorted(revisions)
        for revision, documents, digest in looks:
            assert documents == n_docs[revision]
            assert digest in (None, digests[revision])


def test_writers_and_readers_work_together(url):
    """Writers wait for each other, and readers see the store as it was at some revision."""
    work_together(url, 2)


@pytest.mark.long
def test_writers_and_readers_work_together_for_long(url):
    """The same for half a minute."""
    work_together(url, 30)
