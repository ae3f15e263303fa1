"""Learning, labelling, selecting and evaluating on a cluster, compared with one machine."""

import gzip
import json

import numpy as np
import pytest

from polytopic import Labeler, LabelTree
from polytopic.corpus import read_documents
from polytopic.distributed import evaluate, fit, predict, select, suggest
from polytopic.distributed.partitions import read
from polytopic.errors import PolytopicError
from polytopic.labeler import Selector
from polytopic.metrics import Tally, by_level
from polytopic.metrics import evaluate as measure
from tests.labeler.test_files import same_arrays


def lines_of(folder):
    """Return all lines of a folder of results, in order."""
    lines = []
    for path in sorted(folder.glob("part-*.jsonl*")):
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        lines += content.decode().split("\n")[:-1]
    return lines


@pytest.mark.parametrize("name", ["nb", "pmm1", "pmm2", "pdmm"])
def test_count_models_are_the_same(client, news, documents, name):
    """Parameters, tuned settings and the table are those of one machine."""
    train = [d for d in documents if d.split == "train"]
    alone = Labeler(name).fit(train)

    labeler = fit(Labeler(name), news, split="train", blocksize=20_000, client=client)

    assert labeler.model_.tuned_ == alone.model_.tuned_
    assert same_arrays(labeler.model_, alone.model_)
    assert labeler.counts_ == alone.counts_
    assert labeler.vocabulary_ == alone.vocabulary_


def test_tuning_does_not_depend_on_the_order(client, news, documents, pmm1):
    """Tuned settings depend on the documents, not on their order."""
    train = [d for d in documents if d.split == "train"][::-1]

    assert same_arrays(Labeler("pmm1").fit(train).model_, pmm1.model_)


def test_answers_are_the_same(client, news, documents, pmm1, tmp_path):
    """Files of suggestions have the lines that one machine writes, in its order."""
    options = {"k": 3, "exclude": ["culture/film"]}
    answers = pmm1.suggest(documents, **options)
    expected = [
        json.dumps({"id": d.id, **answer.to_dict(pmm1.name, digits=6)}, ensure_ascii=False)
        for d, answer in zip(documents, answers, strict=True)
    ]

    written = suggest(pmm1, news, tmp_path / "out", **options, blocksize=9_000, client=client)
    suggest(pmm1, news, tmp_path / "zipped", **options, zipped=True, client=client)

    assert written.documents == len(documents)
    assert lines_of(tmp_path / "out") == expected
    assert len(list((tmp_path / "out").iterdir())) == len(read(news, blocksize=9_000).parts)
    assert lines_of(tmp_path / "zipped") == expected
    assert predict(pmm1, news, blocksize=9_000).compute() == pmm1.predict(documents)


def test_results_never_mix(client, news, pmm1, tmp_path):
    """A folder that contains files is rejected; a new one is created."""
    (tmp_path / "old").write_text("")

    with pytest.raises(PolytopicError, match="already contains files; give a new folder"):
        suggest(pmm1, news, tmp_path, client=client)
    suggest(pmm1, news, f"file://{tmp_path}/new", blocksize=50_000, client=client)

    assert len(lines_of(tmp_path / "new")) == 348
    assert not list((tmp_path / "new").glob("*.tmp"))


@pytest.mark.parametrize("min_share", [None, 0.3])
def test_selection_is_the_same(client, news, documents, pmm1, tmp_path, min_share):
    """The same documents are selected, with the same shares and counts."""
    pmm1.tree = LabelTree.from_names(pmm1.classes_.tolist())
    selector = Selector(pmm1, ["culture", "sport"], min_share=min_share)
    topics_found = [topics for topics in selector.select(documents) if topics]

    fresh = Selector(pmm1, ["culture", "sport"], min_share=min_share)
    written = select(fresh, news, tmp_path / "out", blocksize=9_000, client=client)

    assert written.counts == selector.counts
    assert written.topics == selector.topic_counts
    lines = [json.loads(line)["selected"] for line in lines_of(tmp_path / "out")]
    assert [{t: x["labels"] for t, x in one.items()} for one in lines] == [
        {t: x.labels for t, x in one.items()} for one in topics_found
    ]


def test_metrics_are_the_same(client, news, documents, pmm1):
    """All metrics, also by level, are those of one machine; the test part is found."""
    test = [d for d in documents if d.split == "test"]
    pmm1.tree = LabelTree.from_names(pmm1.classes_.tolist())
    true, predicted = [d.labels for d in test], pmm1.predict(test)
    classes = pmm1.classes_.tolist()
    scores = pmm1.decision_function(test)
    expected = measure(true, predicted, scores, classes=classes, tree=pmm1.tree)

    tally = evaluate(pmm1, news, blocksize=9_000, client=client)

    assert tally.n_docs == len(test)
    calibration = {"calibration_error", "set_calibration_error"}
    metrics = {k: v for k, v in tally.metrics().items() if k not in calibration}
    assert metrics == pytest.approx(expected, rel=1e-12)
    assert list(metrics) == list(expected)
    whole = Tally(classes)
    proba, certainty = pmm1.predict_proba(test), pmm1.certainty(test)
    whole.add(true, predicted, proba=proba, certainty=certainty)
    assert tally.calibration.metrics() == pytest.approx(whole.calibration.metrics(), rel=1e-9)
    for level, f in by_level(true, predicted, pmm1.tree, classes=classes).items():
        assert tally.metrics_by_level()[level]["samples_f1"] == pytest.approx(f, rel=1e-12)


def test_tallies_of_unseen_labels():
    """True labels without scores count the same, however documents are partitioned."""
    rng = np.random.default_rng(0)
    classes, known = ["a/x", "a/y", "b", "c/d/e"], 4
    names = [*classes, "z", "a/q/r/s", "f"]
    tree = LabelTree.from_names(names)
    true = [list(rng.choice(names, rng.integers(1, 4), replace=False)) for _ in range(40)]
    predicted = [list(rng.choice(classes, rng.integers(0, 3), replace=False)) for _ in range(40)]
    scores = rng.integers(0, 4, (40, known)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    expected = measure(true, predicted, scores, classes=classes, tree=tree)

    total = Tally(classes, tree)
    for start in range(0, 40, 7):
        part, rows = Tally(classes, tree), slice(start, start + 7)
        part.add(true[rows], predicted[rows], scores[rows])
        total = total + part

    assert total.metrics() == pytest.approx(expected, rel=1e-12)
    levels = by_level(true, predicted, tree, classes=classes)
    assert {k: v["samples_f1"] for k, v in total.metrics_by_level().items()} == pytest.approx(
        levels
    )
    with pytest.raises(ValueError, match="no labelled document to evaluate on"):
        Tally(classes).metrics()


def test_reading_again(news):
    """A corpus can be read again with other options."""
    corpus = read(news, blocksize=9_000)

    assert read(corpus) is corpus
    assert read(corpus, split="test").reading == {"split": "test"}
    assert len(list(read_documents(news, split="test"))) == 87
