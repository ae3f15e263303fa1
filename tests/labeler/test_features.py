"""Features beside the words: learning, weights, answers, explanations and files."""

import json
from zlib import crc32

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from polytopic import Labeler, Store, load
from polytopic.corpus import load_sample
from polytopic.errors import ModelFileError, PolytopicError
from polytopic.explain.html import explanation_to_html
from polytopic.labeler import Selector
from polytopic.labeler.features import choose_weights
from polytopic.labeler.files import from_bytes, to_bytes
from polytopic.modelfile import model_bytes, parse_model
from polytopic.models import MML
from polytopic.text import CharacterNGrams, WordNGrams
from polytopic.text.weights import unit_rows

DOCUMENTS = load_sample()[:100]
TEXTS = [document.text for document in DOCUMENTS]
LABELS = [document.labels for document in DOCUMENTS]


def embed(texts):
    """Return sums of vectors of words, which stand for embeddings."""
    rows = [
        np.sum([np.random.default_rng(crc32(w.encode())).normal(size=8) for w in t.split()], axis=0)
        for t in texts
    ]
    return np.array(rows, dtype=np.float32) + 1


def other(texts):
    """Return other rows of the same size."""
    return embed(texts)[:, ::-1]


def fit(*features, model=None, **settings):
    """Return a labeler with features, and few terms."""
    model = MML(C=1.0) if model is None else model
    return Labeler(model, max_terms=60, features=list(features), **settings).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def labeler():
    """Return a labeler with n-grams and a function; all have a weight."""
    fitted = fit(CharacterNGrams(max_terms=200), WordNGrams(max_terms=50), ("meaning", embed))
    assert all(block.weight > 0 for block in fitted.features_)
    return fitted


def test_columns(labeler):
    """The words come first; then blocks of unit length, centred if dense, times their weights."""
    X = labeler.transform(TEXTS)
    n_words = len(labeler.vocabulary_)

    places = labeler.state_.features.columns(n_words)
    centred = embed(TEXTS) - embed(TEXTS).mean(axis=0)

    assert list(places) == ["CharacterNGrams", "WordNGrams", "meaning"]
    assert [block.dimensions for block in labeler.features_] == [200, 38, 8]
    assert X.shape[1] == n_words + 200 + 38 + 8
    for block in labeler.features_:
        lengths = np.sqrt(X[:, places[block.name]].power(2).sum(axis=1).A1)
        np.testing.assert_allclose(lengths[lengths > 0], block.weight)
    meaning = X[:, places["meaning"]].toarray() / labeler.features_[2].weight
    np.testing.assert_allclose(
        meaning, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-6
    )


def test_words_are_those_without_features(labeler):
    """Features change nothing about the words; none means no columns."""
    plain = Labeler(MML(C=1.0), max_terms=60).fit(TEXTS, LABELS)

    words = labeler.transform(TEXTS)[:, : len(plain.vocabulary_)]

    assert abs(words - plain.transform(TEXTS)).max() == 0
    assert plain.features_ == ()


def test_an_empty_list_is_no_features():
    """Such a labeler learns and forgets as one without the list."""
    labeler = Labeler("svm", max_terms=20, features=[]).fit(TEXTS, LABELS)

    assert labeler.features_ == ()
    assert labeler.learn(DOCUMENTS[:1]).training_["documents"] == 101


def test_answers_agree(labeler):
    """Whole texts, streams, documents and fields give the same answers, in any blocks."""
    proba = labeler.predict_proba(TEXTS)
    answers = labeler.suggest(iter(TEXTS))

    assert labeler.predict(iter(TEXTS)) == labeler.predict(DOCUMENTS)
    assert labeler.predict(TEXTS) == [answer.labels for answer in answers]
    assert labeler.predict([{"body": text} for text in TEXTS]) == labeler.predict(TEXTS)
    np.testing.assert_allclose(
        proba, np.vstack([labeler.predict_proba([text]) for text in TEXTS]), atol=1e-12
    )
    assert labeler.predict([]) == []


def test_fields():
    """A field of weight 0 is not read."""
    labeler = fit(("meaning", embed), fields={"note": 0})

    with_note = labeler.decision_function([{"body": TEXTS[0], "note": "goal"}])

    np.testing.assert_array_equal(with_note, labeler.decision_function([{"body": TEXTS[0]}]))


def test_texts_without_labels_are_ignored():
    """Rows of features stay with their texts."""
    texts, labels = ["x", *TEXTS], [[], *LABELS]
    labeler = Labeler("svm", max_terms=60, features=[embed]).fit(texts, labels)

    same = fit(embed, model="svm")

    np.testing.assert_allclose(labeler.transform(TEXTS).data, same.transform(TEXTS).data)


@pytest.mark.parametrize("model", ["svm", "knn", "forest", LogisticRegression()], ids=str)
@pytest.mark.parametrize(
    "feature",
    [
        TfidfVectorizer(max_features=50),
        HashingVectorizer(n_features=64),
        FunctionTransformer(embed),
        embed,
        CharacterNGrams(2, 3),
    ],
    ids=["tfidf", "hashing", "function transformer", "function", "n-grams"],
)
def test_sources_and_models(model, feature):
    """Each source works with each model that reads weights; what is given stays as it was."""
    given = feature if feature is embed else clone(feature)
    labeler = fit(("block", given), model=model)

    assert len(labeler.suggest(TEXTS[:2])) == 2
    assert not hasattr(given, "vocabulary_")


# Weights


def test_a_useful_block_gets_weight():
    """A block that tells the labels weighs more than the words, and strong noise is left out."""
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 4)) < 0.3).astype(float)
    Y[Y.sum(axis=1) == 0, 0] = 1
    useful = unit_rows(sparse.csr_matrix(Y + 0.3 * rng.random(Y.shape)))
    noise = unit_rows(sparse.csr_matrix(rng.normal(size=(200, 20))))

    weights = choose_weights(noise, [useful, 8 * noise], sparse.csr_matrix(Y))

    assert weights == [2.0, 0.0]


def test_equal_blocks_keep_their_weight():
    """Without a difference beyond chance, a block weighs as much as the words."""
    X = sparse.csr_matrix(np.eye(60))
    Y = sparse.csr_matrix(np.ones((60, 1)))

    assert choose_weights(X, [X], Y) == [1.0]


def test_few_documents():
    """Fewer than 30 documents cannot be held out, so each block weighs 1."""
    labeler = Labeler("svm", features=[embed]).fit(TEXTS[:29], LABELS[:29])

    assert [block.weight for block in labeler.features_] == [1.0]


def test_a_block_without_weight_is_left_out(monkeypatch, tmp_path):
    """It has no columns, and no file needs it."""
    monkeypatch.setattr("polytopic.labeler.features.choose_weights", lambda X, rows, Y: [0.0, 2.0])
    labeler = fit(("useless", embed), CharacterNGrams(max_terms=20))

    labeler.save(tmp_path / "m")

    assert labeler.transform(TEXTS).shape[1] == 60 + 20
    assert load(tmp_path / "m").predict(TEXTS) == labeler.predict(TEXTS)


# Explanations


@pytest.mark.parametrize("model", [None, "svm", "stack"], ids=["mml", "svm", "stack"])
def test_parts_add_up(model, monkeypatch):
    """Words, blocks and the rest add up to the score; so does a difference."""
    monkeypatch.setattr("polytopic.labeler.features.choose_weights", lambda X, rows, Y: [2.0, 0.5])
    labeler = fit(CharacterNGrams(max_terms=100), ("meaning", embed), model=model)
    label = labeler.suggest(TEXTS[:1], 20)[0][-1].label

    explanation = labeler.explain(TEXTS[0], why_not=[label])

    parts, (why,) = explanation.breakdown, explanation.why_not
    of_labels = sum(sum(reason.features.values()) for reason in explanation.labels)
    assert set(explanation.labels[0].features) == {"CharacterNGrams", "meaning"}
    assert parts.words == pytest.approx(sum(reason.evidence for reason in explanation.labels))
    assert parts.features == pytest.approx(of_labels)
    assert parts.score == pytest.approx(parts.words + parts.features + parts.mixing)
    assert why.difference == pytest.approx(
        sum(word.amount for word in why.words) + sum(why.features.values()) + why.mixing, abs=1e-6
    )
    assert json.loads(json.dumps(explanation.to_dict()))["labels"][0]["features"]
    assert "evidence of the features meaning" in explanation_to_html(explanation, TEXTS[0])


def test_explained_score_is_that_of_the_model():
    """For a model of one score per label, the parts add up to the label's own score."""
    labeler = fit(CharacterNGrams(max_terms=100), model="svm")
    label = labeler.classes_[3]

    explanation = labeler.explain(TEXTS[0], [label])

    score = labeler.decision_function(TEXTS[:1])[0, 3]
    assert explanation.breakdown.score == pytest.approx(score, rel=1e-5)
    assert explanation.breakdown.features != 0


def test_terms_of_labels_are_words(labeler):
    """Columns of features are never taken for words."""
    for row in labeler.label_terms(7):
        assert len(row["words"]) == 7
        assert {word["term"] for word in row["words"]} <= set(labeler.vocabulary_)


# Files


def test_files(labeler, tmp_path):
    """N-grams are in the file; a function is given again; answers are the same to the bit."""
    labeler.save(tmp_path / "m")

    loaded = load(tmp_path / "m", features=[("meaning", embed)])

    np.testing.assert_array_equal(loaded.decision_function(TEXTS), labeler.decision_function(TEXTS))
    assert loaded.explain(TEXTS[0]).to_dict() == labeler.explain(TEXTS[0]).to_dict()
    assert to_bytes(loaded) == to_bytes(labeler)
    assert loaded.features[1][0] == "WordNGrams"


def test_fitted_transformers(tmp_path):
    """A fitted transformer is given again; one that was not fitted is rejected."""
    labeler = fit(TfidfVectorizer(max_features=50))
    labeler.save(tmp_path / "m")
    fitted = labeler.features_[0].source.make

    assert load(tmp_path / "m", features=[fitted]).predict(TEXTS) == labeler.predict(TEXTS)
    with pytest.raises(ModelFileError, match="the features 'TfidfVectorizer' do not work"):
        load(tmp_path / "m", features=[TfidfVectorizer()])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, r"'meaning' \(function\) are not in the file; give them, fitted, as load"),
        ([("meaning", other)], "are not those that the model was trained with"),
        ([("meaning", lambda texts: np.ones((len(texts), 3)))], "have 3 dimensions, and had 8"),
        ([("meaning", embed), ("more", embed)], "no features of the name 'more'; it has 'Char"),
        ([("meaning", embed), CharacterNGrams()], "has the n-grams 'CharacterNGrams' itself"),
    ],
    ids=["missing", "different", "dimensions", "unknown", "n-grams"],
)
def test_missing_or_different_features(labeler, tmp_path, given, sentence):
    """The sentence names the block and says what to do."""
    labeler.save(tmp_path / "m")

    with pytest.raises(ModelFileError, match=sentence):
        load(tmp_path / "m", features=given)


def test_files_without_features(tmp_path):
    """They are as before, and reject features."""
    Labeler("svm", max_terms=20).fit(TEXTS, LABELS).save(tmp_path / "m")

    assert "features" not in parse_model((tmp_path / "m").read_bytes(), "m")[0]
    with pytest.raises(ModelFileError, match="no features of the name 'embed'; it has none"):
        load(tmp_path / "m", features=[embed])


@pytest.fixture(scope="module")
def content(labeler):
    """Return the file of the labeler with features."""
    return to_bytes(labeler)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ((), {}, "features must be a list"),
        ((0, "name"), "meaning", "names of features must be distinct"),
        ((0, "name"), 3, "names of features must be distinct"),
        ((0, "kind"), "magic", "features of the kind 'magic'"),
        ((0, "weight"), float("nan"), "the weight of features == nan"),
        ((0, "weight"), -1, "the weight of features == -1"),
        ((0, "weight"), 1e9, "the weight of features == 1000000000"),
        ((0, "weight"), 0, "must be > 0"),
        ((0, "dimensions"), 199, "have 200 terms"),
        ((0, "dimensions"), True, "have True dimensions"),
        ((0, "dimensions"), 10**400, "dimensions"),
        ((0, "terms"), ["b", "a"], "sorted"),
        ((0, "parameters", "max_n"), 10**9, "max_n == 1000000000, must be <= 10"),
        ((0, "parameters", "code"), 1, "unexpected keyword"),
        ((1, "parameters", "analyzer", "language"), "xx", "language == 'xx'"),
        ((2, "dimensions"), 7, "mean of 8 dimensions"),
        ((2, "digest"), [[1.0]], "digest of the features 'meaning'"),
        ((2, "digest", 0, 0), float("inf"), "digest of the features 'meaning'"),
    ],
    ids=str,
)
def test_impossible_features(content, place, value, sentence):
    """Values that no labeler can have are rejected."""
    manifest, arrays = parse_model(content, "m")
    inner, steps = manifest, ["features", *place]
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = value

    with pytest.raises(ModelFileError, match=sentence):
        from_bytes(model_bytes(manifest, arrays), "m", features=[("meaning", embed)])


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("features.0.idf", lambda a: a * np.nan, "'idf' holds values from nan"),
        ("features.0.idf", lambda a: a[1:], "'idf' has the shape"),
        ("features.2.mean", lambda a: a * np.inf, "'mean' holds values"),
        ("features.2.mean", lambda a: a[:, None], "'mean' has"),
    ],
)
def test_impossible_arrays(content, name, change, sentence):
    """Arrays that no labeler can have are rejected."""
    manifest, arrays = parse_model(content, "m")
    arrays[name] = change(arrays[name])

    with pytest.raises(ModelFileError, match=sentence):
        from_bytes(model_bytes(manifest, arrays), "m", features=[("meaning", embed)])


# What does not work


@pytest.mark.parametrize(
    ("features", "error", "sentence"),
    [
        ("chars", TypeError, "features == 'chars', must be a list"),
        (embed, TypeError, "must be a list of transformers"),
        ([3], TypeError, "features has 3, must have transformers"),
        ([CharacterNGrams], TypeError, "must have transformers .instances."),
        ([(3, embed)], TypeError, "features has the name 3, must be a string"),
        ([embed, embed], ValueError, "two blocks of the name 'embed'"),
        ([lambda texts: np.ones(len(texts))], ValueError, r"have the shape \(100,\)"),
        ([lambda texts: np.ones((1, 2))], ValueError, r"have the shape \(1, 2\)"),
        ([lambda texts: np.full((len(texts), 2), np.nan)], ValueError, "hold NaN or infinity"),
        ([CharacterNGrams(min_df=10**6)], ValueError, "no n-gram of CharacterNGrams occurs in"),
    ],
)
def test_wrong_features(features, error, sentence):
    """The error names what was given."""
    with pytest.raises(error, match=sentence):
        Labeler("svm", max_terms=20, features=features).fit(TEXTS, LABELS)


@pytest.mark.parametrize("model", ["pmm1", "nb", "col", "boostexter"])
def test_models_of_counts(model):
    """A model that reads counts says that it cannot use features."""
    with pytest.raises(ValueError, match="learns from word counts, so it cannot use features"):
        Labeler(model, features=[embed]).fit(TEXTS, LABELS)


def test_learning_and_forgetting():
    """They are exactly fits to the texts that are then left, with the same weights."""
    features = CharacterNGrams(max_terms=200), ("meaning", embed)
    labeler = fit(*features)
    plain = clone(labeler)

    labeler.learn(["Goals on Mars!"], [["space", "sport"]]).forget(DOCUMENTS[:40])

    texts, labels = [*TEXTS[40:], "Goals on Mars!"], [*LABELS[40:], ["space", "sport"]]
    plain.fit(texts, labels)
    if [b.weight for b in plain.features_] == [b.weight for b in labeler.features_]:
        np.testing.assert_allclose(
            labeler.decision_function(TEXTS), plain.decision_function(TEXTS), atol=1e-9
        )
    assert labeler.training_["documents"] == len(texts)
    assert labeler.vocabulary_.terms == plain.vocabulary_.terms


def test_what_cannot_be_learned_or_forgotten(tmp_path):
    """Texts that were not learned, files, and labelers that keep nothing say so."""
    labeler = fit(WordNGrams(max_terms=20))
    terms = labeler.vocabulary_.terms
    labeler.save(tmp_path / "m")
    lean = fit(WordNGrams(max_terms=20), keep_documents=False)

    with pytest.raises(ValueError, match="'unknown' with the labels sport was not learned"):
        labeler.forget(["unknown"], [["sport"]])
    with pytest.raises(ValueError, match="warm == True does not work with features"):
        labeler.learn(["goal"], [["sport"]], warm=True)
    for other_labeler in (load(tmp_path / "m"), lean):
        with pytest.raises(PolytopicError, match="has not kept"):
            other_labeler.learn(["goal"], [["sport"]])
    assert labeler.vocabulary_.terms == terms


def test_counts_alone(labeler, tmp_path):
    """Bags of words, selecting and stores say what they lack."""
    with pytest.raises(ValueError, match="this one is a bag of words"):
        labeler.predict([{"goal": 2}])
    with pytest.raises(ValueError, match="this one is a bag of words"):
        Labeler("svm", features=[embed]).fit([{"goal": 1}], [["a"]])
    with pytest.raises(ValueError, match=r"a store.s models read words only; .* .meaning."):
        Store(tmp_path / "s.db").publish(labeler)
    with pytest.raises(ValueError, match="word counts alone do not have them"):
        Selector(labeler, [LABELS[0][0]]).select(TEXTS[:1])


def test_dask(tmp_path):
    """A cluster learns from words only, and says so."""
    pytest.importorskip("distributed")
    from polytopic import distributed

    (tmp_path / "corpus.jsonl").write_text('{"text": "goal", "labels": ["sport"]}\n')

    with pytest.raises(PolytopicError, match="Features beside the words are not learned on Dask"):
        distributed.fit(Labeler("mml", features=[embed]), tmp_path / "corpus.jsonl")
