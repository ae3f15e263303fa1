"""Comparisons: stored results, failures, tables and reports."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from polytopic import Document
from polytopic.cli import compare as compare_command
from polytopic.cli import main
from polytopic.corpus import load_sample, write_documents
from polytopic.experiments import (
    PROTOCOLS,
    Method,
    Protocol,
    all_methods,
    compare,
    default_methods,
    register_method,
)
from polytopic.experiments.comparison import Comparison, Row, compare_pairs, time_left
from polytopic.experiments.report import entries
from tests.experiments import new_model  # noqa: F401  # registers it
from tests.experiments.failing import FAILING

LACKING = "no_such_package is not installed. Install it with: pip install 'polytopic[bench]'"
FAST = ["knn", "nb-one-vs-rest", "svm"]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Return a comparison of three methods and one that is missing."""
    return compare(
        load_sample(),
        [*FAST, Method("absent", "Absent", all_methods()["knn"].fit, package="no_such_package")],
        protocol=Protocol("folds", repeats=2),
        folder=tmp_path_factory.mktemp("cells"),
        workers=2,
        tune=0,
    )


def test_rows(comparison):
    """The best comes first; a method that cannot run comes last, with the reason."""
    assert [row.method for row in comparison.rows][-1] == "absent"
    assert comparison.rows[-1].failure == LACKING
    means = [row.mean("samples_f1") for row in comparison.rows[:-1]]
    assert means == sorted(means, reverse=True)
    for row in comparison.rows[:-1]:
        assert len(row.results) == 2
        assert row.mean("fit_seconds") >= 0
        assert row.mean("memory_mb") >= 0


def test_stored_results_are_not_computed_again(tmp_path):
    """The second time, nothing runs and the result is the same."""
    sentences = [[], []]
    answers = [
        compare(
            load_sample(),
            ["knn"],
            protocol=Protocol("folds", repeats=2),
            folder=tmp_path,
            tune=0,
            progress=sentences[k].append,
        )
        for k in range(2)
    ]

    assert answers[0].rows[0].results == answers[1].rows[0].results
    assert len(sentences[0]) == 2
    assert sentences[1] == ["2 of 2 results are known already or cannot be computed."]


def test_a_killed_run_continues(tmp_path):
    """A run that was killed continues where it stopped."""
    path = tmp_path / "news.jsonl"
    write_documents(load_sample(), path)
    command = [sys.executable, "-m", "polytopic", "compare", str(path), "--protocol", "folds"]
    command += ["--models", "knn,nb-one-vs-rest,svm", "--repeats", "3", "--tune", "0"]
    cells = tmp_path / "news.jsonl.compare" / "cells"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not (cells.exists() and any(cells.glob("*.json"))) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    contents = {file.name: file.read_text() for file in cells.glob("*.json")}

    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)

    assert contents
    for name, text in contents.items():
        assert (cells / name).read_text() == text
    assert len(list(cells.glob("*.json"))) == 9
    assert len(done.stdout.splitlines()) == 3


def test_failures_are_rows(tmp_path):
    """A method that raises, crashes or takes too long gets a row that says so."""
    comparison = compare(
        load_sample(),
        [*FAILING, "knn"],
        protocol=Protocol("random", repeats=1),
        folder=tmp_path,
        workers=2,
        tune=0,
        timeout=10,
    )

    failures = {row.method: row.failure for row in comparison.rows}
    assert failures == {
        "knn": None,
        "raises": "RuntimeError: no luck",
        "dies": "its process ended with code 7.",
        "sleeps": "it took more than 10 seconds.",
    }
    assert len(list((tmp_path / "cells").iterdir())) == 1


def test_tables(comparison):
    """The best is bold in each column; a method that cannot run has the reason."""
    markdown, latex = comparison.to_markdown(), comparison.to_latex()

    assert f"| Absent | {LACKING} |" in markdown
    assert markdown.count("**") >= 2 * 6
    assert latex.count(r"\\") == 5
    assert r"Absent & \multicolumn{9}{l}{no\_such\_package is not installed" in latex
    assert "\\textbf{" in latex
    rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert len(rows) == 7
    assert rows[-1]["failure"] == LACKING
    best = comparison.best("samples_f1")
    values = [float(row["samples_f1"]) for row in rows if row["method"] == best.method]
    assert np.mean(values) == pytest.approx(best.mean("samples_f1"))


def test_bold_is_best(comparison):
    """A cell is best if and only if no other method has a better mean."""
    table = entries(comparison)
    for column in zip(*table, strict=True):
        means = [cell.mean for cell in column]
        higher = column[0].digits == 3
        top = max(means) if higher else min(means)
        for cell in column:
            same = f"{cell.mean:.{cell.digits}f}" == f"{top:.{cell.digits}f}"
            assert cell.best == same
            assert not (cell.best and cell.worse)


def test_report(comparison, tmp_path):
    """The page is self-contained: embedded figures, no script, no network, escaped names."""
    page = comparison.to_html()

    assert page.count("data:image/svg+xml;base64,") >= 3
    assert "<script" not in page
    assert "http://" not in page.split("<body>")[1].split("base64")[0]
    assert "In short" in page
    assert "has the best samples F1" in page
    assert "alpha 1" in page  # settings as text
    evil = Comparison(
        "<img src=x>", comparison.about, comparison.protocol, comparison.splits, comparison.rows
    )
    assert "<img src=x>" not in evil.to_html()


def result(f, n_train=100, n_test=50, documents=None):
    """Return the result of a cell."""
    return {
        "metrics": {"samples_f1": f},
        "documents": {"samples_f1": documents or [f]},
        "n_train": n_train,
        "n_test": n_test,
    }


def test_significance_on_several_splits():
    """The corrected t-test by its formula."""
    ours = [result(f) for f in (0.8, 0.82, 0.81, 0.83)]
    theirs = [result(f) for f in (0.78, 0.79, 0.8, 0.8)]
    difference = np.array([0.02, 0.03, 0.01, 0.03])
    t = difference.mean() / np.sqrt(difference.var(ddof=1) * (1 / 4 + 0.5))

    from scipy import stats

    assert compare_pairs(ours, theirs, "samples_f1") == pytest.approx(2 * stats.t.sf(t, 3))
    assert compare_pairs(ours, ours, "samples_f1") == 1.0


def test_significance_on_one_split():
    """The permutation test: exact for few documents, small for many that agree."""
    few = compare_pairs(
        [result(1.0, documents=[1, 1, 1])], [result(0.0, documents=[0, 0, 0])], "samples_f1"
    )
    many = compare_pairs(
        [result(1.0, documents=[1] * 40)], [result(0.0, documents=[0] * 40)], "samples_f1"
    )

    assert few == pytest.approx(0.25, abs=0.02)
    assert many < 0.001
    assert compare_pairs([result(1.0)], [result(0.0)], "micro_f1") is None


def test_a_curve_is_summarized_by_its_largest_part():
    """Tables show only the largest training sets, ordered by their means."""
    rows = [
        Row("a", "A", [result(0.5, 10), result(0.9, 20)]),
        Row("b", "B", [result(0.8, 10), result(0.7, 20)]),
    ]
    comparison = Comparison("c", {}, Protocol("curve"), ["10 of random 1", "20 of random 1"], rows)

    largest = comparison.largest()

    assert [row.method for row in largest.rows] == ["a", "b"]
    assert [row.mean("samples_f1") for row in largest.rows] == [0.9, 0.7]


def test_the_report_of_a_curve_says_what_more_documents_gained(comparison):
    """The sentence is about the method that is best at the end."""
    (best, *_) = comparison.rows
    small = [one | {"n_train": 10} for one in best.results]
    curve = Comparison(
        "c",
        comparison.about,
        Protocol("curve"),
        ["10 of random 1", "10 of random 2", "20 of random 1", "20 of random 2"],
        [Row(best.method, best.title, small + [one | {"n_train": 20} for one in best.results])],
    )

    page = curve.to_html()

    f = f"{best.mean('samples_f1'):.3f}"
    assert "From 10 to 20 training documents" in page
    assert f"changed from {f} to {f}" in page


def test_progress_shows_thetime_left():
    """Seconds, minutes, or nothing if it is short."""
    assert time_left(3) == ""
    assert time_left(40) == " (about 40 seconds left)"
    assert time_left(600) == " (about 10 minutes left)"


def test_other_settings_are_run_again(tmp_path):
    """A method with other settings is run again."""
    sentences = []
    method = all_methods()["nb-one-vs-rest"]
    for alpha in (0.5, 0.5, 0.1):
        compare(
            load_sample(),
            [replace(method, settings={"alpha": alpha})],
            protocol=Protocol("random", repeats=1),
            folder=tmp_path,
            tune=0,
            progress=sentences.append,
        )

    assert len([line for line in sentences if line.startswith("1/1")]) == 2


def test_command(tmp_path):
    """Files are written; wrong names and small corpora are reported."""
    path = tmp_path / "news.jsonl"
    write_documents(load_sample(), path)
    run = CliRunner().invoke
    to = [str(tmp_path / f"report.{ending}") for ending in ("html", "md", "csv", "tex")]
    options = ["--models", "knn", "--repeats", "2", "--tune", "0"]

    done = run(main, ["compare", str(path), *options, *(x for t in to for x in ("--to", t))])
    wrong = run(main, ["compare", str(path), "--models", "bert"])
    ending = run(main, ["compare", str(path), "--to", "x.doc"])
    tiny = tmp_path / "tiny.jsonl"
    write_documents([Document(str(k), "a", labels=["x"]) for k in range(3)], tiny)
    small = run(main, ["compare", str(tiny)])

    assert done.exit_code == 0, done.output
    assert all(os.path.getsize(target) > 100 for target in to)
    assert "method == 'bert', must be one of mml" in wrong.output
    assert "--to == 'x.doc', must end with one of .md, .csv, .tex, .html." in ending.output
    assert "tiny has 3 labelled documents, needs at least 4" in small.output


def test_a_report_needs_matplotlib_before_anything_runs(tmp_path, monkeypatch):
    """The error comes before the comparison, not after it."""
    path = tmp_path / "news.jsonl"
    write_documents(load_sample(), path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    done = CliRunner().invoke(main, ["compare", str(path), "--to", str(tmp_path / "report.html")])

    assert done.exit_code == 1
    assert "matplotlib is not installed" in done.output
    assert not (tmp_path / "news.jsonl.compare").exists()


def test_protocols_of_the_command():
    """The command offers all protocols of the library."""
    assert set(compare_command.PROTOCOLS) == set(PROTOCOLS)


def test_default_methods():
    """Some of our models and some baselines, all of them known."""
    assert set(default_methods()) < set(all_methods())
    assert {"mml", "svm"} < set(default_methods())


def test_a_registered_model_is_compared(tmp_path):
    """A model that is registered at run time can be compared by its name."""
    path = tmp_path / "news.jsonl"
    write_documents(load_sample(), path)
    options = ["--protocol", "random", "--repeats", "1", "--tune", "0"]

    done = CliRunner().invoke(main, ["compare", str(path), "--models", "steep,steep-er", *options])
    names = CliRunner().invoke(main, ["compare", str(path), "--models", "bert"]).output

    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [row["failure"] for row in rows] == [None, None]
    assert {row["method"] for row in rows} == {"steep", "steep-er"}
    assert rows[0]["samples_f1"] != rows[1]["samples_f1"]
    assert "steep, steep-er" in names


def test_stored_results_know_the_parameters_of_a_variant():
    """Variants that differ in a parameter have other signatures, the same ones have the same."""
    methods, again = all_methods(), all_methods()

    assert methods["steep"].signature == again["steep"].signature
    assert methods["steep"].signature != methods["steep-er"].signature


def test_a_registered_method_is_compared(tmp_path):
    """A method that is registered at run time has a name on the command line."""
    path = tmp_path / "news.jsonl"
    write_documents(load_sample(), path)
    register_method(replace(all_methods()["knn"], name="knn-again", title="kNN once more"))
    options = ["--protocol", "random", "--repeats", "1", "--tune", "0"]

    done = CliRunner().invoke(main, ["compare", str(path), "--models", "knn-again", *options])

    assert done.exit_code == 0, done.output
    assert "kNN once more on random 1" in done.output
