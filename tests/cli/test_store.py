"""The commands on stores, on a real SQLite file."""

import json

import pytest

from polytopic import Labeler, Store
from polytopic.cli.store import command as store_group
from polytopic.corpus import load_sample, write_documents
from tests.cli.processes import on_a_terminal, run_polytopic


def run(*arguments, stdin="", code=0):
    """Run the command; return its parsed output and its messages."""
    done = run_polytopic(*arguments, stdin=stdin.encode())
    assert done.returncode == code, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    return [json.loads(line) for line in lines], done.stderr.decode()


@pytest.fixture
def store(tmp_path):
    """Return the path of a store with the sample."""
    write_documents(load_sample(), tmp_path / "news.jsonl")
    run("store", "init", tmp_path / "news.db")
    run("store", "learn", tmp_path / "news.db", tmp_path / "news.jsonl", "--batch", 200)
    return tmp_path / "news.db"


def test_learning_again_changes_nothing(store, tmp_path):
    """Each batch gives a receipt, and the same documents are unchanged."""
    receipts, _ = run("store", "learn", store, tmp_path / "news.jsonl", "--batch", 200)

    assert [receipt["unchanged"] for receipt in receipts] == [200, 148]
    assert [receipt["learned"] for receipt in receipts] == [0, 0]
    assert {receipt["revision_after"] for receipt in receipts} == {2}


def test_a_stream(store):
    """Standard input is learned, and wrong lines are reported."""
    line = json.dumps({"id": "new", "text": "Rye and oats.", "labels": ["grain"]})

    receipts, _ = run("store", "learn", store, stdin=f"{line}\n")

    assert receipts[-1]["new_labels"] == ["grain"]
    _, message = run("store", "learn", store, stdin="{", code=1)
    assert "line 1" in message


def test_every_document_needs_an_id(store, tmp_path):
    """A line number is not an id: it would mean another document in every file."""
    before = Store(store).revision
    (tmp_path / "more.jsonl").write_text('{"text": "Rye and oats.", "labels": ["grain"]}\n')

    _, message = run("store", "learn", store, tmp_path / "more.jsonl", code=1)

    assert "line 1: id == None, must be" in message
    assert Store(store).revision == before


def test_correcting_and_forgetting(store):
    """Relabel, then forget; the digest is the former one when the document is learned again."""
    document = next(Store(store).documents())
    before = Store(store).digest

    (relabelled,), _ = run("store", "relabel", store, document.id, "rye")
    (forgotten,), _ = run("store", "forget", store, document.id, "nobody")

    assert (relabelled["corrected"], relabelled["new_labels"]) == (1, ["rye"])
    assert (forgotten["forgotten"], forgotten["missing"]) == (1, ["nobody"])
    assert forgotten["digest_after"] != before
    (back,), _ = run("store", "learn", store, stdin=json.dumps(document.to_dict()))
    assert back["digest_after"] == before
    (verified,), _ = run("store", "verify", store)
    assert (verified["ok"], verified["digest"]) == (True, before)


def test_many_at_once(store, tmp_path):
    """Labels and ids come from files."""
    names = [document.id for document in load_sample()[:3]]
    lines = "".join(json.dumps({"id": name, "labels": ["x"]}) + "\n" for name in names)

    (receipt,), _ = run("store", "relabel", store, "--from", "-", stdin=lines)
    assert receipt["corrected"] == 3

    (tmp_path / "ids").write_text("\n".join(names) + "\n\n")
    (receipt,), _ = run("store", "forget", store, "--from", tmp_path / "ids")
    assert (receipt["forgotten"], receipt["gone_labels"]) == (3, ["x"])


def test_counts_of_a_moment(store):
    """The table is that of a revision, with the number of documents forgotten since."""
    rows, message = run("store", "counts", store, "--as-of", "1")
    assert sum(row["documents"] for row in rows) == 200
    assert message == "Revision 1: 200 documents.\n"

    run("store", "forget", store, load_sample()[0].id)
    rows, message = run("store", "counts", store, "--as-of", "1")
    assert sum(row["documents"] for row in rows) == 199
    assert message == "Revision 1: 199 documents; 1 more has since been forgotten.\n"
    table = Store(store).counts(as_of=1)
    assert rows[0]["counts"] == {
        table.terms[k]: n
        for k, n in zip(table.matrix[0].indices, table.matrix[0].data, strict=True)
    }


def test_models_of_a_store(store, tmp_path):
    """Publish, learn, refresh, roll back, and publish a model that was fitted elsewhere."""
    (first,), _ = run("store", "publish", store, "--fit", "nb", "--note", "first")
    assert (first["id"], first["name"], first["note"], first["current"]) == (1, "nb", "first", True)
    _, message = run("store", "refresh", store)
    assert message == "Nothing to refresh.\n"

    run("store", "forget", store, load_sample()[0].id)
    (second,), _ = run("store", "refresh", store)
    assert (second["id"], second["origin"]["revision"]) == (2, 3)
    _, message = run("store", "rollback", store, code=1)
    assert "model 1 has seen a document that has since been forgotten" in message

    Labeler("nb").fit(load_sample()).save(tmp_path / "nb.model")
    (third,), _ = run("store", "publish", store, tmp_path / "nb.model")
    assert third["origin"]["base"] == third["id"]
    (back,), _ = run("store", "rollback", store)
    assert back["id"] == 2
    models, _ = run("store", "history", store)
    assert [(m["id"], m["current"], m["marked"]) for m in models] == [
        (3, False, None),
        (2, True, None),
        (1, False, 3),
    ]
    (purged,), _ = run("store", "forget", store, load_sample()[1].id, "--purge")
    assert purged["purged_models"] == [1, 2, 3]


@pytest.mark.parametrize(
    "arguments",
    [
        ("suggest", "news.db", "news.jsonl"),
        ("explain", "news.db", "A football film"),
        ("eval", "news.db", "news.jsonl"),
        ("labels", "news.db"),
        ("map", "news.db"),
        ("info", "news.db"),
    ],
)
def test_a_store_is_a_model(store, monkeypatch, arguments):
    """Commands that take a model take a store, and use what it has learned."""
    monkeypatch.chdir(store.parent)

    lines, message = run(*arguments)

    assert lines
    assert message == ""
    if arguments[0] == "suggest":
        model = Store(store).labeler()
        expected = model.predict([document.text for document in load_sample()])
        assert [line["labels"] for line in lines] == expected


def test_a_model_after_a_rollback(store):
    """It draws its map; once a document is forgotten it answers without it, with a warning."""
    line = json.dumps({"id": "new", "text": "A xylophone.", "labels": ["private"]})
    run("store", "learn", store, stdin=f"{line}\n")
    run("store", "publish", store)
    run("store", "publish", store, "--fit", "nb")
    run("store", "rollback", store)
    (drawn,), message = run("map", store)
    assert "private" in json.dumps(drawn)
    assert not message

    run("store", "forget", store, "new")

    (drawn,), message = run("map", store)
    assert "private" not in json.dumps(drawn)
    assert "has seen a document that has since been forgotten" in message
    (fresh,), _ = run("store", "refresh", store)
    assert (fresh["id"], fresh["name"], fresh["marked"], fresh["current"]) == (
        3,
        "pmm1",
        None,
        True,
    )
    (drawn,), message = run("map", store)
    assert "private" not in json.dumps(drawn)
    assert not message


DAMAGED = [
    ["store", "verify"],
    ["store", "counts"],
    ["store", "drift"],
    ["store", "export"],
    ["store", "forget", "0"],
    ["map"],
    ["info"],
]


@pytest.mark.parametrize("command", DAMAGED, ids=" ".join)
def test_a_damaged_store(store, command):
    """Every command reports damaged pages in one sentence."""
    content = bytearray(store.read_bytes())
    for start in range(8 * 4096, len(content), 3 * 4096):
        content[start : start + 4096] = b"\x55" * 4096
    store.write_bytes(content)
    name, *rest = command
    call = [name, rest[0], store, *rest[1:]] if rest else [name, store]

    _, message = run(*call, code=1)

    assert message.startswith("Error: ")
    assert "damaged" in message
    assert "unexpected" not in message


def test_export_and_import(store, tmp_path):
    """An export makes a store with the same digest, and may be imported again."""
    run("store", "export", store, "--to", tmp_path / "news.export")
    lines, _ = run("store", "export", store)
    assert len(lines) == 350
    assert lines[-1] == {"polytopic_store_end": 348}

    receipts, _ = run("store", "import", tmp_path / "other.db", tmp_path / "news.export")
    assert receipts[-1]["digest_after"] == Store(store).digest
    receipts, _ = run("store", "import", store, tmp_path / "news.export")
    assert receipts[-1]["unchanged"] == 348
    cut = "".join(json.dumps(line) + "\n" for line in lines[:100])
    receipts, message = run("store", "import", tmp_path / "cut.db", "-", stdin=cut, code=1)
    assert receipts == []
    assert "the export is incomplete" in message
    (merged,), _ = run("store", "merge", tmp_path / "other.db", store)
    assert merged["unchanged"] == 348


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("learn", "none.db", "news.jsonl"),
            "'none.db' does not exist; create a store with polytopic store init",
        ),
        (("init", "news.db"), "'news.db' has a store already."),
        (("init", "no/such/folder.db"), "its folder must exist"),
        (("init", "mysql://x"), "must be a file, or begin with sqlite:///"),
        (("verify", "news.jsonl"), "is not an SQLite database."),
        (("forget", "news.db", "nobody"), "the store has none of these documents."),
        (("relabel", "news.db", "nobody", "x"), "the store has none of these documents."),
        (("counts", "news.db", "--as-of", "99"), "must be a revision from 0 to 2, or a time"),
        (("counts", "news.db", "--since", "soon"), "since == 'soon', must be an ISO 8601 time"),
        (("rollback", "news.db"), "no model is published"),
        (("import", "new.db", "news.jsonl"), "is not that of an exported store"),
    ],
)
def test_errors_are_one_sentence(store, monkeypatch, arguments, sentence):
    """One sentence, and the store is unchanged."""
    monkeypatch.chdir(store.parent)

    _, message = run("store", *arguments, code=1)

    assert sentence in message
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    assert Store(store).verify().ok
    assert Store(store).revision == 2


def test_on_a_terminal(store):
    """On a terminal the output is a table."""
    assert "No model is published." in on_a_terminal("store", "history", store)
    run("store", "publish", store)

    assert "most frequent words" in on_a_terminal("store", "counts", store, "-k", 2)
    assert "No problems found." in on_a_terminal("store", "verify", store)
    assert "pmm1" in on_a_terminal("store", "history", store)
    screen = on_a_terminal("store", "relabel", store, load_sample()[0].id, "rye")
    assert "new labels" in screen
    assert "rye" in screen
    assert "348" in on_a_terminal("info", store)


@pytest.mark.parametrize("command", list(store_group.commands))
def test_every_command_has_help(command):
    """Each command has a help text."""
    done = run_polytopic("store", command, "--help")

    assert done.returncode == 0
    assert f"Usage: polytopic store {command}" in done.stdout.decode()


def test_topics_of_documents(store):
    """Assigned topics are found, counted and selected by the command line."""
    lines = [
        {"id": f"new{k}", "text": "A striker scored a goal.", "time": "2030-01-01"} for k in (1, 2)
    ]
    run("store", "learn", store, stdin="".join(json.dumps(line) + "\n" for line in lines))
    _, message = run("store", "find", store, "--topic", "sport/football", "-k", 1)
    assert "350 documents have no topics from a model yet" in message

    _, message = run("store", "assign", store)

    assert "Assigned topics to 350 documents." in message
    found, message = run(
        "store",
        "find",
        store,
        "--topic",
        "sport/football",
        "--since",
        "2030-01-01",
        "--text",
        "goals",
    )
    assert [match["id"] for match in found] == ["new2", "new1"]
    assert found[0]["topics"][0]["label"] == "sport/football"
    assert message == ""
    rows, _ = run("store", "topics", store, "--since", "2030-01-01", "--topic", "sport/football")
    assert rows == [{"start": "2030-01-01", "topic": "sport/football", "documents": 2}]
    assert len(run("store", "find", store)[0]) == 350
    selected, _ = run("select", store, store, "--topic", "sport/football")
    assert {"new1", "new2"} < {document["id"] for document in selected}
    assert (
        "no parts"
        in run("select", store, store, "--topic", "sport/football", "--split", "a", code=2)[1]
    )


def test_a_rule_of_a_store(tmp_path):
    """A store with a rule tunes it; publishing with another one replaces it."""
    run("store", "init", tmp_path / "news.db", "--model", "nb", "--rule", "cohort")
    write_documents(load_sample(), tmp_path / "news.jsonl")
    run("store", "learn", tmp_path / "news.db", tmp_path / "news.jsonl")
    with Store(tmp_path / "news.db") as store:
        assert type(store.labeler().rule).__name__ == "UnconstrainedCohort"

    run("store", "publish", tmp_path / "news.db", "--rule", "t-norm")

    with Store(tmp_path / "news.db") as store:
        assert type(store.current().rule).__name__ == "TNorm"
    _, message = run(
        "store", "publish", tmp_path / "news.db", tmp_path / "x", "--rule", "t-norm", code=2
    )
    assert "MODEL is fitted already" in message
