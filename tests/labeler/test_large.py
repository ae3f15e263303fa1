"""A labeler of thousands of labels: sparse answers in every method, file, store and rule."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import polytopic
from polytopic import Labeler, Store
from polytopic.cli import main
from polytopic.corpus import Document, write_documents
from polytopic.decision import Threshold, TopK, TreeCohort, WorldModel
from polytopic.labeler import held_out
from polytopic.labels import LabelTree
from polytopic.models.registry import LARGE_LABELS
from polytopic.text import Analyzer, WordNGrams

N_LABELS = LARGE_LABELS + 100


def corpus():
    """Return documents with two labels each; a label has a word of its own, and others."""
    rng = np.random.default_rng(0)
    documents = []
    for number in range(2 * N_LABELS):
        labels = {number % N_LABELS, int(rng.integers(N_LABELS))}
        own = [f"own{chr(97 + a % 26)}{chr(97 + a // 26 % 26)}{chr(97 + a // 676)}" for a in labels]
        other = [f"common{chr(97 + w)}" for w in rng.integers(0, 20, 4)]
        text = " ".join([*own, *other])
        names = [f"group{a % 7}/label{a}" for a in labels]
        documents.append(Document(id=str(number), text=text, labels=names))
    return documents


DOCUMENTS = corpus()
TEXTS = [document.text for document in DOCUMENTS[:40]]


@pytest.fixture(scope="module")
def labeler():
    """Return a labeler that was fitted on all documents."""
    return Labeler(tree=LabelTree.from_names([a for d in DOCUMENTS for a in d.labels])).fit(
        DOCUMENTS
    )


def test_the_default_depends_on_the_number_of_labels(labeler):
    """With thousands of labels, each quality stands for a sparse model."""
    assert labeler.model_.name == "candidate-stack"
    assert labeler.model_.machines
    assert not Labeler(quality="fast").fit(DOCUMENTS).model_.machines
    assert Labeler().fit(DOCUMENTS[:100]).model_.name == "stack"


def test_answers(labeler):
    """Answers are sparse, and most labels are found."""
    scores, proba = labeler.decision_function(TEXTS), labeler.predict_proba(TEXTS)
    answers = labeler.suggest(TEXTS, k=8)

    assert sparse.issparse(scores)
    assert sparse.issparse(proba)
    assert scores.shape == proba.shape == (40, N_LABELS)
    assert np.diff(scores.indptr).max() <= 100
    assert [answer.labels for answer in answers] == labeler.predict(TEXTS)
    assert all(len(answer) == 8 for answer in answers)
    assert labeler.score(DOCUMENTS[:40], [d.labels for d in DOCUMENTS[:40]]) > 0.8
    for row, answer in enumerate(answers):
        columns = np.searchsorted(labeler.classes_, [s.label for s in answer])
        np.testing.assert_allclose([s.score for s in answer], scores[[row] * 8, columns].A1)
        np.testing.assert_allclose([s.probability for s in answer], proba[[row] * 8, columns].A1)


def test_a_text_without_known_words(labeler):
    """It gets the most frequent label set, and probabilities of frequent labels."""
    (answer,) = labeler.suggest(["zzz"])

    assert answer.labels == labeler.classes_[labeler.model_.fallback].tolist()
    assert answer.warning
    assert labeler.predict_proba(["zzz"]).nnz == 100
    assert 0 <= labeler.certainty(["zzz", TEXTS[0]]).min() <= 1


def test_titles():
    """Words of short first lines count more, if nearly all texts have one; learning keeps to it."""
    titled = [
        Document(id=d.id, text=d.text.replace(" ", "\n", 1), labels=d.labels) for d in DOCUMENTS
    ]

    labeler = Labeler(quality="fast").fit(iter(titled))
    given = Labeler(quality="fast", analyzer=Analyzer("en", title=4)).fit(titled)
    expected = labeler.suggest(TEXTS)
    learned = labeler.learn(titled[:2]).forget(titled[:2])

    assert labeler.analyzer_ == given.analyzer_
    assert given.suggest(TEXTS) == learned.suggest(TEXTS) == expected
    assert (labeler.documents_.X != given.documents_.X).nnz == 0
    assert labeler.documents_.X.max() >= 4


def test_word_pairs():
    """Features beside the words have a fixed weight."""
    labeler = Labeler(quality="fast", features=[WordNGrams(min_df=1, max_terms=None)])

    labeler.fit(DOCUMENTS)

    assert [block.weight for block in labeler.features_] == [0.5]
    assert labeler.score(DOCUMENTS[:40], [d.labels for d in DOCUMENTS[:40]]) > 0.8


def test_restricted_labels(labeler):
    """Only allowed labels are suggested, also outside the first candidates."""
    (answer,) = labeler.suggest(TEXTS[:1], include=["group3"])

    assert answer.labels
    assert {suggestion.label[:6] for suggestion in answer} == {"group3"}


def test_labels_rolled_up(labeler):
    """Groups are suggested in place of their labels."""
    answers = labeler.suggest(TEXTS, level=0)

    assert {s.label[:5] for answer in answers for s in answer} == {"group"}
    assert all("/" not in s.label for answer in answers for s in answer)
    assert [answer.labels for answer in answers] == labeler.predict(TEXTS, level=0)


def test_explanations(labeler):
    """The parts of a score add up, for labels that are predicted, and for one that is not."""
    text = TEXTS[0]
    own = labeler.predict([text])[0]
    other = next(a for a in labeler.classes_.tolist() if a not in own)

    explanation = labeler.explain(text, own, why_not=other)

    parts, scores = explanation.breakdown, labeler.decision_function([text])
    columns = np.searchsorted(labeler.classes_, own)
    assert parts.score == pytest.approx(scores[[0] * len(own), columns].sum(), abs=1e-4)
    assert parts.words + parts.mixing == pytest.approx(parts.score)
    assert explanation.labels[0].words
    assert explanation.why_not[0].label == other


def test_learning_and_forgetting(labeler):
    """What was learned and then forgotten leaves no trace."""
    expected = labeler.suggest(TEXTS)
    more = [Document(id="new", text="honey bees honey", labels=["group1/bees"])] * 3

    learned = Labeler().fit(DOCUMENTS).learn(more)
    assert learned.predict(["honey bees"]) == [["group1/bees"]]
    learned.forget(more)

    assert learned.suggest(TEXTS) == expected


def test_few_labels_are_left():
    """Where forgetting leaves fewer labels, the default for few labels learns them."""
    few = {label for document in DOCUMENTS[:20] for label in document.labels}
    kept = [d for d in DOCUMENTS if few.issuperset(d.labels)]
    rest = [d for d in DOCUMENTS if not few.issuperset(d.labels)]

    labeler = Labeler().fit(DOCUMENTS).forget(rest)

    assert labeler.model_.name == "stack"
    assert labeler.predict(TEXTS[:1]) == Labeler().fit(kept).predict(TEXTS[:1])


@pytest.mark.parametrize("quality", ["fast", "best"])
def test_files(quality, tmp_path):
    """A labeler from a file gives the same answers, and a damaged file is rejected."""
    labeler = Labeler(quality=quality).fit(DOCUMENTS)
    labeler.save(tmp_path / "one.model")

    loaded = polytopic.load(tmp_path / "one.model")

    assert loaded.suggest(TEXTS) == labeler.suggest(TEXTS)
    difference = loaded.decision_function(TEXTS) != labeler.decision_function(TEXTS)
    assert not difference.nnz
    assert loaded.label_terms(3, ["group1/label1"]) == labeler.label_terms(3, ["group1/label1"])


@pytest.mark.parametrize("rule", [TopK(3), Threshold(0.0)])
def test_rules(labeler, rule):
    """A rule decides among the candidates."""
    scores = labeler.decision_function(TEXTS)
    other = Labeler(rule=rule).set_state(labeler.state_)

    predicted = other.predict(TEXTS)

    for row, labels in enumerate(predicted):
        ranked = np.argsort(-scores[[row]].data)
        best = scores[[row]].indices[ranked][:3]
        if isinstance(rule, Threshold):
            best = [c for c in scores[[row]].indices if scores[row, c] > 0] or best[:1]
        assert labels == sorted(labeler.classes_[best].tolist())
    assert [a.labels for a in other.suggest(TEXTS)] == predicted


def test_a_rule_that_needs_all_labels(labeler):
    """The error says why it does not work, and what to do."""
    tree = Labeler(rule=TreeCohort(labeler.tree)).set_state(labeler.state_)
    world = Labeler(rule=WorldModel()).set_state(labeler.state_)

    with pytest.raises(ValueError, match="scores candidates only; use another rule"):
        tree.predict(TEXTS)
    with pytest.raises(ValueError, match="has no world_score; use NaiveBayes or another rule"):
        world.predict(TEXTS)


def test_a_guarantee_that_does_not_fit(monkeypatch):
    """Too many held-out documents × labels are refused with an estimate."""
    monkeypatch.setattr(held_out, "MAX_CELLS", 1000)

    with pytest.raises(polytopic.PolytopicError, match=r"would take [\d.]+ GiB, more than"):
        Labeler("candidate-stack", guarantee={"recall": 0.5}).fit(DOCUMENTS[:60])


def test_a_guarantee():
    """It is kept on documents like the learned ones."""
    common = [
        Document(id=d.id, text=d.text, labels=[label[:6] for label in d.labels])
        for d in DOCUMENTS[:300]
    ]

    labeler = Labeler("candidate-stack", guarantee={"recall": 0.7}).fit(common)

    predicted = labeler.predict(common)
    recall = [
        len({*d.labels} & {*p}) / len(d.labels) for d, p in zip(common, predicted, strict=True)
    ]
    assert np.mean(recall) > 0.7


def test_audit():
    """A wrong label is found among learned texts."""
    rng, words = np.random.default_rng(0), {"sport": "goal match team", "space": "rover orbit mars"}
    documents = [
        Document(id=str(n), text=" ".join(rng.choice(words[label].split(), 4)), labels=[label])
        for n, label in enumerate(["sport", "space"] * 30)
    ]
    documents.append(Document(id="wrong", text="goal match team goal", labels=["space"]))

    suspects = Labeler("candidate-stack").fit(documents).audit(documents)

    assert suspects[0].id == "wrong"
    assert suspects[0].better == ["sport"]


def test_map(labeler):
    """The map shows the most frequent labels."""
    assert len(labeler.map(n_labels=20).labels) == 20
    assert labeler.neighbours("group1/label1").together is not None


def test_store(tmp_path):
    """A store publishes a labeler of thousands of labels, and returns it."""
    with Store(tmp_path / "store.db") as store:
        store.learn(DOCUMENTS)
        labeler = store.fit("candidate-stack")
        store.publish(labeler)

        assert labeler.model_.name == "candidate-stack"
        assert store.current().suggest(TEXTS) == labeler.suggest(TEXTS)


def test_commands(tmp_path):
    """The commands accept sparse scores; eval ranks what is no candidate last."""
    write_documents(DOCUMENTS, tmp_path / "corpus.jsonl")
    write_documents(DOCUMENTS[:40], tmp_path / "new.jsonl")
    model, new = str(tmp_path / "one.model"), str(tmp_path / "new.jsonl")

    def run(*arguments):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("train", str(tmp_path / "corpus.jsonl"), "--to", model)
    answers = [json.loads(line) for line in run("suggest", model, new).splitlines()]
    metrics = json.loads(run("eval", model, new))

    assert [a["labels"] for a in answers] == polytopic.load(model).predict(TEXTS)
    assert metrics["precision_at_1"] > 0.9
    assert json.loads(run("info", model))["labels"] == N_LABELS
    assert "label1" in run("labels", model, "group1/label1")
    assert "own" in run("explain", model, TEXTS[0])
