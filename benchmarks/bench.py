"""Speed, memory and size compared with other libraries, from texts, in one run.

Usage: bench.py [FOLDER] [--corpora NAME ...] [--repeats N] [--limit SECONDS] [--methods NAME ...]

Each measurement runs in its own process, on one thread. All methods run once, then all again;
ratios are to scikit-learn's pipeline in the same round. Markdown is written to the output.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_methods import METHODS
from common import markdown, split_documents

from polytopic.metrics import samples_f1

CORPORA = ("reuters21578", "debtags-en", "arxiv-cs")
REFERENCE = "scikit-learn"
OURS = "polytopic, default"
ONE_THREAD = dict.fromkeys(
    ("POLYTOPIC_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
STARTS = {
    "python": [sys.executable, "-c", "pass"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import polytopic": [sys.executable, "-c", "import polytopic"],
    "import sklearn": [sys.executable, "-c", "import sklearn"],
}
TEXT = {"id": "1", "text": "Wheat prices rose as exporters sold more grain than last year."}


def prepare(folder, corpus):
    """Write the texts and labels that methods read; return the true labels of the test part."""
    for part, documents in zip(("learn", "label"), split_documents(corpus), strict=True):
        documents = [document for document in documents if document.labels]
        columns = [d.text for d in documents], [list(d.labels) for d in documents]
        (folder / f"{corpus}.{part}.json").write_text(json.dumps(columns), "utf-8")
    return columns[1]


def run(method, what, folder, corpus, limit, **changes):
    """Return the measurements of a process, or why it failed."""
    program = Path(__file__).with_name("bench_methods.py")
    command = [sys.executable, str(program), method, what, str(folder), corpus]
    environment = os.environ | ONE_THREAD | changes
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"more than {limit} s"}
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(folder, corpus, methods, repeats, limit):
    """Return rounds of results, each a dict of methods."""
    rounds, failed = [], {}
    for turn in range(repeats):
        rounds.append({})
        for method in methods:
            if method in failed:
                continue
            found = {}
            for what in ("learn", "label"):
                found[what] = run(method, what, folder, corpus, limit)
                if "failure" in found[what]:
                    failed[method] = f"{what}: {found[what]['failure']}"
                    break
            else:
                rounds[-1][method] = found
            outcome = failed.get(method) or f"{found['learn']['cpu']:.1f} s to learn"
            print(f"{corpus}, round {turn + 1}: {method}: {outcome}", file=sys.stderr, flush=True)
    return rounds, failed


def report(folder, corpus, rounds, failed, truth, methods):
    """Write the table of a corpus."""
    print(f"\n### {corpus}\n")
    rows = []
    for method in methods:
        own = [found for found in rounds if method in found]
        if not own:
            rows.append([method, failed.get(method, "·"), *["·"] * 8])
            continue
        answers = folder / f"{corpus}.{METHODS[method]().file}.answers.json"
        f = samples_f1(known_names(method, truth), json.loads(answers.read_text("utf-8")))
        learn, label = ([found[method][what] for found in own] for what in ("learn", "label"))
        size = f"{learn[0]['size']:.1f}"
        if "small" in learn[0]:
            size += f" ({learn[0]['small']:.1f})"
        rows.append(
            [
                method,
                f"{f:.3f}",
                f"{median(learn, 'cpu'):.2f}",
                ratio(own, method, "learn"),
                f"{1e6 * median(label, 'cpu') / len(truth):.1f}",
                ratio(own, method, "label"),
                f"{median(label, 'load') + median(label, 'first'):.2f}",
                f"{median(learn, 'peak'):.0f}",
                f"{median(label, 'peak'):.0f}",
                size,
            ]
        )
    head = ["method", "F", "learn, s", "times", "label, µs per text", "times faster"]
    head += ["load and first answers, s", "peak MB, learn", "label", "model, MB"]
    markdown(head, rows)


def known_names(method, truth):
    """Return labels as a method spells them."""
    if method != "fastText":
        return truth
    return [[name.replace(" ", "_") for name in own] for own in truth]


def median(found, name):
    """Return the median of a figure."""
    return statistics.median(one[name] for one in found)


def ratio(rounds, method, what):
    """Return the paired ratios to scikit-learn: its time in ours to label, ours in its to learn."""
    pairs = [
        (found[method][what]["cpu"], found[REFERENCE][what]["cpu"])
        for found in rounds
        if REFERENCE in found
    ]
    if not pairs:
        return "·"
    ratios = [reference / own if what == "label" else own / reference for own, reference in pairs]
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.2f}{spread}"


def starts(folder, corpus, repeats):
    """Write how long programs take to start, by the clock, and the ratio to scikit-learn's."""
    text = folder / "one.jsonl"
    text.write_text(json.dumps(TEXT) + "\n", "utf-8")
    commands = dict(STARTS)
    for method in METHODS:
        path = folder / f"{corpus}.{METHODS[method]().file}"
        if method.startswith("polytopic") and path.exists():
            program = "from polytopic.cli import main; main()"
            suggest = [sys.executable, "-c", program, "suggest", str(path), str(text)]
            commands[f"polytopic suggest, one text, {path.suffixes[0][1:]}"] = suggest
    times = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - begin)
    reference = times["import sklearn"]
    print("\n### Start\n")
    rows = []
    for name, own in times.items():
        ratios = [a / b for a, b in zip(own, reference, strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        rows.append([name, f"{statistics.median(own):.3f}", spread])
    markdown(["program", "s", "of import sklearn"], rows)


def both_cores(folder, corpus, limit):
    """Write how much faster the default labels on all cores, by the clock."""
    one = run(OURS, "label", folder, corpus, limit)
    all_cores = run(OURS, "label", folder, corpus, limit, POLYTOPIC_NUM_THREADS="")
    if "failure" not in one and "failure" not in all_cores:
        times = one["wall"] / all_cores["wall"]
        print(f"\nOn all cores the default labels {times:.2f} times as fast, by the clock.")


def main():
    """Run all and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        folder.mkdir(exist_ok=True)
        for corpus in arguments.corpora:
            truth = prepare(folder, corpus)
            run(OURS, "learn", folder, corpus, None)  # what is compiled once is not measured
            rounds, failed = measure(
                folder, corpus, arguments.methods, arguments.repeats, arguments.limit
            )
            report(folder, corpus, rounds, failed, truth, arguments.methods)
            both_cores(folder, corpus, arguments.limit)
        starts(folder, arguments.corpora[0], max(3, arguments.repeats))


if __name__ == "__main__":
    main()
