"""What changed between two moments, compared with slow twins on plain dicts."""

import json
from collections import Counter
from math import log2

import pytest
from click.testing import CliRunner
from hypothesis import given

from polytopic import LabelSetCounts, LabelTree, Store
from polytopic.cli.store import diff as command
from polytopic.store.analysis import label_differences
from tests.strategies import bags

SPORT = [
    {"id": "1", "counts": {"goal": 3, "ball": 2}, "labels": ["sport"]},
    {"id": "2", "counts": {"goal": 1, "moon": 1}, "labels": ["space", "sport"]},
]
RACES = [{"id": "3", "counts": {"race": 4, "goal": 1}, "labels": ["sport"]}]
FILM = [{"id": "4", "counts": {"film": 2}, "labels": ["film"]}]


@pytest.fixture
def path(tmp_path):
    """Return a store of three revisions: sport and space, then races, then films."""
    path = tmp_path / "news.db"
    with Store(path) as store:
        for batch in (SPORT, RACES, FILM):
            store.learn(batch)
    return path


def run(*arguments, code=0):
    """Run the command; return its output, or the failure it ends with."""
    result = CliRunner().invoke(command, [str(a) for a in arguments])
    if code:
        return result.exception
    assert result.exception is None, result.exception
    return [json.loads(line) for line in result.output.splitlines()]


def words_of(documents, label):
    """Count the words of a label, one document after another."""
    words = Counter()
    for bag, labels in documents:
        if label in labels:
            words.update({term: n for term, n in bag.items() if n})
    return words


def slow_parts(before, after):
    """Return each term's part of the divergence of two counters, one term after another."""
    n, m = sum(before.values()), sum(after.values())
    if not n or not m:
        total = n + m
        return {term: (before[term] + after[term]) / total for term in before | after}
    parts = {}
    for term in before | after:
        p, q = before[term] / n, after[term] / m
        middle = (p + q) / 2
        parts[term] = sum(x / 2 * log2(x / middle) for x in (p, q) if x)
    return parts


@given(bags(), bags())
def test_divergence_equals_its_slow_twin(before, after):
    """Documents, words and divergence of each label, and which labels changed at all."""
    differences = label_differences(LabelSetCounts(before), LabelSetCounts(after), 100)

    by_label = {difference.label: difference for difference in differences}
    for label in {name for _, labels in before + after for name in labels}:
        sides = words_of(before, label), words_of(after, label)
        documents = [sum(label in names for _, names in docs) for docs in (before, after)]
        if sides[0] == sides[1] and documents[0] == documents[1]:
            assert label not in by_label
            continue
        one = by_label.pop(label)
        assert [one.documents_before, one.documents_after] == documents
        assert [one.words_before, one.words_after] == [side.total() for side in sides]
        assert one.divergence == pytest.approx(sum(slow_parts(*sides).values()), abs=1e-12)
    assert by_label == {}


@given(bags(), bags())
def test_terms_are_ranked_by_their_part_and_direction(before, after):
    """Growing terms have a larger share afterwards; on each side the parts decrease."""
    for one in label_differences(LabelSetCounts(before), LabelSetCounts(after), 100):
        sides = words_of(before, one.label), words_of(after, one.label)
        n, m = (max(side.total(), 1) for side in sides)
        parts = slow_parts(*sides)
        rising = {t for t in parts if sides[1][t] / m > sides[0][t] / n}
        falling = {t for t in parts if sides[1][t] / m < sides[0][t] / n}
        for changes, expected in ((one.growing, rising), (one.falling, falling)):
            assert {change.term for change in changes} == expected
            ranks = [parts[change.term] for change in changes]
            assert ranks == pytest.approx(sorted(ranks, reverse=True))
            for change in changes:
                assert (change.before, change.after) == tuple(s[change.term] for s in sides)
                assert change.share_before == pytest.approx(change.before / n)
                assert change.share_after == pytest.approx(change.after / m)


@given(bags(), bags())
def test_the_other_direction(before, after):
    """Swapping the moments swaps growing and falling terms, and changes nothing else."""
    one, other = LabelSetCounts(before), LabelSetCounts(after)

    there = label_differences(one, other)
    back = {difference.label: difference for difference in label_differences(other, one)}

    assert len(there) == len(back)
    for difference in there:
        mirrored = back[difference.label]
        assert difference.divergence == pytest.approx(mirrored.divergence)
        assert [c.term for c in difference.growing] == [c.term for c in mirrored.falling]
        assert difference.words_before == mirrored.words_after


@given(bags())
def test_nothing_changed(documents):
    """A table does not differ from itself; twice the documents have the same words."""
    counts = LabelSetCounts(documents)

    assert label_differences(counts, LabelSetCounts(documents[::-1])) == []
    for difference in label_differences(counts, counts + counts):
        assert difference.divergence == 0
        assert difference.growing == difference.falling == []
        assert difference.documents_after == 2 * difference.documents_before


def test_one_side_without_words():
    """A new label has the largest possible divergence, unless it has no words."""
    after = LabelSetCounts([({"a": 2, "b": 1}, ["new"]), ({}, ["empty"])])

    new, empty = label_differences(LabelSetCounts(), after)

    assert (new.label, new.divergence) == ("new", 1.0)
    assert [change.term for change in new.growing] == ["a", "b"]
    assert (empty.label, empty.divergence, empty.documents_after) == ("empty", 0.0, 1)


def test_most_changed_first():
    """Labels with many documents of new words come first, those with the same words last."""
    before = LabelSetCounts([({"a": 1}, [label]) for label in ("few", "many", "same")])
    more = [({"b": 1}, ["few"])] + [({"b": 1}, ["many"])] * 9 + [({"a": 1}, ["same"])] * 20

    differences = label_differences(before, before + LabelSetCounts(more), 1)

    assert [difference.label for difference in differences] == ["many", "few", "same"]


def test_a_planted_word_is_found(path):
    """Only documents about races were added between the first two revisions."""
    with Store(path) as store:
        (sport,) = store.diff(1, 2)

    assert sport.label == "sport"
    assert [change.term for change in sport.growing] == ["race"]
    assert sport.growing[0].before == 0
    assert sport.growing[0].after == 4
    assert {change.term for change in sport.falling} == {"ball", "goal", "moon"}


def test_moments(path):
    """Revisions are numbers or digits, times are ISO strings; the default end is now."""
    with Store(path) as store:
        whole = store.diff(0)

        assert store.diff("0", "3") == store.diff(0, 3) == whole
        assert store.diff("2000-01-01", "2999-01-01T00:00:00Z") == whole
        assert store.diff(3) == []
        assert [d.label for d in store.diff(2)] == ["film"]


@pytest.mark.parametrize("moment", ["yesterday", 99, "99", -1, True, "20-20"])
def test_invalid_moments(path, moment):
    """One sentence names the argument and what it must be."""
    with Store(path) as store:
        with pytest.raises((ValueError, TypeError), match=r"before == .* revision from 0 to 3"):
            store.diff(moment)
        with pytest.raises((ValueError, TypeError), match=r"after == .* revision from 0 to 3"):
            store.diff(0, moment)


def test_some_labels(path):
    """Labels can be selected by id, by name and by an ancestor; unknown ones are rejected."""
    tree = LabelTree({"sport": "fun", "film": "fun"}, names={"film": "Cinema"})
    with Store(path, tree=tree) as store:
        assert [d.label for d in store.diff(0, labels=["space"])] == ["space"]
        assert [d.label for d in store.diff(0, labels=["Cinema"])] == ["film"]
        assert sorted(d.label for d in store.diff(0, labels=["fun"])) == ["film", "sport"]
        with pytest.raises(ValueError, match="label 'nothing' is not known"):
            store.diff(0, labels=["nothing"])
        with pytest.raises(ValueError, match="one string"):
            store.diff(0, labels="film")


def test_order_of_learning_does_not_matter(tmp_path):
    """The same documents in another order give the same difference."""
    differences = []
    for k, batch in enumerate((SPORT + RACES, RACES + SPORT[::-1])):
        with Store(tmp_path / f"{k}.db") as store:
            store.learn(batch)
            store.learn(FILM)
            differences.append([store.diff(0), store.diff(1)])

    assert differences[0] == differences[1]
    assert len(differences[0][0]) == 3


def test_forgotten_documents_are_in_neither(path):
    """A document that was forgotten since leaves no difference."""
    with Store(path) as store:
        store.forget(["4"])

        assert [d.label for d in store.diff(2, 3)] == []
        assert {d.label for d in store.diff(0)} == {"space", "sport"}


def test_command(path):
    """The command prints one line of JSON per label, with the requested number of words."""
    (sport,) = run(path, 1, 2, "-k", 1)

    assert sport["label"] == "sport"
    assert [change["term"] for change in sport["growing"]] == ["race"]
    assert len(sport["falling"]) == 1
    assert set(sport["falling"][0]) == {"term", "before", "after", "share_before", "share_after"}
    assert [one["label"] for one in run(path, 0, "--label", "space", "--label", "film")] == [
        "film",
        "space",
    ]
    assert "after == 'soon'" in str(run(path, 1, "soon", code=1))
    assert "does not exist" in str(run(path.parent / "no.db", 1, code=1))


def test_command_on_a_terminal(path, monkeypatch):
    """A table with words, or a sentence if nothing changed."""
    monkeypatch.setattr("polytopic.cli.store.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    shown = CliRunner().invoke(command, [str(path), "1", "2"]).output
    same = CliRunner().invoke(command, [str(path), "3"]).output

    line = next(line for line in shown.splitlines() if "sport" in line)
    assert "2 → 3" in line
    assert "7 → 12" in line
    assert "race" in line
    assert same == "No label changed.\n"
