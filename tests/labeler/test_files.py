"""Model files: they load as they were saved, and damaged ones are rejected with a clear message."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from safetensors.numpy import save as save_tensors

import polytopic
import polytopic.corpus
from polytopic import MML, PDMM, PMM1, BoosTexter, CoL, Labeler, NaiveBayes
from polytopic.decision import (
    MeanPlusStd,
    Threshold,
    TNorm,
    TopK,
    TreeCohort,
    UnconstrainedCohort,
    WorldModel,
)
from polytopic.errors import ModelFileError, PolytopicError
from polytopic.labeler.files import to_bytes
from polytopic.labels import LabelTree
from polytopic.modelfile import read_model, write_model
from tests.labeler.test_labeler import LABELS, TEXTS
from tests.models.test_count_models import same_parameters

FRESH = ["A goal seen from orbit", "Mars", "", "unknown words only"]


def same_arrays(model, other):
    """Return whether two models have learned the same bits."""
    ours, theirs = model.to_arrays(), other.to_arrays()
    same = (ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    return ours.keys() == theirs.keys() and all(same)


@pytest.fixture
def path(tmp_path):
    """Return the path of a saved labeler."""
    path = tmp_path / "news.model"
    Labeler("pmm1", min_df=1, max_terms=12).fit(TEXTS, LABELS).save(path)
    return path


@pytest.mark.parametrize(
    "labeler",
    [
        Labeler(),
        Labeler(MML(C=0.3, goal="exact"), weights="tfidf", max_terms=9),
        Labeler("pmm1", abstain=0.4),
        Labeler("col"),
        Labeler("boostexter"),
        Labeler(CoL(3, predict_mode="sets", batch_size=2), abstain=0.2),
        Labeler(PMM1(smoothing=0.2), language=None, min_df=2, fields={"title": 2.0}),
        Labeler(NaiveBayes(), rule=WorldModel(0.6), max_terms=5),
        Labeler("nb", language="de", tree=LabelTree({"space": "science", "sport": None})),
    ],
)
def test_round_trip(labeler, tmp_path):
    """A loaded labeler has the same bits, answers the same, and can be saved to the same bytes."""
    labeler.fit(TEXTS, LABELS)
    labeler.save(tmp_path / "a.model")

    loaded = polytopic.load(tmp_path / "a.model")
    loaded.save(tmp_path / "b.model")

    assert same_arrays(loaded.model_, labeler.model_)
    assert loaded.counts_ == labeler.counts_
    assert loaded.training_ == labeler.training_
    assert loaded.predict(FRESH) == labeler.predict(FRESH)
    assert loaded.suggest(FRESH) == labeler.suggest(FRESH)
    assert loaded.explain(FRESH[0]) == labeler.explain(FRESH[0])
    assert loaded.tree == labeler.tree
    assert loaded.abstain == labeler.abstain
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


def test_learning_continues_after_loading(path):
    """A loaded labeler learns and forgets exactly as the one that was saved."""
    original, loaded = Labeler("pmm1", max_terms=12).fit(TEXTS, LABELS), polytopic.load(path)

    for labeler in (original, loaded):
        labeler.learn(["A symphony on Mars"], [["music", "space"]])
        labeler.forget([TEXTS[0]], [LABELS[0]])

    assert same_parameters(loaded.model_, original.model_)
    assert loaded.vocabulary_ == original.vocabulary_


def test_documents_are_refitted_after_loading(tmp_path):
    """A loaded labeler refits from the rows in its file, as the one that was saved."""
    original = Labeler().fit(TEXTS, LABELS)
    original.save(tmp_path / "m")
    loaded = polytopic.load(tmp_path / "m")

    with pytest.raises(PolytopicError, match="cannot be continued"):
        loaded.forget([TEXTS[0]], [LABELS[0]], warm=True)
    for labeler in (original, loaded):
        labeler.learn(["A symphony on Mars"], [["music", "space"]])
        labeler.forget([TEXTS[0]], [LABELS[0]])

    assert same_arrays(loaded.model_, original.model_)
    assert loaded.vocabulary_ == original.vocabulary_
    assert loaded.learn([TEXTS[0]], [LABELS[0]], warm=True).predict(["Mars"]) == [["space"]]


def test_a_file_without_counts_has_no_documents(tmp_path):
    """Without its counts the file holds no documents either; answers stay the same."""
    labeler = Labeler().fit(TEXTS, LABELS)
    labeler.save(tmp_path / "small", counts=False)
    labeler.save(tmp_path / "whole")

    small = polytopic.load(tmp_path / "small")

    assert not any(name.startswith("documents.") for name in load_file(tmp_path / "small"))
    assert any(name.startswith("documents.") for name in load_file(tmp_path / "whole"))
    assert small.suggest(FRESH) == labeler.suggest(FRESH)
    with pytest.raises(PolytopicError, match="saved without its counts"):
        small.learn(["Mars"], [["space"]])
    with pytest.raises(PolytopicError, match="no mixture can be fitted"):
        small.explain("Mars", shares=True)


def test_another_process_answers_the_same(path):
    """Nothing but the file is needed."""
    code = (
        "import json, sys, polytopic\n"
        "labeler = polytopic.load(sys.argv[1])\n"
        "print(json.dumps(labeler.decision_function(json.loads(sys.argv[2])).tolist()))"
    )

    run = subprocess.run(
        [sys.executable, "-c", code, str(path), json.dumps(FRESH)],
        capture_output=True,
        text=True,
        check=True,
    )

    np.testing.assert_array_equal(
        json.loads(run.stdout), polytopic.load(path).decision_function(FRESH)
    )


def test_without_counts_it_is_smaller_and_cannot_learn(path, tmp_path):
    """The counts may be omitted; answers stay the same."""
    labeler = polytopic.load(path)
    labeler.save(tmp_path / "small.model", counts=False)

    small = polytopic.load(tmp_path / "small.model")

    assert (tmp_path / "small.model").stat().st_size < path.stat().st_size
    assert small.suggest(FRESH) == labeler.suggest(FRESH)
    with pytest.raises(PolytopicError, match="saved without its counts"):
        small.learn(["Mars"], [["space"]])


def test_truncated_files_are_rejected(path):
    """Cut anywhere, a file never loads and never raises anything but its own error."""
    content = path.read_bytes()

    for size in [0, 1, 7, 8, 9, 50, *range(100, len(content), 197), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError, match=r"is damaged|is not a polytopic model file"):
            polytopic.load(path)


def test_changed_files_are_rejected(path):
    """A flipped bit anywhere is detected."""
    content = path.read_bytes()

    for place in range(0, len(content), 211):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            polytopic.load(path)


def test_foreign_files_are_rejected(path, tmp_path):
    """Other files, including other safetensors files, are not model files."""
    for content in (b"hello, world", b"\x80\x04pickle", b"{}" * 50, b"\0" * 64):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="is not a polytopic model file"):
            polytopic.load(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="is not a polytopic model file"):
        polytopic.load(path)


def test_newer_formats_are_rejected(path):
    """The error for a file of a later release says what to do."""
    manifest, arrays = read_model(path)
    write_model(path, {**manifest, "format_version": 99}, arrays)

    with pytest.raises(ModelFileError, match=r"newer polytopic \(format 99, .* reads 3\)"):
        polytopic.load(path)


@pytest.mark.parametrize("model", ["mml", "pmm1"])
def test_files_of_format_2_are_read(model, tmp_path):
    """A file of an earlier release has the same bits, learns, and is saved in today's format."""
    path = Path(__file__).with_name(f"format2-{model}.model")
    manifest, arrays = read_model(path)
    fresh = Labeler(model, max_terms=12).fit(TEXTS, LABELS)

    loaded = polytopic.load(path)
    loaded.save(tmp_path / "m")
    again = polytopic.load(tmp_path / "m")

    assert manifest["format_version"] == 2
    for labeler in (loaded, again):
        own = labeler.model_.to_arrays()
        assert all(own[name].tobytes() == arrays[f"model.{name}"].tobytes() for name in own)
        assert labeler.counts_ == fresh.counts_
        assert labeler.predict(FRESH) == fresh.predict(FRESH)
        labeler.learn(["A symphony on Mars"], [["music", "space"]])
    assert same_arrays(loaded.model_, again.model_)


def test_parameters_with_earlier_names_are_read(path):
    """PDMM's ``likelihood`` was once called ``score``."""
    labeler = Labeler(PDMM(likelihood="paper", temperature=2.0)).fit(TEXTS, LABELS)
    labeler.save(path)
    manifest, arrays = read_model(path)
    parameters = manifest["model"]["parameters"]
    parameters["score"] = parameters.pop("likelihood")
    write_model(path, manifest, arrays)

    loaded = polytopic.load(path)

    assert loaded.model_.likelihood == "paper"
    assert loaded.predict(FRESH) == labeler.predict(FRESH)


def test_the_table_follows_from_the_documents(tmp_path):
    """A file with documents holds no table of counts; it is counted when it is needed."""
    labeler = Labeler(max_terms=9).fit(TEXTS, LABELS)
    labeler.save(tmp_path / "m")

    loaded = polytopic.load(tmp_path / "m")

    assert not any(name.startswith("counts.") for name in load_file(tmp_path / "m"))
    assert loaded.state_.table is None
    assert loaded.counts_ == labeler.counts_
    assert loaded.counts_ is loaded.counts_


def test_terms_of_the_vocabulary_are_stored_once(tmp_path):
    """The table stores only terms outside the vocabulary, unless it lacks some of those inside."""
    labeler = Labeler("pmm1", max_terms=9).fit(TEXTS, LABELS)
    labeler.save(tmp_path / "m")
    names = read_model(tmp_path / "m")[0]["counts"]

    assert names["terms"] is None
    assert set(names["beside"]).isdisjoint(labeler.vocabulary_)
    assert polytopic.load(tmp_path / "m").counts_.terms == labeler.counts_.terms

    few = Labeler(keep_documents=False).fit(TEXTS, LABELS)
    few.set_state(few.state_.with_counts(Labeler("nb").fit(TEXTS[:2], LABELS[:2]).counts_))
    few.save(tmp_path / "few")
    assert polytopic.load(tmp_path / "few").counts_ == few.counts_


def test_missing_files_are_reported(tmp_path):
    """The file is missing, is a folder, or is to be written to a missing folder."""
    with pytest.raises(ModelFileError, match="does not exist"):
        polytopic.load(tmp_path / "none.model")
    with pytest.raises(ModelFileError, match="cannot be read"):
        polytopic.load(tmp_path)
    with pytest.raises(ModelFileError, match="no' does not exist"):
        Labeler().fit(TEXTS, LABELS).save(tmp_path / "no" / "a.model")
    with pytest.raises(ModelFileError, match=r"is a folder|cannot be written"):
        Labeler().fit(TEXTS, LABELS).save(tmp_path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.gaps", lambda a: a + np.uint8(99)),
        ("model.gaps", lambda a: a[:-1].copy()),
        ("model.gaps_mask", lambda a: ~a),
        ("model.sizes", lambda a: a[:-1].copy()),
        ("model.sizes", lambda a: np.full(a.size, 1 << 40)),
        ("model.set_docs", lambda a: a[:-1].copy()),
        ("model.set_indices", lambda a: a + np.uint8(99)),
        ("counts.gaps", lambda a: a + np.uint8(199)),
        ("counts.data_mask", lambda a: ~a),
        ("counts.data_more", lambda a: a[:-1].copy()),
        ("counts.set_indices", lambda a: a.astype(np.int64) + 10_000),
    ],
)
def test_hostile_arrays_are_rejected(path, name, change):
    """Arrays that do not fit together, with a correct digest, are rejected before a kernel runs."""
    manifest, arrays = read_model(path)
    arrays[name] = change(arrays[name])
    write_model(path, manifest, arrays)

    with pytest.raises(ModelFileError, match="do not fit together"):
        polytopic.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.weights_mask", lambda a: a[:-1].copy()),
        ("model.weights_mask", lambda a: ~a),
        ("model.weights_values", lambda a: a[:-1].copy()),
        ("model.weights_values", lambda a: a * np.float32(np.nan)),
        ("model.fallback", lambda a: a + 99),
        ("model.columns", lambda a: a - 99),
        ("weights.idf", lambda a: a[:-1].copy()),
        ("weights.idf", lambda a: -a),
        ("documents.gaps", lambda a: a + np.uint8(99)),
        ("documents.gaps", lambda a: -a.astype(np.int64)),
        ("documents.label_indices", lambda a: a.astype(np.int64) - 10_000),
        ("documents.label_sizes", lambda a: a[:-1].copy()),
        ("documents.data_mask", lambda a: ~a),
    ],
)
def test_hostile_arrays_of_document_models_are_rejected(tmp_path, name, change):
    """So are those of models that are fitted on documents: weights and rows."""
    Labeler("mml").fit(TEXTS, LABELS).save(tmp_path / "m")
    manifest, arrays = read_model(tmp_path / "m")
    arrays[name] = change(arrays[name])
    write_model(tmp_path / "m", manifest, arrays)

    with pytest.raises(ModelFileError, match="do not fit together"):
        polytopic.load(tmp_path / "m")


def test_a_failed_save_leaves_the_old_file(path, monkeypatch):
    """A file is replaced completely or not at all."""
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", _no_space)

    with pytest.raises(ModelFileError, match="no space left"):
        Labeler().fit(TEXTS, LABELS).save(path)

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def _no_space(*_):
    raise OSError(28, "No space left on device")


def test_files_are_what_safetensors_writes(path):
    """Files are written piece by piece, to the same bytes."""
    labeler = Labeler(rule=TopK(2)).fit([*TEXTS, 'Überraschung "ŝ\\'], [*LABELS, ['ŝ"']])
    labeler.save(path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]

    assert save_tensors(load_file(path), metadata=metadata) == content
    assert to_bytes(labeler) == content


def test_arrays_are_plain(path):
    """Any safetensors reader can open a model file."""
    assert {array.dtype.kind for array in load_file(path).values()} <= {"f", "i", "u"}


@pytest.mark.parametrize(
    ("weight", "name", "kind"),
    [
        (1, "data_more", np.uint8),
        (300, "data_more", np.uint16),
        (70_000, "data_more", np.uint32),
        (0.3, "data", np.float64),
    ],
)
def test_counts_take_few_bytes(tmp_path, weight, name, kind):
    """Whole counts are stored in as few bytes as they need, and load as they were."""
    texts = [{"title": text, "body": text} for text in TEXTS]
    labeler = Labeler(MML(), fields={"title": weight}).fit(texts, LABELS)
    labeler.save(tmp_path / "m")
    loaded = polytopic.load(tmp_path / "m")

    assert load_file(tmp_path / "m")[f"documents.{name}"].dtype == kind
    assert loaded.documents_.X.dtype == np.float64
    assert (loaded.documents_.X != labeler.documents_.X).nnz == 0
    assert (loaded.counts_.matrix != labeler.counts_.matrix).nnz == 0


def test_numpy_parameters_can_be_saved(tmp_path):
    """Parameters from a grid are NumPy numbers; the file holds plain numbers."""
    labeler = Labeler(
        NaiveBayes(smoothing=np.float32(0.5)), rule=TopK(np.int64(2)), fields={"title": np.int64(2)}
    ).fit(TEXTS, LABELS)

    labeler.save(tmp_path / "m")

    assert polytopic.load(tmp_path / "m").predict(FRESH) == labeler.predict(FRESH)


TREE = LabelTree({"space": "science", "music": "arts", "sport": "arts"})


@pytest.mark.parametrize("model", ["nb", "mml"])
@pytest.mark.parametrize(
    ("rule", "tree"),
    [
        (TopK(3), None),
        (Threshold(-9.5), None),
        (MeanPlusStd(reject=True), None),
        (UnconstrainedCohort(2, 0.4), None),
        (UnconstrainedCohort(2, 0.4, "best"), None),
        (TNorm(0.25, reject=True), None),
        (TreeCohort(ratio=0.3), TREE),
        (TreeCohort(TREE), TREE),
        (TreeCohort(TREE), LabelTree({"space": "sport"})),
        (TreeCohort(TREE), None),
    ],
)
def test_rules_round_trip(model, rule, tree, tmp_path):
    """Every rule is saved with its parameters, and with its own tree."""
    labeler = Labeler(model, rule=rule, tree=tree).fit(TEXTS, LABELS)
    labeler.save(tmp_path / "a")

    loaded = polytopic.load(tmp_path / "a")
    loaded.save(tmp_path / "b")

    assert loaded.predict(FRESH) == labeler.predict(FRESH)
    assert loaded.suggest(FRESH) == labeler.suggest(FRESH)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    restored, original = loaded.rule.get_params(), rule.get_params()
    if "tree" in original and original["tree"] == tree:
        assert restored.pop("tree") is None
        del original["tree"]
    assert restored == original


def test_cohorts_of_an_older_file(tmp_path):
    """Files without the kind of cohort were written when "best labels" was the only kind."""
    rule = UnconstrainedCohort(2, 0.4, "best")
    labeler = Labeler("nb", rule=rule).fit(TEXTS, LABELS)
    labeler.save(tmp_path / "m")
    manifest, arrays = read_model(tmp_path / "m")
    del manifest["settings"]["rule"]["parameters"]["cohort"]
    write_model(tmp_path / "m", manifest, arrays)

    loaded = polytopic.load(tmp_path / "m")

    assert loaded.rule.get_params() == rule.get_params()
    assert loaded.predict(FRESH) == labeler.predict(FRESH)


def test_custom_rules_cannot_be_saved(tmp_path):
    """Only what another process can load goes into a file."""

    class Mine(TopK):
        pass

    with pytest.raises(ModelFileError, match="the rule Mine is not one of"):
        Labeler("nb", rule=Mine(1)).fit(TEXTS, LABELS).save(tmp_path / "m")


def test_links_and_pipes_stay_what_they_are(tmp_path):
    """A link is followed; a pipe or device is written to, not replaced."""
    labeler = Labeler().fit(TEXTS, LABELS)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    labeler.save(tmp_path / "link")
    labeler.save("/dev/null")

    assert (tmp_path / "link").is_symlink()
    assert polytopic.load(tmp_path / "real").predict(FRESH) == labeler.predict(FRESH)
    assert not Path("/dev/null").is_file()


def test_a_deeply_nested_header_is_rejected(path):
    """Endless brackets are not a model file."""
    content = b"[" * 100_000
    path.write_bytes(len(content).to_bytes(8, "little") + content)

    with pytest.raises(ModelFileError, match="is not a polytopic model file"):
        polytopic.load(path)


def test_estimators_inside_a_loaded_labeler_can_continue(path):
    """The loaded model has its counts and its training trace."""
    model = polytopic.load(path).model_

    assert model.counts_.n_docs == 5
    assert model.n_iter_ >= 1
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("mixing", [2.0, np.array([1.0, 2.0]), {"a": np.int64(2)}, (1, 2)])
def test_every_form_of_parameters_is_saved(tmp_path, mixing):
    """A model with parameters per label answers the same after loading."""
    texts, labels = ["goal match", "orbit moon", "goal orbit"], [["a"], ["b"], ["a", "b"]]
    labeler = polytopic.Labeler(polytopic.PDMM(mixing=mixing)).fit(texts, labels)

    labeler.save(tmp_path / "m")

    loaded = polytopic.load(tmp_path / "m")
    assert loaded.model_.tuned_ == labeler.model_.tuned_
    assert (loaded.predict_proba(texts) == labeler.predict_proba(texts)).all()


def test_rules_of_tiny_smoothing_round_trip(tmp_path):
    """Z of a rule is a difference, which rounding may bring just below zero."""
    labeler = Labeler(BoosTexter(200, smoothing=1e-300)).fit(TEXTS, LABELS)
    assert labeler.model_.to_arrays()["z"].min() < 0

    labeler.save(tmp_path / "rules.model")

    loaded = polytopic.load(tmp_path / "rules.model")
    assert same_arrays(loaded.model_, labeler.model_)


@pytest.mark.parametrize("model", [PMM1, PDMM])
@pytest.mark.parametrize("number", [np.float32, np.float16, np.int8])
def test_parameters_may_be_numbers_of_any_type(tmp_path, model, number):
    """A pseudo-count of few bits does not make a file that cannot be read."""
    labeler = Labeler(model(smoothing=number(2))).fit(TEXTS, LABELS)

    labeler.save(tmp_path / "m")

    loaded = polytopic.load(tmp_path / "m")
    assert (loaded.predict_proba(TEXTS) == labeler.predict_proba(TEXTS)).all()


@pytest.mark.parametrize("covariance", ["variational", "mcem"])
def test_topics_as_printed_come_back(tmp_path, covariance):
    """The covariance of labels is symmetric to the bit, however it is learned."""
    documents = polytopic.corpus.load_sample()[:60]
    model = CoL(8, inference="paper", covariance=covariance)
    labeler = Labeler(model, max_terms=40).fit(documents)
    texts = [document.text for document in documents]

    labeler.save(tmp_path / "m")

    loaded = polytopic.load(tmp_path / "m")
    assert (loaded.predict_proba(texts) == labeler.predict_proba(texts)).all()


def test_parameters_that_cannot_be_saved_are_named(tmp_path):
    """A generator of random numbers has no place in a file, and leaves none behind."""
    labeler = Labeler(MML(1.0, random_state=np.random.RandomState(0))).fit(TEXTS, LABELS)

    with pytest.raises(ModelFileError, match=r"random_state == .* of MML cannot be saved"):
        labeler.save(tmp_path / "m")

    assert not list(tmp_path.iterdir())


def test_arrays_that_could_not_be_read_are_not_written(tmp_path):
    """What loading would refuse is refused when it is saved."""
    with pytest.raises(ModelFileError, match="'x' is float16 and cannot be saved"):
        write_model(tmp_path / "m", {}, {"x": np.zeros(1, np.float16)})

    assert not list(tmp_path.iterdir())


def test_fractions_are_saved_as_numbers(tmp_path):
    """A parameter that is another type of real number is written as a float."""
    labeler = Labeler("nb", rule=Threshold(Fraction(1, 4))).fit(["goal", "orbit"], [["a"], ["b"]])

    labeler.save(tmp_path / "m")

    assert polytopic.load(tmp_path / "m").rule.value == 0.25
