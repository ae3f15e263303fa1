"""Time, memory and bytes over the network on a cluster of two processes, by documents.

``python benchmarks/scale.py FOLDER`` writes arxiv-cs, repeated, to FOLDER and counts and labels
it; ``--plot`` draws what was measured to docs/scale.png. Results are added to FOLDER/scale.jsonl.
"""

import gzip
import json
import os
import resource
import shutil
import time
import warnings
from pathlib import Path

import click
from common import corpus_path

TIMES = (1, 2, 4, 8, 14)
LABELLED = (1, 4, 14)


def write_repeated(folder, times):
    """Return a file with arxiv-cs this many times."""
    path = folder / f"arxiv-{times}.jsonl"
    if not path.exists():
        with open(path, "wb") as target:
            for _ in range(times):
                with gzip.open(corpus_path("arxiv-cs")) as source:
                    shutil.copyfileobj(source, target)
    return path


def cpu_seconds():
    """Return the processor time of this process."""
    return time.process_time()


def sent_bytes():
    """Return the bytes that this process has sent to others since the first call."""
    from distributed.comm import tcp

    if not hasattr(tcp, "sent_bytes"):
        plain = tcp.TCP.write

        async def write(self, *arguments, **options):
            sent = await plain(self, *arguments, **options)
            tcp.sent_bytes += sent
            return sent

        tcp.sent_bytes, tcp.TCP.write = 0, write
    return tcp.sent_bytes


def all_bytes(client):
    """Return the bytes that all processes have sent: workers, and this one with the scheduler."""
    return sum(client.run(sent_bytes).values()) + sent_bytes()


def peak_mb():
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(client, job):
    """Return a job's result, its time on the clock and of processors, and the bytes sent."""
    own, workers = time.process_time(), sum(client.run(cpu_seconds).values())
    sent, begin = all_bytes(client), time.perf_counter()
    found = job()
    return found, {
        "seconds": time.perf_counter() - begin,
        "client_cpu": time.process_time() - own,
        "worker_cpu": sum(client.run(cpu_seconds).values()) - workers,
        "bytes": all_bytes(client) - sent,
        "peak_mb": max(client.run(peak_mb).values()),
    }


def append_result(folder, **values):
    """Add a measurement to the file of all, and show it."""
    line = json.dumps(values)
    with open(folder / "scale.jsonl", "a") as file:
        file.write(line + "\n")
    click.echo(line)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--times", default=",".join(map(str, TIMES)), help="Repetitions to count.")
@click.option("--labelled", default=",".join(map(str, LABELLED)), help="Repetitions to label.")
@click.option("--rounds", is_flag=True, help="Measure CoL and MML on Reuters.")
@click.option("--alone", is_flag=True, help="Count arxiv-cs in one process.")
@click.option("--memory", type=int, help="Limit the memory of each worker, in MB, with arxiv-cs.")
@click.option("--plot", is_flag=True, help="Draw docs/scale.png.")
def main(folder, times, labelled, rounds, alone, memory, plot):
    """Measure."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(n) for n in times.split(",") if n]
    if alone:
        count_alone(folder)
    if memory:
        run_with_limit(folder, memory, max(numbers))
    elif rounds:
        measure_rounds(folder)
    elif plot:
        draw(folder)
    elif not alone:
        grow(folder, numbers, [int(n) for n in labelled.split(",") if n])


def grow(folder, numbers, labelled):
    """Count and label growing numbers of documents."""
    from polytopic.distributed import connect, count, suggest

    with connect(workers=2) as client:
        count(write_repeated(folder, 1), client=client)  # compile, and cache tokens
        for n in numbers:
            path = write_repeated(folder, n)
            counts, cost = measure(client, lambda path=path: count(path, client=client))
            append_result(
                folder, what="count", docs=counts.n_docs, size=path.stat().st_size, **cost
            )
            if n in labelled:
                labeler = fitted(count(write_repeated(folder, 1), client=client))
                out = folder / f"out-{n}"
                shutil.rmtree(out, ignore_errors=True)
                written, cost = measure(
                    client,
                    lambda path=path, out=out, labeler=labeler: suggest(
                        labeler, path, out, client=client
                    ),
                )
                append_result(folder, what="suggest", docs=written.documents, **cost)
                shutil.rmtree(out)


def fitted(counts):
    """Return a labeler that has learned a table of counts."""
    from polytopic import Labeler
    from polytopic.labeler.learning import learn_counts

    labeler = Labeler("nb")
    return labeler.set_state(learn_counts(labeler, counts))


def count_alone(folder):
    """Count in this process, with the number of threads that is set."""
    from polytopic.corpus import read_documents
    from polytopic.labeler.reading import count_texts
    from polytopic.text import Analyzer

    path = write_repeated(folder, 1)
    for _ in range(2):  # the second time all words are known
        begin, cpu = time.perf_counter(), time.process_time()
        counts = count_texts(read_documents(path), None, Analyzer("en"), None)
        cost = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
    threads = os.environ.get("POLYTOPIC_NUM_THREADS")
    append_result(
        folder, what="alone", threads=threads, docs=counts.n_docs, peak_mb=peak_mb(), **cost
    )


def measure_rounds(folder):
    """Measure what a step of CoL and a round of MML send, on Reuters."""
    from polytopic import MML, CoL, Labeler
    from polytopic.distributed import connect, fit

    warnings.simplefilter("ignore")
    path = corpus_path("reuters21578")
    with connect(workers=2) as client:
        for name, model in {"col": CoL(150, tol=0), "mml": MML(tol=1e-9)}.items():
            costs = []
            for max_iter in (2, 2, 6):  # the first compiles
                model.set_params(max_iter=max_iter)
                how = {"split": "train", "parts": 2, "client": client}
                labeler, cost = measure(
                    client, lambda model=model, how=how: fit(Labeler(model), path, **how)
                )
                costs.append(cost)
            append_result(
                folder,
                what=name,
                labels=int(labeler.classes_.size),
                terms=len(labeler.vocabulary_),
                bytes_a_round=(costs[2]["bytes"] - costs[1]["bytes"]) / 4,
                whole=costs[2],
            )


def run_with_limit(folder, memory, times):
    """Count and label a corpus with little memory."""
    from dask.distributed import Client, LocalCluster

    from polytopic.distributed import count, suggest

    path, out = write_repeated(folder, times), folder / "out-limited"
    shutil.rmtree(out, ignore_errors=True)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=f"{memory}MB",
            dashboard_address="127.0.0.1:0",
            env={"POLYTOPIC_NUM_THREADS": "1"},
        ) as cluster,
        Client(cluster) as client,
    ):
        counts, cost = measure(client, lambda: count(path, client=client))
        size = path.stat().st_size
        append_result(
            folder, what="limited count", limit=memory, size=size, docs=counts.n_docs, **cost
        )
        labeler = fitted(counts)
        written, cost = measure(client, lambda: suggest(labeler, path, out, client=client))
        append_result(folder, what="limited suggest", limit=memory, docs=written.documents, **cost)
    shutil.rmtree(out)


def draw(folder):
    """Draw processor time by documents."""
    from matplotlib import pyplot as plt

    rows = [json.loads(line) for line in (folder / "scale.jsonl").read_text().splitlines()]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, what, title in zip(
        axes, ("count", "suggest"), ("counting", "labelling"), strict=True
    ):
        found = {row["docs"]: row for row in rows if row["what"] == what}
        docs = sorted(found)
        cpu = [found[n]["worker_cpu"] + found[n]["client_cpu"] for n in docs]
        axis.plot(docs, cpu, "o-", label="processor time, all processes")
        axis.plot(docs, [found[n]["seconds"] for n in docs], "s--", label="on the clock")
        axis.set(title=f"{title} arxiv-cs, repeated", xlabel="documents", ylabel="seconds")
        axis.set(xlim=0, ylim=0)
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:,.0f}k")
    axes[0].legend(frameon=False)
    figure.savefig(Path(__file__).parents[1] / "docs" / "scale.png", dpi=120)


if __name__ == "__main__":
    main()
