"""Many processes write and read one store at the same time."""

import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise

import pytest

from polytopic.counts import LabelSetCounts
from polytopic.store import Store
from tests.store.children import read_for, write_for
from tests.store.plain import open_store
from tests.store.processes import messages_of, start

N = 4  # writers, and as many readers


def work_together(url, seconds):
    """Run writers and readers; no change is lost, made twice, or partly visible."""
    writers = [start(write_for, seconds, url, seed) for seed in range(N)]
    readers = [start(read_for, seconds, url, seed) for seed in range(N)]
    written = [list(messages_of(pipe)) for _, pipe in writers]
    seen = [list(messages_of(pipe)) for _, pipe in readers]
    for process, _ in writers + readers:
        process.join()
        assert process.exitcode == 0

    known, receipts = {}, []
    for ((own, written_receipts),) in written:
        known |= own
        receipts += [receipt for receipt in written_receipts if receipt.changed]
        assert written_receipts  # none waits forever
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
    """Writers wait for each other, and readers see the store as it was at one revision."""
    work_together(url, 2)


@pytest.mark.long
def test_writers_and_readers_work_together_for_long(url):
    """The same for half a minute."""
    work_together(url, 30)


WAITING = """
import sys
from polytopic.store import Store

with Store(sys.argv[1], create=False) as store:
    print("opened", flush=True)
    try:
        store.learn([{"text": "a goal", "labels": ["sport"], "id": "1"}])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(sys.stdin.readline().strip(), flush=True)
    store.learn([{"text": "a goal", "labels": ["sport"], "id": "1"}])
    print(store.info()["documents"])
"""


def test_waiting_for_another_writer_can_be_interrupted(url):
    """The wait ends, and the session can write when the other one has finished."""
    with Store(url) as store:
        with store._database.writing():
            session = subprocess.Popen(
                [sys.executable, "-c", WAITING, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
            assert session.stdout.readline() == "opened\n"
            time.sleep(0.5)  # until it waits
            session.send_signal(signal.SIGINT)
            assert session.stdout.readline() == "interrupted\n"
        last, _ = session.communicate("go on\n", timeout=60)

    assert (session.returncode, last) == (0, "go on\n1\n")
