"""Store: what each call does."""

import hashlib
import json
from datetime import UTC, datetime

import pytest

from polytopic import Document, LabelTree
from polytopic.errors import StoreError
from polytopic.store import Receipt, Store
from polytopic.store.tokens import new_token, token_digest
from polytopic.text import Analyzer
from tests.store.plain import model_bytes, open_store, table_of_documents

DOCUMENTS = [
    Document("1", "goal match goal", labels=["sport"]),
    Document("2", "mars orbit", labels=["space"], time="2024-05-31"),
    Document("3", "goal orbit rover", labels=["space", "sport"]),
    Document("4", "match rover"),
]


@pytest.fixture
def store(url):
    """Return a store of four documents."""
    with open_store(url) as new:
        new.learn(DOCUMENTS)
        yield new


def unchanged(store):
    """Return what must stay the same if nothing changes."""
    return store.revision, store.digest, [d.to_dict() for d in store.documents()]


# Receipts


def test_a_receipt_reports_every_change(store):
    """Each document is new, corrected, unchanged or gone; labels and terms come and go."""
    receipt = store.learn(
        [
            DOCUMENTS[0],  # already known
            Document("2", "mars orbit", labels=["space"], time="2024-06-01"),  # another time
            Document("3", "goal film", labels=["film"]),  # other words and labels
            Document("5", "star", labels=["film"]),  # new
        ]
    )

    values = receipt.to_dict()
    assert (values["action"], values["revision_before"], values["revision_after"]) == (
        "learn",
        1,
        2,
    )
    assert (receipt.learned, receipt.corrected, receipt.unchanged) == (1, 2, 1)
    assert (receipt.new_labels, receipt.gone_labels) == (["film"], [])
    assert (receipt.new_terms, receipt.gone_terms) == (2, 0)  # old versions are still there
    assert receipt.digest_before != receipt.digest_after == store.digest
    assert json.loads(json.dumps(values)) == values

    receipt = store.forget(["3", "5", "9", "5"])

    assert (receipt.action, receipt.forgotten, receipt.missing) == ("forget", 2, ["9"])
    assert (receipt.gone_labels, receipt.gone_terms) == (["film"], 2)  # film and star


def test_repeating_a_change_changes_nothing(store):
    """Learning, relabelling or forgetting again leaves the revision as it is."""
    before = unchanged(store)

    assert store.learn(DOCUMENTS).unchanged == 4
    assert not store.relabel({"1": ["sport"], "9": ["film"]}).changed
    assert not store.forget(["9"]).changed
    assert not store.learn([]).changed
    assert unchanged(store) == before


def test_the_last_of_several_counts(store):
    """Of documents with the same id in a batch, the last one is learned."""
    receipt = store.learn(
        [
            Document("5", "one", labels=["a"]),
            Document("5", "two", labels=["b"]),
            Document(5, "three", labels=["c"]),
        ]
    )

    assert (receipt.learned, receipt.new_labels, receipt.new_terms) == (1, ["c"], 1)
    assert store.counts().n_docs == 4


def test_documents_without_labels_are_not_counted(store):
    """They are stored, and counted once they have labels."""
    assert store.counts() == table_of_documents(DOCUMENTS[:3])

    receipt = store.relabel({"4": ["sport"]})

    expected = Document("4", "match rover", labels=["sport"])
    assert (receipt.corrected, receipt.new_terms) == (1, 0)
    assert store.counts() == table_of_documents([*DOCUMENTS[:3], expected])
    assert store.relabel({"4": []}).digest_after == receipt.digest_before


def test_mappings_are_documents(store):
    """Plain mappings are accepted as documents."""
    receipt = store.learn([{"id": 7, "text": "goal", "labels": ["sport"]}])

    assert receipt.learned == 1
    assert store.forget([7]).forgotten == 1


def test_a_store_persists(store, url):
    """After reopening, the present and past states are there."""
    store.forget(["1"])

    with Store(url, create=False) as again:
        assert again.revision == 2
        assert again.counts() == store.counts() == table_of_documents(DOCUMENTS[1:])
        then = again.counts(as_of=1)
        assert (then.n_docs, then.n_forgotten, then.revision) == (2, 1, 1)


def test_a_time_stands_for_a_revision(url):
    """As of a time means the last revision at that time."""
    with open_store(url) as store:
        first = store.learn(DOCUMENTS[:1])
        between = datetime.now(UTC)
        store.learn(DOCUMENTS[1:])

        assert store.counts(as_of=between).revision == 1
        assert store.counts(as_of=first.time) == table_of_documents(DOCUMENTS[:1])
        assert store.counts(as_of="1999-01-01").n_docs == 0
        assert store.counts(as_of=0).n_docs == 0
        assert store.counts(as_of="2999-01-01") == store.counts()


# What is rejected


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"counts": {"goal": 1, "late": 0.5}}, r"^document 'x' has a count of 0\.5, must be a "),
        ({"id": "i" * 501}, r"^ids contain 'i+' \(501 characters\); a store accepts at most 500"),
        ({"id": "nul\0"}, r"^ids contain 'nul\\x00' \(4 "),
        ({"id": "half \ud800"}, r"^ids contain 'half \\ud800' \(6 "),
        ({"labels": ["l" * 501]}, r"^labels contain 'l+' \(501 "),
        ({"labels": ["nul\0"]}, r"^labels contain 'nul"),
        ({"labels": ["\udfff"]}, r"^labels contain '\\udfff'"),
        ({"counts": {"t" * 501: 1}}, r"^terms contain 't+' \(501 "),
        ({"counts": {"nul\0": 1}}, r"^terms contain 'nul"),
        ({"counts": {"\ud800": 1}}, r"^terms contain '\\ud800'"),
        ({"counts": {"many": 2**53}}, r"^document 'x' has a count of 9\.0072e\+15, must be "),
    ],
)
def test_what_cannot_be_stored_is_rejected(store, document, sentence):
    """One sentence says what a store cannot hold, and nothing of the batch is learned."""
    before = unchanged(store)
    wrong = {"id": "x", "labels": ["sport"]} | document
    wrong = wrong if "counts" in wrong else wrong | {"text": "goal"}

    with pytest.raises(StoreError, match=sentence) as error:
        store.learn([Document("y", "fine", labels=["sport"]), wrong])

    assert str(error.value).endswith(("Nothing was changed.", "Nothing was learned."))
    assert "\n" not in str(error.value)
    assert unchanged(store) == before


def test_longest_names_are_stored(store):
    """Ids, labels and terms may have 500 characters, in any script."""
    long = "\U0001f600" * 500

    store.learn([Document(long, counts={long: 1}, labels=[long])])

    assert store.verify().ok
    assert [d.id for d in store.documents()][-1] == long
    assert store.forget([long]).gone_labels == [long]


def test_sums_stay_exact(store):
    """Counts that would add up to 2^53 are rejected; below, everything agrees."""
    many = [Document(str(k), counts={"many": 2**51}, labels=["a"]) for k in range(10, 13)]
    store.learn([*many, Document("13", counts={"many": 2**52}, labels=["b"])])
    before = unchanged(store)

    with pytest.raises(StoreError, match=r"a count would reach 2\^53 .* Nothing was changed\."):
        store.learn([Document("14", counts={"many": 2**51}, labels=["a"])])

    assert unchanged(store) == before
    assert store.verify().ok
    assert (
        store.counts() == store.counts(since="1999-01-01") == table_of_documents(store.documents())
    )


@pytest.mark.parametrize("name", ["nul\0", "half \ud800", "\udfff", "%s", "'; --", ""])
def test_impossible_ids_are_missing(store, name):
    """Forgetting or relabelling an id that no store can hold reports it as missing."""
    assert store.forget([name, "4"]).missing == [name]
    if name:
        assert store.relabel({name: ["sport"], "1": ["film"]}).missing == [name]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda store: store.relabel({"1": "sport"}), "labels == 'sport', must be a list of"),
        (lambda store: store.relabel({"1": [""]}), "must be a list of non-empty strings"),
        (lambda store: store.forget("1"), "ids == '1' is one string, must be a list of ids"),
        (lambda store: store.learn("goal"), "is one str, must be a list"),
        (lambda store: store.learn(DOCUMENTS[0]), "is one Document, must be a list"),
        (lambda store: store.learn([{"id": "1"}]), "text is missing"),
        (lambda store: store.counts(as_of=9), "as_of == 9, must be a revision from 0 to 1"),
        (lambda store: store.counts(as_of=-1), "as_of == -1, must be a revision"),
        (lambda store: store.counts(as_of="noon"), "as_of == 'noon', must be an ISO 8601"),
        (lambda store: store.counts(since="noon"), "since == 'noon', must be an ISO 8601"),
        (lambda store: store.counts(labels="sport"), "labels == 'sport' is one string"),
    ],
)
def test_wrong_arguments_are_named(store, call, sentence):
    """A wrong argument raises ValueError, names it, and changes nothing."""
    before = unchanged(store)

    with pytest.raises(ValueError, match=sentence):
        call(store)

    assert unchanged(store) == before


def test_labels_of_relabel_are_checked(store):
    """A label that cannot be stored is rejected there, too."""
    with pytest.raises(StoreError, match="labels contain"):
        store.relabel({"1": ["l" * 501]})

    assert store.revision == 1


# Settings


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"language": "de"},
            "has language == 'en', not 'de'; leave language out, or create a new store",
        ),
        ({"analyzer": Analyzer(None)}, "has analyzer == "),
        ({"fields": {"title": 3}}, r"has fields == \{'title': 2\}, not \{'title': 3\}"),
        ({"model": "nb"}, "has model == 'pmm2', not 'nb'"),
        ({"keep_texts": False}, "has keep_texts == True, not False"),
    ],
)
def test_settings_stay(url, given, sentence):
    """A store keeps its settings, and rejects others."""
    settings = {"language": "en", "fields": {"title": 2}, "model": "pmm2", "keep_texts": True}
    with Store(url, **settings) as store:
        assert (store.model, store.fields, store.keep_texts) == ("pmm2", {"title": 2}, True)

    with pytest.raises(StoreError, match=sentence):
        Store(url, **given)
    with Store(url, **settings) as again:
        assert again.analyzer == Analyzer("en")


@pytest.mark.parametrize(
    "settings", [{"fields": {"title": 1.5}}, {"model": "gpt"}, {"language": "xx"}]
)
def test_no_store_with_invalid_settings(path, settings):
    """Wrong settings are rejected, and leave no file behind."""
    with pytest.raises(ValueError, match=str(next(iter(settings)))):
        Store(path, **settings)

    assert not path.exists()


def test_fields_have_weights(url):
    """The words of a field count as often as its weight says."""
    with open_store(url, fields={"title": 3, "note": 0}) as store:
        fields = {"title": "goal", "body": "goal late", "note": "never"}
        store.learn([Document("1", fields=fields, labels=["sport"])])

        assert store.verify().ok
        assert store.counts().terms == ("goal", "late")
        assert store.counts().matrix.toarray().tolist() == [[4, 1]]


# Documents


@pytest.mark.parametrize("keep_texts", [True, False])
def test_documents_are_returned(url, keep_texts):
    """As texts or, if texts are not stored, as counts; learning them again gives the same store."""
    given = [
        *DOCUMENTS,
        Document("5", "", labels=["empty"]),
        Document("6", fields={"title": "goal \0 \ud800", "body": ""}, labels=["sport"]),
        Document("7", counts={"goal": 70_000}, time="2024-01-01T12:00:00+02:00"),
        Document("8", counts={}, labels=["empty"]),
        Document("9", fields={}, labels=["empty"]),
    ]
    with open_store(url, keep_texts=keep_texts) as store:
        store.learn(given)
        documents = list(store.documents())

        assert [d.id for d in documents] == [d.id for d in given]
        assert [(d.labels, d.time) for d in documents] == [(d.labels, d.time) for d in given]
        if keep_texts:
            assert [d.content for d in documents] == [d.content for d in given]
            assert [d.text for d in documents[:5]] == [d.text for d in given[:5]]
        else:
            assert documents[0].counts == {"goal": 2, "match": 1}
        assert not store.learn(documents).changed


def test_texts_matter_only_if_they_are_stored(url, new_path):
    """The same words in another order are the same counts, but another text."""
    with open_store(url, keep_texts=True) as keeps, open_store(new_path()) as counts:
        for store in (keeps, counts):
            store.learn([Document("1", "one two", labels=["a"])])
        other = [Document("1", "two one", labels=["a"])]

        assert keeps.learn(other).corrected == 1
        assert counts.learn(other).unchanged == 1
        assert keeps.digest == counts.digest
        assert next(keeps.documents()).text == "two one"


# Trees


TREE = LabelTree(
    {"f": "s", "t": "s"},
    names={"s": {"en": "Sport"}, "f": {"en": "Football", "de": "Fußball"}},
    alternatives={"f": {"en": ["soccer"]}},
    notations={"f": "1.1"},
)


def test_a_tree_is_stored(url):
    """The tree is stored with its names, until another replaces it."""
    with open_store(url, tree=TREE) as store:
        assert store.tree == TREE
    with open_store(url) as again:
        assert again.tree == TREE
        again.learn([Document("1", "goal", labels=["f", "q"])])
    with open_store(url, tree=LabelTree({"q": "p"})) as other:
        assert other.tree == LabelTree({"q": "p"})
        assert other.verify().ok
        assert other.counts().labels == ("f", "q")


def test_names_become_ids(url):
    """Names of the tree are learned by their ids, and stand for all labels below."""
    with open_store(url, tree=TREE) as store:
        store.learn(
            [
                Document("1", "goal", labels=["Football"]),
                Document("2", "goal net", labels=["f"]),
                Document("3", "net", labels=["t", "else"]),
                Document("4", "moon", labels=["else"]),
            ]
        )

        assert store.counts().labels == ("else", "f", "t")
        assert store.counts(labels=["Sport"]).n_docs == 3
        assert store.counts(labels=["soccer"]).n_docs == 2
        assert store.relabel({"4": ["Fußball"]}).changed
        assert store.counts(labels=["f"]).n_docs == 3
        assert store.forget(["3"]).gone_labels == ["else", "t"]
        assert store.tree == TREE
        assert store.fit("nb").tree == TREE


# Merging


def test_merging_rejects_conflicts(store, new_path):
    """A document that differs between the stores is named, and nothing is merged."""
    before = unchanged(store)
    with open_store(new_path()) as other:
        other.learn([Document("1", "goal", labels=["film"]), Document("8", "new", labels=["new"])])

        with pytest.raises(StoreError, match=r"^document '1' is in both .* Nothing was merged\.$"):
            store.merge(other)

    assert unchanged(store) == before
    assert store.verify().ok


@pytest.mark.parametrize("settings", [{"language": "de"}, {"fields": {"title": 2}}])
def test_merging_needs_the_same_terms(store, new_path, settings):
    """A store that derives other terms from texts cannot be merged."""
    settings = settings if "language" in settings else {"analyzer": Analyzer(None), **settings}
    with (
        Store(new_path(), **settings) as other,
        pytest.raises(StoreError, match=r"different analyzers or fields.* Nothing was merged"),
    ):
        store.merge(other)


def test_merging_takes_current_documents(store, new_path):
    """Documents of the other store come with labels and times, but without their history."""
    with open_store(new_path(), keep_texts=True) as other:
        other.learn([Document("8", "old", labels=["old"]), DOCUMENTS[1]])
        other.learn([Document("8", "new", labels=["new"], time="2020-01-01")])

        receipt = store.merge(other)

    assert (receipt.action, receipt.learned, receipt.unchanged) == ("merge", 1, 1)
    assert (receipt.new_labels, receipt.new_terms) == (["new"], 1)
    assert store.counts(until="2021-01-01").label_sets == [("new",)]
    assert not store.merge(store).changed


# Models


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", ["mml", "col", "boostexter"])
def test_models_of_documents_do_not_depend_on_the_past(url, new_path, model):
    """Models fitted on documents have the same bits, whatever was learned before."""
    documents = [
        Document(str(k), " ".join(words), labels=labels)
        for k, (words, labels) in enumerate(
            [(["goal", "match"], ["sport"]), (["mars", "orbit"], ["space"])] * 8
            + [(["goal", "orbit", "rover"], ["space", "sport"])] * 4
        )
    ]
    with open_store(url) as store, open_store(new_path()) as fresh:
        store.learn([Document("x", "zebra", labels=["zoo"]), *documents[::-3]])
        store.learn(documents)
        store.forget(["x"])
        fresh.learn(documents)

        assert model_bytes(store.fit(model)) == model_bytes(fresh.fit(model))


def test_an_empty_store_cannot_be_fitted(url):
    """There must be something to learn from."""
    with open_store(url) as store, pytest.raises((ValueError, StoreError)) as error:
        store.fit()

    assert "\n" not in str(error.value)


def test_documents_by_condition(url):
    """All, those with or without labels, the newest, and those that were known at a revision."""
    with open_store(url) as store:
        first = store.learn([{"id": "1", "text": "a", "labels": ["x"]}]).revision_after
        store.learn([{"id": "2", "text": "b", "labels": []}])
        store.learn([{"id": "3", "text": "c", "labels": ["y"]}])

        def found(**asked):
            return sorted(document.id for document in store.documents(**asked))

        assert found() == ["1", "2", "3"]
        assert found(labelled=True) == ["1", "3"]
        assert found(labelled=False) == ["2"]
        assert found(newest=2) == ["2", "3"]
        assert found(newest=1, labelled=True) == ["3"]
        assert found(as_of=first) == ["1"]
        assert found(as_of=first + 1) == ["1", "2"]


def test_repr(path):
    """A store is shown in one line, by its name."""
    with open_store(path) as store:
        assert repr(store) == f"<Store {str(path)!r}>"


def test_tokens(url):
    """A token is recognized by its digest until it is revoked; names are used once."""
    with open_store(url) as store:
        secret = store.tokens.create("one", "read")
        assert store.tokens.create("two", "admin", "other") == "other"

        with pytest.raises(StoreError, match="a token 'one' exists"):
            store.tokens.create("one", "admin", "third")
        with pytest.raises(ValueError, match="role == 'owner', must be one of read, write, admin"):
            store.tokens.create("three", "owner")
        assert store.tokens.role_of(secret) == "read"
        assert {token["name"]: token["role"] for token in store.tokens.all()} == {
            "one": "read",
            "two": "admin",
        }
        store.tokens.revoke("one")
        with pytest.raises(StoreError, match="there is no token 'one'"):
            store.tokens.revoke("one")
        assert store.tokens.role_of(secret) is None
        assert store.tokens.role_of("other") == "admin"
        assert not store.verify().problems


def test_new_tokens():
    """They are long, say what they are for, and are never the same."""
    tokens = {new_token() for _ in range(10)}

    assert len(tokens) == 10
    assert all(token.startswith("polytopic_") for token in tokens)
    assert all(len(token) == len("polytopic_") + 43 for token in tokens)  # of 32 bytes
    assert token_digest("a") == hashlib.sha256(b"a").hexdigest()


@pytest.mark.parametrize("model", ["pmm1", "nb", "mml"])
def test_models_that_must_be_refreshed(url, model):
    """After a document was forgotten, unless they can be fitted again from counts."""
    words = ["wheat", "gold", "wheat", "gold", "wheat"]
    with open_store(url, model=model) as store:
        assert not store.monitor.must_refresh()
        store.learn(
            {"id": str(k), "text": f"{word} {word}", "labels": [word]}
            for k, word in enumerate(words)
        )
        assert store.refresh() == 1
        assert not store.monitor.must_refresh()
        assert not store.monitor.has_forgotten_since(0)

        forgot = store.forget(["0"]).revision_after

        assert store.monitor.must_refresh() == (model == "mml")
        assert store.monitor.has_forgotten_since(forgot - 1)
        assert not store.monitor.has_forgotten_since(forgot)
        assert store.refresh() == 2
        assert not store.monitor.must_refresh()


def test_a_receipt_counts_what_was_done():
    """By default, all counts are zero."""
    values = Receipt("learn", "2024-01-01", 0, 0, "a", "a").to_dict()

    counted = {name: value for name, value in values.items() if isinstance(value, int)}
    assert set(counted.values()) == {0}
    assert all(value == [] for value in values.values() if isinstance(value, list))
