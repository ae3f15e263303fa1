"""Topics of documents: what models assign to them, and finding documents by them."""

import json
import random
import sqlite3
from itertools import pairwise

import pytest
from sqlalchemy import create_engine

from polytopic import Document, Labeler, LabelTree, load
from polytopic.decision import UnconstrainedCohort
from polytopic.errors import StoreError
from polytopic.store import Store
from tests.store.plain import WORDS, open_store
from tests.store.test_traces import traces

TREE = LabelTree({"football": "sport", "tennis": "sport"}, names={"sport": "Sport"})
LABELLED = [
    Document("1", "goal match goal", labels=["football"], time="2026-11-01"),
    Document("2", "mars orbit rover", labels=["space"], time="2026-11-02"),
    Document("3", "racket serve match", labels=["tennis"], time="2026-11-03"),
]
NEW = [
    Document("4", "goal goal match", time="2026-11-04"),
    Document("5", "orbit", time="2026-11-05"),
]


def ids(page):
    """Return the ids of the documents of a page."""
    return [match.id for match in page]


@pytest.fixture
def store(url):
    """Return a store with labelled and unlabelled documents, all of which have topics."""
    with open_store(url, tree=TREE, model="nb", keep_texts=True) as store:
        store.learn([*LABELLED, *NEW])
        assert store.assign() == 5
        yield store


def test_every_document_gets_topics(store):
    """An unlabelled document is found by what a model assigned, others by their own labels."""
    (match,) = store.find(topic="football", since="2026-11-04")

    assert (match.id, match.labels, match.content) == ("4", [], "goal goal match")
    assert [topic.label for topic in match.topics] == ["football"]
    answer = store.labeler().suggest([match.content])[0][0]
    assert match.topics[0].score == pytest.approx(answer.score, abs=1e-5)
    assert match.topics[0].probability == pytest.approx(answer.probability, abs=1e-5)
    assert (match.model, match.revision, match.known) == (None, 1, 1.0)
    assert ids(store.find(topic="space")) == ["5", "2"]
    assert store.find(topic="space")[1].labels == ["space"]
    assert store.assign() == 0
    assert store.info()["assigned"] == 5
    assert store.verify().problems == []


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({}, "54321"),
        ({"topic": "sport"}, "431"),
        ({"topic": "Sport"}, "431"),
        ({"topic": ["tennis", "space"]}, "532"),
        ({"topic": "nothing"}, ""),
        ({"since": "2026-11-03"}, "543"),
        ({"until": "2026-11-03"}, "21"),
        ({"since": "2026-11-02", "until": "2026-11-04", "topic": "sport"}, "3"),
        ({"topic": "football", "min_probability": 1}, "1"),
        ({"text": "match"}, "431"),
        ({"text": "GOAL match"}, "41"),
        ({"text": "match orbit"}, ""),
        ({"text": "match", "topic": "tennis"}, "3"),
    ],
)
def test_criteria(store, criteria, expected):
    """All criteria must hold; a topic includes those below it; the newest document comes first."""
    assert "".join(ids(store.find(**criteria))) == expected


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ({"k": 0}, "k == 0"),
        ({"min_probability": 0.5}, "give a topic"),
        ({"topic": "space", "min_probability": 2}, "min_probability == 2"),
        ({"since": "yesterday"}, "since == 'yesterday'"),
        ({"text": "…"}, "has no word"),
        ({"after": "5"}, "after == '5'"),
        ({"after": "2026~x"}, "after == '2026~x'"),
    ],
)
def test_invalid_criteria(store, criteria, reason):
    """An invalid value is named."""
    with pytest.raises(ValueError, match=reason):
        store.find(**criteria)


def slow_find(documents, topics, since, until, words):
    """Return the ids that meet the criteria, one document after the other."""
    return {
        document.id
        for document in documents
        if (topics is None or topics & set(document.labels))
        and (since is None or document.time.isoformat() >= since)
        and (until is None or document.time.isoformat() < until)
        and (words is None or set(words.split()) <= set(document.text.split()))
    }


def test_pages_equal_a_slow_search(url):
    """Whatever the criteria, the pages together have each document once, by time."""
    rng, labels = random.Random(0), [f"label{k}" for k in range(60)]
    documents = [
        Document(
            str(k),
            " ".join(rng.choices(["aa", "bb", "cc", "dd", "ee"], k=3)),
            labels=rng.sample(labels, 3),
            time=f"2026-11-{rng.randrange(1, 28):02d}",
        )
        for k in range(150)
    ]
    with open_store(url) as store:
        store.learn(documents)
        for _ in range(40):
            topics = rng.choice([None, {"label1"}, set(labels[:4]), set(labels[:55])])
            since = rng.choice([None, "2026-11-10"])
            until = rng.choice([None, "2026-11-20"])
            words = rng.choice([None, "aa", "bb cc", "dd", "ee ff"])
            found, after = [], None
            while True:
                page = store.find(
                    topic=topics, since=since, until=until, text=words, k=7, after=after
                )
                found += page
                after = page.next
                if after is None:
                    break

            assert len(ids(found)) == len(set(ids(found)))
            assert set(ids(found)) == slow_find(documents, topics, since, until, words)
            assert all(one.time >= two.time for one, two in pairwise(found))


def test_changes_change_topics(store):
    """Relabelling and forgetting show at once; other words make topics outdated."""
    store.find(text="goal")  # creates the index
    store.relabel({"4": ["space"], "1": []})
    assert ids(store.find(topic="space")) == ["5", "4", "2"]
    assert ids(store.find(topic="football")) == ["1"]

    store.learn([Document("5", "racket serve", time="2026-11-06")])
    assert ids(store.find(topic="space")) == ["4", "2"]
    assert ids(store.find(text="orbit")) == ["2"]
    assert ids(store.find(text="racket")) == ["5", "3"]
    assert store.find()[0].topics == []
    assert store.assign() == 1
    assert ids(store.find(topic="tennis")) == ["5", "3"]
    assert len(store.assignments("5")) == 2

    store.forget(["5", "2"])
    assert ids(store.find(topic=["space", "tennis"])) == ["4", "3"]
    assert ids(store.find(text="racket")) == ["3"]
    assert store.assignments("5") == []
    assert store.verify().problems == []


def test_a_published_model_assigns_again(store):
    """Each document gets topics from it; former ones are kept where labels differ."""
    store.learn([Document(f"m{k}", "orbit goal", labels=["moon"]) for k in range(9)])
    assert store.assign() == 9
    number = store.publish()

    assert store.assign(limit=1) == 14

    newest, former = store.assignments("5")
    assert ([t.label for t in newest.topics], newest.model) == (["moon"], number)
    assert ([t.label for t in former.topics], former.model) == (["space"], None)
    assert (newest.replaced, former.replaced) == (None, newest.time)
    assert len(store.assignments("3")) == 1
    assert store.find(topic="moon", since="2026-11-05", until="2026-11-06")[0].id == "5"
    assert store.assign() == 0
    assert store.publish() == number + 1
    assert store.assign() == 14
    assert store.verify().problems == []


def test_topics_of_another_model_are_not_written(store, monkeypatch):
    """If a model is published, or a document forgotten, meanwhile, nothing old is written."""
    number, labeler = store.publish(), store.labeler()
    store.publish(model="pmm1")
    assert store.assign(labeler) == 5  # it is that of the caller, for the current number
    store.learn([Document("6", "rover", labels=["space"])])
    published = store.publish()
    labeler = store.labeler()
    store.forget(["6"])

    assert store.assign(labeler) == 0
    assert store.assign() == 5
    assert {match.model for match in store.find()} == {published}
    assert number < published


def test_a_model_that_saw_a_forgotten_document_is_outdated(store):
    """After a document of the model was forgotten, all others get topics again."""
    store.publish()
    store.assign()

    store.forget(["1"])

    assert store.assign() == 4
    assert store.assign() == 0


def test_no_trace_is_left(path):
    """Neither an assigned label that only a forgotten document had, nor its words, are left."""
    with open_store(path, keep_texts=True) as store:
        store.learn([*LABELLED, Document("secret-id", "unheard xylophone", labels=["private"])])
        store.learn([Document("7", "xylophones unheard", time="2026-11-07")])
        store.assign()
        assert ids(store.find(topic="private")) == ["7", "secret-id"] or ids(
            store.find(topic="private")
        ) == ["secret-id", "7"]
        store.find(text="match")

        store.forget(["secret-id", "7"])

        assert traces(path, ["secret-id", "unheard", "xylophone", "private"]) == []
        assert ids(store.find(text="match")) == ["3", "1"]


def test_a_label_that_is_gone_is_not_assigned(store):
    """If the last document of a label is forgotten, the label is taken from all others."""
    assert ids(store.find(topic="space")) == ["5", "2"]

    store.forget(["2"])

    assert ids(store.find(topic="space")) == []
    assert store.assignments("5") == []
    assert store.assign() == 1


def test_counts(store):
    """Documents are counted by topic and period; others with their own labels."""
    counts = store.count_topics()

    assert counts.starts == [f"2026-11-0{k}" for k in range(1, 6)]
    assert counts.documents == [1] * 5
    assert counts.labels == {
        "football": [1, 0, 0, 1, 0],
        "space": [0, 1, 0, 0, 1],
        "tennis": [0, 0, 1, 0, 0],
    }
    monthly = store.count_topics(by="month", topic="sport", min_probability=1)
    assert (monthly.starts, monthly.documents) == (["2026-11-01"], [5])
    assert monthly.labels == {"football": [1], "tennis": [1]}
    assert store.count_topics(since="2027-01-01").starts == []


def test_merge_and_import(store, new_path):
    """Other stores get the documents, and assign topics themselves."""
    with open_store(new_path()) as other:
        other.merge(store)

        assert ids(other.find()) == ["5", "4", "3", "2", "1"]
        assert ids(other.find(topic="space")) == ["2"]
        assert other.assign() == 5
        assert other.verify().problems == []


def downgrade(url, number):
    """Make a store one of an earlier schema, which has no topics."""
    engine = create_engine(f"sqlite:///{url}" if "://" not in str(url) else url)
    with engine.begin() as connection:
        for statement in (
            "DROP TABLE polytopic_assignments",
            "DROP TABLE polytopic_topics",
            "DROP TABLE polytopic_articles",
            "DROP TABLE polytopic_visits",
            "DELETE FROM polytopic_seals WHERE name IN ('assignments', 'articles')",
            f"UPDATE polytopic_settings SET value = '{number}' WHERE name = 'schema'",  # noqa: S608
            "DELETE FROM polytopic_settings WHERE name = 'rule'",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.parametrize("number", [1, 2])
def test_stores_of_earlier_schemas_are_upgraded(url, number):
    """Opening one adds its topics; it verifies, and earlier releases refuse it."""
    with open_store(url, tree=TREE) as store:
        store.learn([*LABELLED, *NEW, Document("6", "orbit", labels=["space"])])
        store.relabel({"6": ["tennis"]})
        before = store.digest
    downgrade(url, number)

    with Store(url, create=False) as store:
        assert ids(store.find(topic="sport", until="2026-11-10")) == ["3", "1"]
        assert ids(store.find(topic="tennis")) == ["6", "3"]
        assert (store.rule, store.digest, store.info()["schema"]) == (None, before, 3)
        settings = [p for p in store.verify().problems if "settings" not in p]
        assert settings == []
        assert store.assign() == 6
    with Store(url, create=False) as store:
        assert len(store.find()) == 6


def test_an_upgrade_keeps_seals(path):
    """What something else has changed before the upgrade is still found after it."""
    with open_store(path) as store:
        store.learn(LABELLED)
    downgrade(path, 2)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE polytopic_documents SET time = '2024-01-01' WHERE document = '1'")
    connection.commit()
    connection.close()

    with Store(path) as store:
        assert any("a document was changed" in problem for problem in store.verify().problems)


# Rules


def many(n_docs):
    """Return documents with one or two labels that words tell apart."""
    rng, labels = random.Random(1), [f"topic{letter}" for letter in "abcdef"]
    documents = []
    for k in range(n_docs):
        own = rng.sample(labels, 1 + k % 2)
        words = [label + rng.choice("uvwxyz") for label in own for _ in range(12)]
        documents.append(Document(str(k), " ".join(words), labels=own))
    return documents


@pytest.mark.parametrize("model", ["nb", "mml"])
def test_a_rule_is_tuned_stored_and_kept(new_path, model):
    """A published rule decides several labels, is read again, and a refresh keeps it."""
    url = new_path()
    with open_store(url, model=model) as store:
        store.learn(many(120))
        store.publish(rule="cohort", note="with a rule")
        rule = store.current().rule
        assert isinstance(rule, UnconstrainedCohort)
        text = "topicbu topicbv topicbw topiceu topicev topicew " * 4
        assert store.labeler().predict([text]) == [["topicb", "topice"]]

        store.learn([Document("new", "fresh words here", labels=["fresh"])])
        number = store.refresh()

        assert repr(store.current().rule) == repr(rule)
        assert store.labeler().predict(["fresh words here"]) == [["fresh"]]
        assert store.history()[0].id == number


def test_the_rule_of_a_store(new_path):
    """A store with a rule tunes it for every model that it fits, unless another is given."""
    with open_store(new_path(), model="nb", rule="cohort") as store:
        store.learn(many(120))

        assert isinstance(store.fit().rule, UnconstrainedCohort)
        assert isinstance(store.labeler().rule, UnconstrainedCohort)
        assert repr(store.fit(rule="t-norm").rule).startswith("TNorm")
        assert store.fit(guarantee={"recall": 0.5}).rule is None
        assert store.info()["rule"] == "cohort"


def test_auto_keeps_the_models_own_decision(new_path):
    """For a mixture, which decides well itself, no rule is better; naive Bayes needs one."""
    with open_store(new_path()) as store:
        store.learn(many(200))

        assert store.fit("nb", rule="auto").rule is not None
        assert store.fit("pmm1", rule="auto").rule is None


def test_rules_that_cannot_be_used(new_path):
    """A rule must exist, and the model must have what it needs."""
    with pytest.raises(ValueError, match="rule == 'best', must be one of auto, "):
        Store(new_path(), rule="best")
    with pytest.raises(ValueError, match="WorldModel needs a model of the whole corpus"):
        Store(new_path(), model="pmm1", rule="world-model")
    with open_store(new_path(), model="nb") as store:
        store.learn(many(30))
        with pytest.raises(ValueError, match="TreeCohort needs the tree"):
            store.publish(rule="tree-cohort")


def test_rules_of_few_documents_are_not_tuned(new_path):
    """With too few documents to hold some out, a rule keeps its parameters."""
    with open_store(new_path(), model="nb", rule="cohort") as store:
        store.learn(many(10))

        assert repr(store.fit().rule) == repr(UnconstrainedCohort())


def test_matches_as_json(store):
    """A match is plain JSON, with the text or the fields."""
    store.learn([Document("6", fields={"title": "goal", "body": "match"}, time="2026-12-01")])

    first, second = store.find(k=2)

    assert json.loads(json.dumps(first.to_dict()))["fields"] == {"title": "goal", "body": "match"}
    assert second.to_dict()["text"] == "orbit"
    assert WORDS.terms("orbit") == ["orbit"]


# Models that were fitted elsewhere


@pytest.mark.parametrize("model", ["nb", "mml"])
def test_a_published_file_learns(new_path, model, tmp_path):
    """It is fitted on its own documents and those learned since, and is refreshed like others."""
    with open_store(new_path()) as store:
        store.learn([Document("before", "never counted", labels=["before"])])
        own = many(60)
        labeler = Labeler(model, analyzer=WORDS, rule=UnconstrainedCohort(ratio=0.6)).fit(own)
        labeler.save(tmp_path / "x.model")
        first = store.publish(load(tmp_path / "x.model"))
        assert store.labeler().classes_.tolist() == labeler.classes_.tolist()
        assert store.refresh() is None
        fresh = [Document(f"f{k}", "fresh words here", labels=["fresh"]) for k in range(5)]
        store.learn(fresh)

        numbers = [store.refresh(keep=1), store.refresh(keep=1)]

        assert numbers == [first + 1, None]
        expected = Labeler(model, analyzer=WORDS).fit([*own, *fresh])
        refreshed = store.labeler()
        assert refreshed.classes_.tolist() == expected.classes_.tolist()
        assert refreshed.counts_ == expected.counts_
        assert repr(refreshed.rule) == repr(labeler.rule)
        assert refreshed.predict(["fresh words here"]) == [["fresh"]]
        assert [one.id for one in store.history()] == [first + 1, first]
        store.relabel({"f0": ["other"]})
        store.refresh(keep=1)
        assert store.labeler().counts_.n_docs == 65
        assert store.verify().problems == []
        store.forget(["f1"])
        with pytest.raises(StoreError, match="not fitted on this store alone"):
            store.labeler()


def test_a_published_file_that_cannot_learn(new_path, tmp_path):
    """Without counts, or with another analyzer, it answers as it was published."""
    with open_store(new_path()) as store:
        Labeler("nb", analyzer=WORDS).fit(many(30)).save(tmp_path / "x.model", counts=False)
        store.publish(load(tmp_path / "x.model"))
        store.publish(Labeler("nb").fit(many(30)))

        store.learn([Document("f", "fresh words here", labels=["fresh"])])

        assert store.refresh() is None
        assert "fresh" not in store.labeler().classes_.tolist()
        store.rollback()
        assert store.refresh() is None
