"""The command line as users see it: a real process, real files, real pipes."""

import gzip
import json
import re
import signal
import subprocess
import sys

import pytest

import polytopic
from polytopic.cli import COMMANDS
from polytopic.cli.options import join_names
from polytopic.cli.train import models_with
from polytopic.corpus import Document, load_sample, write_documents
from polytopic.models.registry import model_names
from tests.cli.processes import on_a_terminal, run_polytopic

POLYTOPIC = [sys.executable, "-m", "polytopic"]


def run(*arguments, stdin=b"", code=0):
    """Run the command and return what it wrote to stdout and stderr."""
    done = run_polytopic(*arguments, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout.decode(), done.stderr.decode()


def lines(text):
    """Return the JSON objects of an output."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the sample as a corpus with a test part, and a model of it."""
    folder = tmp_path_factory.mktemp("cli")
    documents = [
        Document(d.id, text=d.text, labels=d.labels, split="test" if n % 5 == 0 else "train")
        for n, d in enumerate(load_sample())
    ]
    write_documents(documents, folder / "news.jsonl.gz")
    run("train", folder / "news.jsonl.gz", "--to", folder / "news.model", "--tree", "names")
    run("train", folder / "news.jsonl.gz", "--to", folder / "mixture.model", "--model", "pmm1")
    return folder


def test_train_leaves_the_test_part_alone(folder):
    """Only the training part is learned, and the summary goes to stderr."""
    out, err = run("train", folder / "news.jsonl.gz", "--to", folder / "again.model")

    assert out == ""
    assert "Learned 278 documents, 20 labels" in err
    assert (folder / "again.model").stat().st_size > 1000
    _, err = run("train", folder / "news.jsonl.gz", "--to", folder / "x", "--split", "test", code=2)
    assert "train never reads the test part" in err


def test_suggest_writes_json_lines(folder):
    """One object per document, in order, with labels and ranked suggestions."""
    out, err = run(
        "suggest", folder / "news.model", folder / "news.jsonl.gz", "--split", "test", "-k", 3
    )

    answers = lines(out)
    assert len(answers) == 70
    assert answers[0]["id"] == "news-001"
    assert set(answers[0]) == {"id", "labels", "suggestions", "known", "abstained", "warning"}
    assert all(len(a["suggestions"]) >= 3 for a in answers)
    assert all({s["label"] for s in a["suggestions"]} >= set(a["labels"]) for a in answers)
    assert err == ""


def test_suggest_answers_a_stream_line_by_line(folder):
    """Each line from standard input is answered before the next one arrives."""
    process = subprocess.Popen(
        [*POLYTOPIC, "suggest", str(folder / "news.model"), "--format", "text"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    answers = []
    for text in ("The striker scored a goal in the league match.", "Astronauts reached orbit."):
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()

    assert process.wait(timeout=60) == 0
    assert [a["labels"] for a in answers] == [["sport/football"], ["science/space"]]


def test_suggest_with_restrictions(folder):
    """Labels can be included or excluded."""
    text = json.dumps({"text": "The striker scored a goal."}).encode()

    out, _ = run("suggest", folder / "news.model", "--exclude", "sport/football", stdin=text)
    assert "sport/football" not in out
    out, _ = run("suggest", folder / "news.model", "--include", "culture/film", stdin=text)
    assert lines(out)[0]["labels"] == ["culture/film"]
    _, err = run("suggest", folder / "news.model", "--include", "golf", stdin=text, code=1)
    assert "label 'golf' is not known" in err


def test_explain(folder):
    """Shares, words and places as JSON; given labels are explained, too."""
    text = "The striker came back after surgery; doctors at the hospital praised the patient."

    explained = lines(run("explain", folder / "news.model", text)[0])[0]
    explanation = lines(
        run("explain", folder / "news.model", "--labels", "culture/film", stdin=text.encode())[0]
    )[0]

    assert sum(reason["share"] for reason in explained["labels"]) == pytest.approx(1)
    assert "health/medicine" in [reason["label"] for reason in explained["labels"]]
    place = explained["places"][0]
    assert text[place["start"] : place["end"]] == "striker"
    assert [reason["label"] for reason in explanation["labels"]] == ["culture/film"]


def test_explain_why_not(folder):
    """Each label in question is answered; the evidence is part of a breakdown."""
    arguments = ("--why-not", "culture/film", "--why-not", "science/space")

    explained = lines(run("explain", folder / "news.model", *arguments, "A goal in the match.")[0])[
        0
    ]

    assert [reason["label"] for reason in explained["why_not"]] == ["culture/film", "science/space"]
    assert all(reason["difference"] > 0 for reason in explained["why_not"])
    breakdown = explained["breakdown"]
    likelihood = breakdown["corpus"] + breakdown["words"] + breakdown["mixing"]
    assert breakdown["score"] == pytest.approx(
        likelihood / breakdown["temperature"] + breakdown["log_prior"]
    )
    assert explained["keywords"][0]["term"] in ("goal", "match")
    label = explained["labels"][0]["label"]
    _, err = run(
        "explain", folder / "news.model", "--why-not", label, "A goal in the match.", code=1
    )
    assert f"why_not == '{label}', must not be one of" in err


def test_explain_writes_a_page(folder, tmp_path):
    """The page is written completely or not at all, and the results go to stdout as usual."""
    page = tmp_path / "why.html"
    text = "The striker <script>alert(1)</script> scored a goal."

    out, err = run("explain", folder / "news.model", "--html", page, text)
    _, failure = run(
        "explain", folder / "news.model", "--html", tmp_path / "no" / "x", text, code=1
    )

    assert lines(out)[0]["labels"]
    assert err == f"Wrote {page}.\n"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "<script" not in page.read_text()
    assert "no' does not exist" in failure
    assert [path.name for path in tmp_path.iterdir()] == ["why.html"]


def test_explain_writes_a_page_to_a_pipe(folder):
    """A pipe is written to, not replaced; the page comes before the results."""
    question = ["explain", str(folder / "news.model"), "--html", "/dev/stdout", "A goal."]
    done = subprocess.run([*POLYTOPIC, *question], capture_output=True, check=True, text=True)

    page, end, results = done.stdout.partition("</html>\n")
    assert page.startswith("<!DOCTYPE html>")
    assert end
    assert lines(results)[0]["labels"]
    assert done.stderr == "Wrote /dev/stdout.\n"


def test_explain_colours_words(folder):
    """On a terminal words have their label's colour, which NO_COLOR turns off."""
    question = (
        "explain",
        folder / "news.model",
        "The goal of\na match",
        "--why-not",
        "culture/film",
    )

    coloured = on_a_terminal(*question, colour=True)
    plain = on_a_terminal(*question)

    assert re.search(r"\x1b\[1;38;2;255;255;255;48;2;0;114;178mgoal\x1b", coloured)
    assert ";2;0;114;178m" not in plain
    assert "Why not culture/film?" in plain
    assert "Keywords for these labels: " in plain
    output = on_a_terminal(*question, "--json")
    assert lines(output)[0]["keywords"]


def test_eval(folder):
    """The test part is evaluated by default, if there is one."""
    measures = lines(run("eval", folder / "news.model", folder / "news.jsonl.gz")[0])[0]

    assert measures["documents"] == 70
    assert measures["samples_f1"] > 0.6
    assert measures["precision_at_1"] > 0.7
    everything = run("eval", folder / "news.model", folder / "news.jsonl.gz", "--split", "train")[0]
    assert lines(everything)[0]["documents"] == 278


def test_eval_reports_calibration_and_labels(folder, tmp_path):
    """Calibration errors, each label, and a plot."""
    plot = tmp_path / "reliability.svg"
    arguments = "--by-label", "--plot", plot

    out, err = run("eval", folder / "news.model", folder / "news.jsonl.gz", *arguments)

    measures = lines(out)[0]
    assert 0 < measures["calibration_error"] < 0.1
    assert 0 < measures["set_calibration_error"] < 0.5
    assert len(measures["labels"]) == 20
    assert set(measures["labels"][0]) == {
        *("label", "precision", "recall", "f1", "support", "predicted"),
    }
    support = [row["support"] for row in measures["labels"]]
    assert support == sorted(support, reverse=True)
    assert f"Wrote {plot}" in err
    assert plot.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("model", ["pmm1", "nb", "mml"])
def test_audit(folder, model):
    """Suspects as JSON lines, from the training part only; the counts go to stderr."""
    training = {d.id for n, d in enumerate(load_sample()) if n % 5}

    out, err = run("audit", folder / "news.jsonl.gz", "--model", model, "-k", 4)

    suspects = lines(out)
    assert len(suspects) == 4
    keys = {"id", "labels", "better", "suspicion", "missing", "extra", "words"}
    assert all(set(suspect) == keys and suspect["id"] in training for suspect in suspects)
    assert all(suspect["better"] != suspect["labels"] for suspect in suspects)
    assert re.fullmatch(
        r"Checked 278 documents: other labels fit \d+ of them better\. "
        r"0 could not be checked, because no other document has one of their labels\.\n",
        err,
    )


def test_audit_of_another_part(folder, tmp_path):
    """The test part is read only if --split says so; documents alone with a label are counted."""
    corpus = tmp_path / "small.jsonl"
    texts = [("goal match", "sport"), ("goal", "sport"), ("orbit", "space")]
    rows = [{"text": text, "labels": [label], "split": "test"} for text, label in texts]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))

    out, err = run("audit", corpus, "--split", "test")

    assert out == ""
    assert "Checked 2 documents: other labels fit 0 of them better. 1 could not be" in err
    assert "no labelled document" in run("audit", corpus, code=1)[1]


def test_labels(folder):
    """All labels, or the words of one."""
    every = lines(run("labels", folder / "news.model")[0])
    (one,) = lines(run("labels", folder / "news.model", "sport/football", "-k", 3)[0])

    assert len(every) == 20
    assert one["parent"] == "sport"
    assert len(one["words"]) == 3
    assert one["words"][0]["weight"] >= one["words"][1]["weight"] > 0
    (mixed,) = lines(run("labels", folder / "mixture.model", "sport/football")[0])
    assert mixed["words"][0]["lift"] > 1
    assert "label 'golf' is not known" in run("labels", folder / "news.model", "golf", code=1)[1]


def test_info(folder):
    """A description of a model, without loading all of it."""
    (facts,) = lines(run("info", folder / "news.model")[0])
    (mixture,) = lines(run("info", folder / "mixture.model")[0])

    assert (facts["model"], facts["weights"]) == ("stack", "ltc")
    assert facts["chosen"]["members"][0]["C"] > 0
    assert facts["labels"] == 20
    assert facts["training"]["documents"] == 278
    assert facts["can_learn"] is False
    assert (mixture["model"], mixture["weights"]) == ("pmm1", None)
    assert mixture["chosen"]["temperature"] > 0
    assert mixture["can_learn"] is True


def test_tables_on_a_terminal(folder, tmp_path):
    """On a terminal the output is a table, and no text can control the terminal."""
    model = folder / "news.model"
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text(json.dumps({"id": "[/x]", "text": "a [/b] \x1b[31mgoal\x9b31m [red]match"}))

    explained = on_a_terminal("explain", model, "A \x1b[31mgoal\x1b[0m in the [red]match")
    suggested = on_a_terminal("suggest", model, hostile)

    assert "share" in explained
    assert "sport/football" in explained
    assert "[/x]" in suggested
    assert suggested.count("[/b]") == 1  # the heading, once
    assert "✓" in suggested
    for shown in (explained, suggested):
        assert "\x1b[31m" not in shown
        assert "\x9b" not in shown
    assert "weight" in on_a_terminal("labels", model, "sport/football")
    mixture = folder / "mixture.model"
    assert "lift" in on_a_terminal("labels", mixture, "sport/football")
    assert "culture/film" in on_a_terminal("labels", model)
    assert re.search(r"chosen +curves, intercept ", on_a_terminal("info", model))
    assert "samples_f1" in on_a_terminal("eval", model, folder / "news.jsonl.gz")
    audited = on_a_terminal("audit", folder / "news.jsonl.gz", "--model", "nb")
    assert "fits better" in audited
    assert "Checked 278 documents" in audited


def test_one_possible_label_is_valid_json(folder, tmp_path):
    """A label without alternatives has no margin: null, not Infinity."""
    text = json.dumps({"text": "The striker scored a goal."}).encode()
    run("train", folder / "news.jsonl.gz", "--to", tmp_path / "m", "--quality", "fast")

    out, _ = run("suggest", tmp_path / "m", "--include", "culture/film", stdin=text)

    assert "Infinity" not in out
    assert lines(out)[0]["suggestions"][0]["score"] is None


@pytest.mark.parametrize("end", ["interrupt", "reader gone", "failure"])
def test_a_stream_may_end_at_any_time(folder, end):
    """Ctrl-C, a reader that leaves, a failure, all while standard input is still open."""
    extra = ["--include", "nonsense"] if end == "failure" else []
    process = subprocess.Popen(
        [*POLYTOPIC, "suggest", str(folder / "news.model"), "--format", "text", *extra],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a background job of a shell inherits that interrupts are ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    process.stdin.write(b"The striker scored a goal.\n")
    process.stdin.flush()

    if end == "interrupt":
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
    elif end == "reader gone":
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"Another goal.\n")
        process.stdin.flush()

    assert process.wait(timeout=60) == (130 if end == "interrupt" else 1)
    err = process.stderr.read()
    assert b"Fatal" not in err
    assert b"Traceback" not in err
    process.stdin.close()


def test_explain_takes_bags_of_words(folder):
    """A JSON object is a document: a bag of words or fields."""
    bag = json.dumps({"counts": {"striker": 2, "goal": 1}})

    (explained,) = lines(run("explain", folder / "news.model", bag)[0])

    assert explained["labels"][0]["label"] == "sport/football"
    assert explained["places"] == []


def test_fields_have_weights(tmp_path):
    """A title may count more than a body."""
    table = tmp_path / "news.csv"
    table.write_text("title,body,labels\ngoal,goal,sport\n")
    train = "train", table, "--to", tmp_path / "m", "--text-column", "title,body"

    run(*train, "--field-weight", "title=3")
    counted = polytopic.load(tmp_path / "m").counts_.matrix.sum()

    assert counted == 4
    assert "must be like title=2" in run(*train, "--field-weight", "title", code=2)[1]


def test_a_rule_must_fit_its_model(folder):
    """A model that could never answer is not trained."""
    train = "train", folder / "news.jsonl.gz", "--to", folder / "x", "--rule", "world-model"

    assert "needs --model nb" in run(*train, code=2)[1]
    run(*train, "--model", "nb")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["cohort", "--ratio", "0.6", "--size", "5"], "UnconstrainedCohort(ratio=0.6, size=5)"),
        (["cohort", "--cohort", "best"], "UnconstrainedCohort(cohort='best')"),
        (["t-norm"], "TNorm()"),
        (["mean-plus-std"], "MeanPlusStd()"),
        (["tree-cohort", "--tree", "names", "--ratio", "0.5"], "TreeCohort(ratio=0.5)"),
        (["top-3"], "TopK(k=3)"),
    ],
)
def test_rules_for_a_model(folder, tmp_path, options, rule):
    """The rule is saved with the model."""
    run(
        "train",
        folder / "news.jsonl.gz",
        "--to",
        tmp_path / "m",
        "--model",
        "nb",
        "--rule",
        *options,
    )

    labeler = polytopic.load(tmp_path / "m")

    assert repr(labeler.rule) == rule
    assert labeler.predict(["The striker scored a goal."])[0]


def test_the_best_rule(folder, tmp_path):
    """It is chosen on held-out documents; then all documents are learned."""
    train = "train", folder / "news.jsonl.gz", "--to", tmp_path / "m", "--rule", "auto"

    _, err = run(*train, "--model", "nb", "--tree", "names")

    labeler = polytopic.load(tmp_path / "m")
    match = re.search(
        r"Chose (\w+)\(.*\): samples F1 on 56 held-out documents is (0\.\d+) with the model's own "
        r"decision, and (0\.\d+) with \1\(",
        err,
    )
    assert float(match[3]) > float(match[2])
    assert "Learned 278 documents" in err
    assert type(labeler.rule).__name__ in err
    assert run(*train)[1].startswith("Chose ")  # a rule, or the model's own decision


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--rule", "tree-cohort"], "--rule tree-cohort needs --tree"),
        (["--rule", "top-2", "--guarantee", "recall=0.9"], "both decide the labels; use one of"),
        (["--guarantee", "recall=1"], "recall=1 must be recall=NUMBER"),
        (["--guarantee", "precision=0.9"], "precision=0.9 must be recall=NUMBER"),
        (["--guarantee", "recall=high"], "recall=high must be recall=NUMBER"),
        (["--guarantee", "recall=.9", "--workers", "1"], "--guarantee works on one machine only"),
        (["--rule", "top-2", "--ratio", "0.5"], "--ratio is for cohort, t-norm"),
        (["--ratio", "0.5"], "--ratio is for cohort, t-norm"),
        (["--rule", "t-norm", "--size", "5"], "--size is for cohort"),
        (["--rule", "auto", "--cohort", "best"], "--cohort is for cohort"),
    ],
)
def test_options_of_other_rules(folder, options, sentence):
    """An option that the rule does not have is rejected."""
    train = "train", folder / "news.jsonl.gz", "--to", folder / "x"

    assert sentence in run(*train, *options, code=2)[1]


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        (
            "mml",
            ["--smoothing", "1"],
            f"--smoothing is for {join_names(models_with('smoothing'))}, not for mml.",
        ),
        ("mml", ["--prior", "uniform"], "--prior is for pmm1, pmm2 and pdmm, not"),
        ("nb", ["--decode", "f"], "--decode is for pmm1, pmm2 and pdmm, not for nb."),
        ("pmm1", ["--goal", "f"], "--goal is for mml and stack, not for pmm1."),
        (
            "nb",
            ["--keep-documents"],
            f"--keep-documents is for {join_names(model_names('documents'))}, not for nb.",
        ),
        ("mml", ["--rounds", "9"], "--rounds is for boostexter, not for mml."),
    ],
)
def test_options_must_fit_their_model(model, options, sentence):
    """An option for other models is rejected before anything is read."""
    train = "train", "none.jsonl", "--to", "none.model", "--model", model

    assert sentence in run(*train, *options, code=2)[1]


def test_options_of_mml(folder, tmp_path):
    """Its goal and cost are passed to the model, and stored documents let it learn."""
    train = "train", folder / "news.jsonl.gz", "--to", tmp_path / "m", "--goal", "exact"

    run(*train, "--model", "mml", "--C", "0.3", "--keep-documents")
    (facts,) = lines(run("info", tmp_path / "m")[0])

    assert (facts["parameters"]["goal"], facts["parameters"]["C"]) == ("exact", 0.3)
    assert facts["can_learn"] is True
    assert "C" not in facts["chosen"]
    assert polytopic.load(tmp_path / "m").documents_.X.shape[0] == 278


def test_suggest_abstains(folder):
    """A document without labels says so; it has suggestions all the same."""
    news, model = folder / "news.jsonl.gz", folder / "news.model"

    answers = lines(run("suggest", model, news, "--split", "test", "--abstain", 0.7)[0])
    shown = on_a_terminal("suggest", model, news, "--split", "test", "--abstain", 1)

    silent = [answer for answer in answers if answer.get("abstained")]
    assert 0 < len(silent) < len(answers)
    assert all(not a["labels"] and len(a["suggestions"]) == 5 for a in silent)
    assert all(a["labels"] for a in answers if a not in silent)
    assert "– abstained" in " ".join(shown.split())
    assert "is not in the range" in run("suggest", model, news, "--abstain", 2, code=2)[1]


def test_explain_with_the_shares_of_a_mixture(folder):
    """The mixture's shares next to the model's evidence; a whole breakdown without it."""
    text = "The striker came back after surgery; doctors at the hospital praised the patient."
    question = "explain", folder / "news.model", text, "--labels", "sport/football,health/medicine"

    own = lines(run(*question)[0])[0]
    shared = lines(run(*question, "--shares")[0])[0]
    mixed = lines(run("explain", folder / "mixture.model", *question[2:])[0])[0]

    shares = [{r["label"]: r["share"] for r in e["labels"]} for e in (shared, mixed)]
    assert shares[0] == pytest.approx(shares[1])
    assert shared["breakdown"] == own["breakdown"]
    assert (own["unit"], mixed["unit"]) == ("score", "nats")
    assert "evidence of the words" in on_a_terminal(*question)


def test_explain_with_a_given_mixture(folder, tmp_path):
    """Shares in the order of the labels; keywords in the order of the paper."""
    model = tmp_path / "pdmm.model"
    run("train", folder / "news.jsonl.gz", "--to", model, "--model", "pdmm")
    text = "The striker came back after surgery; doctors at the hospital praised the patient."
    labels = "--labels", "sport/football, health/medicine"

    own, given, paper = (
        lines(run("explain", model, text, *labels, *options)[0])[0]
        for options in ((), ("--mixture", "3, 1"), ("--order", "paper"))
    )

    assert [(r["label"], r["share"]) for r in given["labels"]] == [
        ("sport/football", 0.75),
        ("health/medicine", 0.25),
    ]
    assert given["keywords"] != own["keywords"]
    entropies = [word["entropy"] for word in paper["keywords"]]
    assert entropies == sorted(entropies, reverse=True)
    assert len(entropies) >= len(own["keywords"])
    assert "--mixture needs --labels" in run("explain", model, text, "--mixture", "1", code=2)[1]
    wrong = run("explain", model, text, *labels, "--mixture", "a,b", code=2)[1]
    assert "--mixture a,b must be numbers separated by commas, such as 0.7,0.3" in wrong
    other = run("explain", folder / "news.model", text, *labels, "--mixture", "1,1", code=1)[1]
    assert "--model pdmm" in other


def test_eval_stays_with_the_test_part(tmp_path, folder):
    """A test part without labels is not replaced by training documents."""
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"text": "goal", "split": "test"}\n{"text": "goal", "labels": ["x"]}\n')

    assert "no labelled document" in run("eval", folder / "news.model", corpus, code=1)[1]


def test_csv_with_its_own_columns(tmp_path):
    """A spreadsheet with other column names and separators can be read as it is."""
    table = tmp_path / "news.csv"
    table.write_text(
        "Titel,Text,Themen\n"
        "Tor,Der Stürmer schoss ein Tor,Sport\n"
        '"Rakete","Die Rakete flog, ins All",Raumfahrt; Technik\n'
        "Motor,Ein Motor mit Getriebe,Technik\n"
    )
    columns = ("--text-column", "Titel,Text", "--labels-column", "Themen", "--label-separator", ";")

    run("train", table, "--to", tmp_path / "m", "--language", "de", *columns)
    out, _ = run("suggest", tmp_path / "m", table, *columns)

    learned = [["Sport"], ["Raumfahrt", "Technik"], ["Technik"]]
    assert [a["labels"] for a in lines(out)] == learned
    known = lines(run("labels", tmp_path / "m")[0])
    assert {r["label"]: r["documents"] for r in known} == {"Raumfahrt": 1, "Sport": 1, "Technik": 2}


def test_rounds(folder, tmp_path):
    """They set the number of rules of boostexter."""
    train = "train", folder / "news.jsonl.gz", "--to", tmp_path / "m", "--model", "boostexter"

    run(*train, "--rounds", "7")

    (facts,) = lines(run("info", tmp_path / "m")[0])
    assert facts["parameters"]["n_rounds"] == 7


@pytest.mark.parametrize("model", ["nb", "mml"])
def test_a_broken_line(tmp_path, model):
    """It stops the command with file, line and reason, or is skipped and reported."""
    corpus = tmp_path / "news.jsonl"
    good = json.dumps({"text": "goal match", "labels": ["sport"]})
    corpus.write_text(f'{good}\n{{"text": "goal", "labels": ["sport"\n{good}\n')
    train = ("train", corpus, "--to", tmp_path / "m", "--model", model)

    _, err = run(*train, code=1)
    assert "news.jsonl, line 2: not valid JSON" in err
    assert not (tmp_path / "m").exists()

    _, err = run(*train, "--on-error", "skip")
    assert "skipped: " in err
    assert "line 2" in err
    assert "1 lines were skipped" in err
    assert "Learned 2 documents" in err


def test_a_bad_date_is_a_warning(tmp_path):
    """The document is learned all the same, and the warning is one line."""
    corpus = tmp_path / "news.jsonl"
    corpus.write_text('{"text": "goal", "labels": ["sport"], "time": "2022-02-29"}\n')

    _, err = run("train", corpus, "--to", tmp_path / "m")

    assert "warning: " in err.splitlines()[0]
    assert "line 1: time == '2022-02-29'" in err
    assert "Learned 1 documents" in err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["train", "{f}/none.jsonl", "--to", "{f}/m"], 1, "does not exist"),
        (["train", "{f}/empty.jsonl", "--to", "{f}/m"], 1, "no labelled document"),
        (["train", "{f}/bytes.jsonl", "--to", "{f}/m"], 1, "line 1: not valid UTF-8"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/no/m"], 1, "no' does not exist"),
        (["train", "{f}/ok.jsonl"], 2, "Missing option '--to'"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/m", "--language", "xx"], 1, "language == 'xx'"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/m", "--C", "-1"], 2, "--C -1, must be"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/m", "--C", "x"], 2, "--C x, must be"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/m", "--min-df", "9"], 1, "min_df == 9"),
        (["train", "{f}/ok.jsonl", "--to", "{f}/m", "--tree", "{f}/none.tsv"], 1, "does not exist"),
        (["suggest", "{f}/none.model"], 1, "does not exist"),
        (["suggest", "{f}/ok.jsonl"], 1, "is not a polytopic model file"),
        (["explain", "{f}/ok.model", "--labels", "golf", "x"], 1, "label 'golf' is not known"),
        (["explain", "{f}/ok.model", "--labels", "", "x"], 1, "labels is empty, must have"),
        (["eval", "{f}/ok.model", "{f}/empty.jsonl"], 1, "no labelled document to evaluate on"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_failures_are_one_sentence(tmp_path, arguments, code, sentence):
    """The exit codes of the manual, one sentence on stderr, never a traceback."""
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bytes.jsonl").write_bytes(b'{"text": "\xff\xfe", "labels": ["a"]}\n')
    (tmp_path / "ok.jsonl").write_text('{"text": "goal", "labels": ["sport"]}\n')
    if any("ok.model" in a for a in arguments):
        run("train", tmp_path / "ok.jsonl", "--to", tmp_path / "ok.model")

    out, err = run(*(a.format(f=tmp_path) for a in arguments), code=code)

    assert sentence in err
    assert out == ""


@pytest.mark.long
def test_a_line_of_50_mb(tmp_path):
    """A huge document is labelled like any other."""
    corpus = tmp_path / "news.jsonl.gz"
    line = json.dumps({"text": "goal match striker " * 2_700_000, "labels": ["sport"]})
    with gzip.open(corpus, "wt", compresslevel=1) as file:
        file.write(line + "\n" + '{"text": "orbit", "labels": ["space"]}\n')

    run("train", corpus, "--to", tmp_path / "m")
    out, _ = run("suggest", tmp_path / "m", corpus)

    assert [a["labels"] for a in lines(out)] == [["sport"], ["space"]]


def test_a_reader_that_leaves(folder):
    """A closed pipe, as after head, is not an error."""
    process = subprocess.Popen(
        [*POLYTOPIC, "suggest", str(folder / "news.model"), str(folder / "news.jsonl.gz")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    process.stdout.close()

    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 1


def test_help_is_fast():
    """Neither NumPy nor any other heavy library is loaded to show the help."""
    code = (
        "import sys, polytopic.cli\n"
        "polytopic.cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)

    assert done.returncode == 0, done.stderr.decode()
    assert b"train" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    """The help of each command says what it does and what its options mean."""
    out, _ = run(command, "--help")

    assert f"Usage: polytopic {command}" in out
    described = out[out.index("Usage") : out.index("Options:")].split("\n\n")[1:]
    assert len(" ".join(described).split()) > 8
    assert "-h, --help" in out


def test_compile_takes_names_of_models():
    """Each model is reported with its time; an unknown one is rejected."""
    _, messages = run("compile", "nb")
    assert re.fullmatch(r"nb: [0-9.]+ s\n", messages)
    assert "'tree' is not one of" in run("compile", "tree", code=2)[1]


def test_version():
    """The version is the package's."""
    assert run("--version")[0].strip() == f"polytopic, version {polytopic.__version__}"


def test_an_interrupt_in_a_callback_of_the_compiler_is_not_lost():
    """Python drops what a C callback raises; the command is interrupted all the same."""
    program = """
import ctypes, os, signal, time
import polytopic.cli.info
from polytopic.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)

def compile(**_):
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))()
    for _ in range(200):
        time.sleep(0.1)

polytopic.cli.info.command.callback = compile
main(["info", "model"])
"""
    command = [sys.executable, "-c", program]

    done = subprocess.run(command, capture_output=True, text=True, timeout=15)

    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_train_with_a_guarantee(folder):
    """The promise is in the file, and kept."""
    train = "train", folder / "news.jsonl.gz", "--to", folder / "promise.model"
    run(*train, "--model", "svm", "--guarantee", "recall=0.9")

    measures = lines(run("eval", folder / "promise.model", folder / "news.jsonl.gz")[0])[0]

    assert measures["samples_recall"] > 0.85


def test_train_with_a_quality(folder):
    """It stands for a model, and options of this model apply."""
    corpus, target = folder / "news.jsonl.gz", folder / "best.model"

    run("train", corpus, "--to", target, "--quality", "best", "--goal", "macro")
    _, errors = run("train", corpus, "--to", target, "--quality", "best", "--model", "nb", code=2)

    model = polytopic.load(target).model_
    assert [member.name for member in model.members_] == ["mml", "svm", "knn", "forest"]
    assert model.goal == "macro"
    assert "--quality best stands for a model; leave out --model nb, or --quality." in errors


def test_train_with_features(folder, tmp_path):
    """N-grams stand beside the words, and are in the file."""
    corpus, target = folder / "news.jsonl.gz", tmp_path / "m"
    train = "train", corpus, "--to", target, "--model", "svm", "--max-terms", "200"

    run(*train, "--features", "characters", "--features", "words")

    labeler = polytopic.load(target)
    assert {block.name for block in labeler.features_} <= {"CharacterNGrams", "WordNGrams"}
    assert labeler.features_
    assert labeler.predict(["a goal in the match"]) != [[]]


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (["--features", "a/b/c"], 2, "only models by their published name can be used here"),
        (["--features", "words", "--keep-documents"], 2, "keeps word counts, not texts"),
        (["--features", "words", "--model", "pmm1"], 1, "cannot use features"),
    ],
)
def test_features_that_do_not_work(folder, tmp_path, options, code, error):
    """The error says why."""
    train = "train", folder / "news.jsonl.gz", "--to", tmp_path / "m"

    _, errors = run(*train, *options, code=code)

    assert error in " ".join(errors.split())
