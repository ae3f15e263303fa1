"""A corpus that is larger than the memory of all workers together."""

import json
from pathlib import Path

import pytest

from polytopic import Labeler
from polytopic.corpus import load_sample
from polytopic.distributed import count, suggest
from tests.distributed.test_answers import lines_of

LIMIT = 600 * 10**6  # bytes of memory that a worker may use
BLOCK = 4 * 2**20  # bytes that are read at once
STATUS = Path("/proc/self/status")
LARGER = 3  # times, than the memory of both workers


def peak():
    """Return the peak memory of this process in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not report peak memory")


@pytest.mark.long
@pytest.mark.skipif(not STATUS.exists(), reason="only Linux reports peak memory")
def test_more_than_memory(tmp_path):
    """A corpus of three times the memory is counted and labelled within the limit."""
    from dask.distributed import Client, LocalCluster

    sample = load_sample()[:200]
    labels = [document.labels for document in sample]
    texts = [" ".join([document.text] * (20_000 // len(document.text))) for document in sample]
    block = "".join(
        json.dumps({"text": text, "labels": own}) + "\n"
        for text, own in zip(texts, labels, strict=True)
    ).encode()
    times = -(-2 * LARGER * LIMIT // len(block))
    path = tmp_path / "large.jsonl"
    with open(path, "wb") as file:
        for _ in range(times):
            file.write(block)
    alone = Labeler("nb", language=None).fit(texts, labels)

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=LIMIT,
            dashboard_address="127.0.0.1:0",
            env={"POLYTOPIC_NUM_THREADS": "1"},
        ) as cluster,
        Client(cluster) as client,
    ):
        counts = count(path, language=None, blocksize=BLOCK, client=client)
        written = suggest(alone, path, tmp_path / "out", 1, blocksize=BLOCK, client=client)
        peaks = list(client.run(peak).values())

    assert path.stat().st_size >= LARGER * 2 * LIMIT
    path.unlink()
    assert max(peaks) < LIMIT, peaks
    assert counts.n_docs == written.documents == 200 * times
    assert (counts.matrix != alone.counts_.matrix * times).nnz == 0
    answers = [json.loads(line)["labels"] for line in lines_of(tmp_path / "out")]
    assert answers == alone.predict(texts) * times
