"""Drift of a stream, compared with slow twins on plain dicts, and with planted changes."""

import json
import sys
from collections import Counter
from datetime import date, timedelta
from math import comb, exp, log

import numpy as np
import pytest
from click.testing import CliRunner

from polytopic import PMM1, LabelTree, NaiveBayes, PolytopicError, Store
from polytopic.cli.store import drift as command
from polytopic.models.mixture.estimators import TEMPERATURE

TERMS = [f"w{k:02d}" for k in range(30)]
LABELS = ["arts", "film", "space", "sport"]
SMOOTHING = 0.1  # of PMM1 and NaiveBayes
FIRST = date(2024, 1, 30)  # a Tuesday


def random_stream(seed, n_docs=60, n_days=12):
    """Return documents with one label each, except some of the last days, which have two."""
    random = np.random.default_rng(seed)
    documents = []
    for k in range(n_docs):
        day = int(random.integers(n_days))
        words = random.choice(TERMS[: 5 + 2 * day], size=int(random.integers(0, 9)))
        n_labels = 2 if day == n_days - 1 and k % 2 else 1
        among = LABELS[: 2 + (day > 3) + (day > 7)]
        documents.append(
            {
                "id": f"d{k}",
                "counts": {str(term): n for term, n in Counter(words).items()},
                "labels": random.choice(among, size=n_labels, replace=False).tolist(),
                "time": (FIRST + timedelta(days=day)).isoformat(),
            }
        )
    return documents


def plain_stream(*, days=20, a_day=10):
    """Return a stream without drift: the same words, and labels in turn, day after day."""
    return [
        {
            "id": f"{day:02d}-{k:02d}",
            "counts": {"said": 1, f"about-{LABELS[k % 4]}": 2},
            "labels": [LABELS[k % 4]],
            "time": f"{FIRST + timedelta(days=day)}T{k % 24:02d}:00:00Z",
        }
        for day in range(days)
        for k in range(a_day)
    ]


def learned(path, *batches, **settings):
    """Return a store that has learned some documents."""
    store = Store(path, **settings)
    for batch in batches:
        store.learn(batch)
    return store


def start_of(document, by):
    """Return the first day of a document's period."""
    day = date.fromisoformat(document["time"][:10])
    if by == "week":
        return day - timedelta(days=day.weekday())
    if by == "year":
        return day.replace(month=1, day=1)
    return day.replace(day=1) if by == "month" else day


def slow_evaluate(earlier, now):
    """Return log likelihood and known words per document, None if all its labels are new."""
    words = {label: Counter() for d in earlier for label in d["labels"]}
    for document in earlier:
        (label,) = document["labels"]
        words[label].update(document["counts"])
    known = {term for counts in words.values() for term in counts}
    evaluated = []
    for document in now:
        labels = [label for label in document["labels"] if label in words]
        log_likelihood, n_words = 0.0, 0
        for term, n in document["counts"].items():
            if term in known and labels:
                mean = sum(
                    (words[label][term] + SMOOTHING)
                    / (words[label].total() + SMOOTHING * len(known))
                    for label in labels
                ) / len(labels)
                log_likelihood += n * log(mean)
                n_words += n
        evaluated.append((log_likelihood, n_words) if labels else None)
    return evaluated, known


def slow_perplexity(evaluated):
    """Return exp of the mean surprise of a word."""
    evaluated = [one for one in evaluated if one]
    n_words = sum(n for _, n in evaluated)
    return exp(-sum(value for value, _ in evaluated) / n_words) if n_words else None


def slow_trend(now, n_now, earlier, n_earlier):
    """Return the trend of a label by sums of binomial probabilities."""
    if not earlier:
        return "new" if now else ""
    n, share = now + earlier, n_now / (n_now + n_earlier)
    chance = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    if now > 1 and sum(chance[now:]) < 0.005:
        return "growing"
    return "vanishing" if sum(chance[: now + 1]) < 0.005 else ""


def approx(value):
    """Return a number to compare with, or None."""
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("by", ["day", "week", "month", "year"])
@pytest.mark.parametrize("seed", range(3))
def test_a_slow_twin_agrees(tmp_path, seed, by):
    """All numbers of all periods, one document and one word after another."""
    documents = random_stream(seed)
    starts = sorted({start_of(d, by) for d in documents})

    with learned(tmp_path / "s.db", documents) as store:
        drift = store.drift(by=by)

    assert [period.start for period in drift.periods] == [str(start) for start in starts]
    for period, start in zip(drift.periods, starts, strict=True):
        earlier = [d for d in documents if start_of(d, by) < start]
        now = [d for d in documents if start_of(d, by) == start]
        evaluated, known = slow_evaluate(earlier, now)
        words = Counter()
        for document in now:
            words.update(document["counts"])
        assert (period.documents, period.words) == (len(now), words.total())
        assert period.perplexity == approx(slow_perplexity(evaluated))
        if not earlier:
            assert (period.unknown, period.new_label_documents) == (None, 0)
        else:
            unknown = sum(n for term, n in words.items() if term not in known)
            assert period.unknown == approx(unknown / words.total() if words else None)
            assert period.new_label_documents == evaluated.count(None)
        by_label = {one.label: one for one in period.labels}
        for label in LABELS:
            own = [k for k, d in enumerate(now) if label in d["labels"]]
            n_before = sum(label in d["labels"] for d in earlier)
            expected = n_before / len(earlier) * len(now) if earlier else None
            assert (label in by_label) == (bool(own) or (expected or 0) >= 1)
            if label in by_label:
                one = by_label[label]
                assert one.documents == len(own)
                assert one.expected == approx(expected)
                perplexity = slow_perplexity([evaluated[k] for k in own]) if n_before else None
                assert one.perplexity == approx(perplexity)
                trend = slow_trend(len(own), len(now), n_before, len(earlier)) if earlier else ""
                assert one.trend == trend


@pytest.mark.parametrize("model", ["pmm1", "nb"])
@pytest.mark.parametrize("by", ["day", "week"])
def test_labels_are_predicted_before_they_are_learned(tmp_path, by, model):
    """F is that of a model fitted on earlier documents only."""
    documents = random_stream(5)

    with learned(tmp_path / "s.db", documents, model=model) as store:
        periods = store.drift(by=by).periods

    for period in periods:
        earlier = [d for d in documents if str(start_of(d, by)) < period.start]
        now = [d for d in documents if str(start_of(d, by)) == period.start]
        if any(d["counts"] for d in earlier):
            assert period.samples_f1 == approx(slow_f(earlier, now, model))
        else:
            assert period.samples_f1 is None
    assert sum(period.samples_f1 is not None for period in periods) >= len(periods) - 1


def slow_f(earlier, now, model):
    """Return the mean F of documents labelled by a model that is fitted on earlier ones."""
    known = sorted({term for d in earlier for term in d["counts"]})
    labels = sorted({label for d in earlier for label in d["labels"]})
    X = np.array([[d["counts"].get(term, 0) for term in known] for d in earlier])
    Y = np.array([[label in d["labels"] for label in labels] for d in earlier], dtype=int)
    untuned = {"pmm1": PMM1(temperature=TEMPERATURE), "nb": NaiveBayes()}[model]
    fitted = untuned.fit(X, Y)
    values = []
    for document in now:
        (row,) = fitted.predict([[document["counts"].get(term, 0) for term in known]])
        given, true = {labels[k] for k in np.flatnonzero(row)}, set(document["labels"])
        values.append(2 * len(given & true) / (len(given) + len(true)))
    return sum(values) / len(values)


def test_a_stream_without_drift(tmp_path):
    """Nothing trends, no word is unknown, and the perplexity falls to that of the source."""
    with learned(tmp_path / "s.db", plain_stream()) as store:
        periods = store.drift().periods

    assert len(periods) == 20
    assert all(label.trend == "" for period in periods for label in period.labels)
    assert [period.unknown for period in periods[1:]] == [0.0] * 19
    perplexities = [period.perplexity for period in periods[1:]]
    assert perplexities == sorted(perplexities, reverse=True)
    source = exp(-(log(1 / 3) + 2 * log(2 / 3)) / 3)
    assert perplexities[-1] == pytest.approx(source, rel=0.05)


def test_planted_changes_are_found(tmp_path):
    """A new word, a new label, a growing one and a vanishing one are found on the right day."""
    documents = plain_stream(days=20, a_day=40)
    for document in documents:
        if document["time"] >= str(FIRST + timedelta(days=15)):
            if document["labels"] == ["film"]:
                document["labels"] = ["sport"]  # no more films from here on
            elif document["labels"] == ["arts"]:
                document["labels"] = ["virus"]
                document["counts"]["covid"] = 5

    with learned(tmp_path / "s.db", documents) as store:
        periods = store.drift().periods

    assert all(one.trend == "" for period in periods[:15] for one in period.labels)
    changed, last = periods[15], periods[19]
    trends = {one.label: one.trend for one in changed.labels}
    assert trends == {
        "arts": "vanishing",
        "film": "vanishing",
        "space": "",
        "sport": "growing",
        "virus": "new",
    }
    gone = changed.trending("vanishing")[0]
    assert (gone.label, gone.documents, gone.expected) == ("arts", 0, pytest.approx(10))
    assert changed.unknown == pytest.approx(50 / (120 + 50))
    assert changed.new_label_documents == 10
    assert changed.perplexity > periods[14].perplexity
    assert last.unknown == 0.0
    assert [one.label for one in last.trending("growing")] == ["virus"]


def test_one_document_is_not_growth(tmp_path):
    """A rare label that occurs once more has no trend; twice on one day is a trend."""
    rare = [
        {"id": f"r{k}", "counts": {"rare": 1}, "labels": ["rare"], "time": time}
        for k, time in enumerate(["2024-01-30", "2024-03-01", "2024-03-02", "2024-03-02"])
    ]
    with learned(tmp_path / "s.db", plain_stream(days=30, a_day=20), rare) as store:
        *_, once, twice = store.drift(labels=["rare"]).periods

    assert once.labels[0].expected < 0.005
    assert [one.labels[0].trend for one in (once, twice)] == ["", "growing"]


def test_order_of_learning_does_not_matter(tmp_path):
    """Batches, their order and corrections change no bit."""
    documents = random_stream(7)
    wrong = [document | {"labels": ["wrong"]} for document in documents[:5]]

    with (
        learned(tmp_path / "a.db", documents) as one,
        learned(tmp_path / "b.db", wrong, documents[30:], documents[29::-1]) as other,
    ):
        assert one.drift() == other.drift()
        assert one.drift().periods


def test_since_takes_earlier_documents_into_account(tmp_path):
    """Periods since or until a time are equal to those of the whole stream."""
    day = str(FIRST + timedelta(days=5))
    with learned(tmp_path / "s.db", random_stream(3)) as store:
        whole = store.drift().periods

        assert store.drift(since=day).periods == [p for p in whole if p.start >= day]
        assert store.drift(until=day).periods == [p for p in whole if p.start < day]
        assert store.drift(since="2030-01-01").periods == []
        assert store.drift(until="1999-01-01").periods == []


def test_documents_without_a_time(tmp_path):
    """They count on the day when they were first learned; unlabelled ones are left out."""
    timeless = [{"id": "x", "text": "goal goal", "labels": ["sport"]}, {"id": "y", "text": "moon"}]
    with learned(tmp_path / "s.db", timeless) as store:
        learned_at = store.learn([{"id": "z", "text": "goal", "labels": ["sport"]}]).time
        (period,) = store.drift(by="month").periods

    assert period.start == learned_at[:7] + "-01"
    assert (period.documents, period.words) == (2, 3)


def test_some_labels(tmp_path):
    """Selected labels have the same numbers as among all; the totals stay."""
    tree = LabelTree({"film": "arts", "space": None}, names={"space": "Outer space"})
    with learned(tmp_path / "s.db", random_stream(1), tree=tree) as store:
        whole = store.drift(by="week")
        some = store.drift(by="week", labels=["arts", "Outer space"])
        with pytest.raises(ValueError, match="label 'nothing' is not known"):
            store.drift(labels=["nothing"])

    assert {one.label for period in some.periods for one in period.labels} == set(LABELS[:3])
    for one, other in zip(some.periods, whole.periods, strict=True):
        assert one.labels == [label for label in other.labels if label.label != "sport"]
        assert (one.perplexity, one.unknown) == (other.perplexity, other.unknown)


def test_the_model_of_the_store_is_used(tmp_path):
    """A count model is the store's own; PMM1 takes the place of other models."""
    documents = random_stream(2)
    drifts = {}
    for model in ("pmm1", "nb", "mml"):
        with learned(tmp_path / f"{model}.db", documents, model=model) as store:
            drifts[model] = store.drift()

    assert drifts["mml"] == drifts["pmm1"]
    assert drifts["nb"].periods[1].perplexity == approx(drifts["pmm1"].periods[1].perplexity)
    assert drifts["nb"].periods[-1].perplexity != drifts["pmm1"].periods[-1].perplexity


def test_empty_documents(tmp_path):
    """Documents without words, and a store without documents, have no perplexity."""
    empty = [
        {"id": str(k), "text": "", "labels": ["a"], "time": f"2024-01-0{k}"} for k in (1, 2, 3)
    ]
    with learned(tmp_path / "s.db") as store:
        assert store.drift().periods == []
        store.learn(empty)
        periods = store.drift().periods

    assert [(p.documents, p.words, p.perplexity, p.unknown) for p in periods] == [
        (1, 0, None, None)
    ] * 3
    assert periods[2].labels[0].expected == 1.0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"by": "hour"}, r"by == 'hour', must be one of day, week, month, year\."),
        ({"since": "2024-02-01", "until": "2024-02-01"}, "must be before until == '2024-02-01'"),
        ({"since": "2024-03-01", "until": date(2024, 2, 1)}, "since == '2024-03-01', must be"),
        ({"since": "soon"}, "since == 'soon', must be an ISO 8601 time"),
        ({"until": "99"}, "until == '99', must be an ISO 8601 time"),
        ({"labels": "sport"}, "labels == 'sport' is one string"),
    ],
)
def test_bad_input(tmp_path, wrong, sentence):
    """One sentence says what is wrong."""
    with learned(tmp_path / "s.db") as store, pytest.raises(ValueError, match=sentence):
        store.drift(**wrong)


# The command and the drawing


def test_command(tmp_path):
    """One line of JSON a period, as the library gives it."""
    with learned(tmp_path / "s.db", random_stream(4)) as store:
        expected = store.drift(by="week", since="2024-02-05", labels=["film"])
    options = ["--by", "week", "--since", "2024-02-05", "--label", "film"]

    result = CliRunner().invoke(command, [str(tmp_path / "s.db"), *options])
    missing = CliRunner().invoke(command, [str(tmp_path / "no.db")])

    assert result.exception is None
    periods = [json.loads(line) for line in result.output.splitlines()]
    assert periods == expected.to_dict()["periods"]
    assert {one["label"] for one in periods[0]["labels"]} == {"film"}
    assert "does not exist" in str(missing.exception)


def test_command_on_a_terminal(tmp_path, monkeypatch):
    """A table with the labels of each trend, the largest changes first, and a plot."""
    monkeypatch.setattr("polytopic.cli.store.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    new = [
        {"id": f"n{k}", "counts": {"fresh": 1}, "labels": [f"n{k}"], "time": "2025-01-01"}
        for k in range(7)
    ]
    path, image = tmp_path / "s.db", tmp_path / "drift.png"
    learned(path, plain_stream(days=3), new).close()
    learned(tmp_path / "empty.db").close()

    shown = CliRunner().invoke(command, [str(path), "--plot", str(image)]).output
    empty = CliRunner().invoke(command, [str(tmp_path / "empty.db")]).output

    first, *_, last = (line for line in shown.splitlines() if line.startswith(" 202"))
    assert first.split() == ["2024-01-30", "10", "-", "-", "-"]
    assert "n0, n1, n2, n3, n4 and 2 more" in last
    assert "100.0%" in last
    assert f"Wrote {image}." in shown
    assert image.read_bytes().startswith(b"\x89PNG")
    assert empty == "No documents.\n"


def test_plot(tmp_path):
    """Bars, two lines and a map of the labels with a trend; days without documents are grey."""
    documents = plain_stream(days=10, a_day=40)
    documents = [d for d in documents if d["time"] < "2024-02-03" or d["time"] > "2024-02-05"]
    hostile = {
        "id": "h",
        "counts": {"fresh": 1},
        "labels": ["$\\frac$\x1b" + 60 * "l"],
        "time": "2024-02-06",
    }
    with learned(tmp_path / "s.db", documents, [hostile]) as store:
        figure = store.drift().plot()
        plain = store.drift(labels=["sport"]).plot()

    figure.savefig(tmp_path / "x.svg")
    bars, perplexity, unknown, labels = figure.axes[:4]
    heights = bars.patches[0].get_data().values
    assert heights.tolist() == [40] * 4 + [0] * 2 + [40, 41, 40, 40]
    assert np.isfinite(perplexity.lines[1].get_ydata()).sum() == 7
    assert perplexity.lines[1].get_xdata()[0] == np.datetime64("2024-01-30T12")
    assert np.nanmax(unknown.lines[1].get_ydata()) == pytest.approx(100 / 121)
    (name,) = [text.get_text() for text in labels.get_yticklabels()]
    assert name.startswith("$\\frac$ ll")
    assert len(name) == 30
    drawn = np.isfinite(np.ma.filled(labels.collections[0].get_array(), np.nan)).ravel()
    assert drawn.tolist() == [True] * 4 + [False] * 2 + [True] * 4
    assert len(plain.axes) == 3


def test_plot_reads_well(tmp_path):
    """Each drawing says what it shows, counts start at zero, and shares end at one."""
    late = [
        {"id": f"n{k}", "counts": {"fresh": 1}, "labels": ["new"], "time": "2024-02-06"}
        for k in range(9)
    ]
    with learned(tmp_path / "s.db", plain_stream(days=10, a_day=40), late) as store:
        drift = store.drift()
    figure = drift.plot()

    figure.draw_without_rendering()
    bars, perplexity, unknown, labels = figure.axes
    (bar,) = labels.child_axes
    assert [axes.get_title(loc="left") for axes in figure.axes[:4]] == [
        "documents per day",
        "perplexity of known words, given the labels",
        "unknown words",
        "labels: more or fewer documents than before",
    ]
    assert [axes.get_ylim()[0] for axes in (bars, perplexity, unknown)] == [0, 0, 0]
    assert unknown.get_ylim()[1] == 100
    assert [text.get_text() for text in unknown.get_yticklabels()] == ["0%", "1%", "10%", "100%"]
    assert unknown.get_yticks().tolist() == [0, 1, 10, 100]
    assert unknown.get_yscale() == "symlog"
    middle = unknown.transData.transform([(0, 0), (0, 1), (0, 10), (0, 100)])[:, 1]
    assert np.diff(middle)[1] == pytest.approx(np.diff(middle)[2])  # logarithmic from 1% on
    assert bars.get_xlim() == labels.get_xlim()
    assert bars.get_xlim() == tuple(bars.patches[0].get_data().edges[[0, -1]])
    for axes in (bars, perplexity, unknown):
        assert [axes.spines[side].get_visible() for side in ("top", "right", "left", "bottom")] == [
            False,
            False,
            True,
            True,
        ]
        assert axes.get_axisbelow()
        assert [line.get_visible() for line in axes.get_ygridlines()].count(True)
        assert not any(line.get_visible() for line in axes.get_xgridlines())
    assert not any(spine.get_visible() for spine in labels.spines.values())
    assert not bar.spines["outline"].get_visible()
    assert [text.get_text() for text in bar.get_yticklabels()] == ["fewer", "as before", "more"]
    assert bar.get_yticks().tolist() == [-4, 0, 4]
    colours = {axes.lines[1].get_color() for axes in (perplexity, unknown)}
    assert len(colours | {bars.patches[0].get_facecolor()}) == 3


def test_plot_of_deviations(tmp_path):
    r"""A label's colour is how many standard deviations it has more or fewer documents than before.

    The variance is one more than the expected count, so that one document proves nothing.
    """
    late = [
        {"id": f"n{k}", "counts": {"fresh": 1}, "labels": ["new"], "time": "2024-02-06"}
        for k in range(9)
    ]
    with learned(tmp_path / "s.db", plain_stream(days=10, a_day=40), late) as store:
        drift = store.drift()
    figure = drift.plot()

    labels = figure.axes[3]
    colours = labels.collections[0]
    deviations = np.ma.filled(colours.get_array(), np.nan).reshape(-1, 10)
    names = [text.get_text() for text in labels.get_yticklabels()]
    expected = {
        (one.label, day): (one.documents - one.expected) / np.sqrt(one.expected + 1)
        for day, period in enumerate(drift.periods)
        for one in period.labels
        if one.expected is not None
    }
    assert names == ["new"]
    assert deviations.tolist() == [[expected.get(("new", day), 0.0) for day in range(10)]]
    assert deviations.max() > 1
    assert colours.get_clim() == (-4, 4)
    assert labels.yaxis.get_inverted()
    assert labels.get_yticks().tolist() == [0.5]


def test_plot_of_few_and_of_many_periods(tmp_path):
    """Marks are large if there are few, and a faint line bridges days without a value."""
    sizes = []
    for days in (60, 64):
        documents = plain_stream(days=days, a_day=4)
        with learned(tmp_path / f"{days}.db", documents) as store:
            figure = store.drift().plot()
        faint, line = figure.axes[2].lines
        sizes.append(line.get_markersize())

    assert sizes[0] > sizes[1]
    assert faint.get_alpha() < 1
    assert faint.get_linewidth() < line.get_linewidth()
    assert faint.get_color() == line.get_color()
    assert np.isfinite(faint.get_ydata()).all()
    assert line.get_marker() == "."


def test_plot_is_as_high_as_its_labels(tmp_path):
    """Up to three labels have the same height, more need more; at most twelve are drawn."""
    heights = []
    for n_labels in (1, 3, 4, 12, 13):
        new = [
            {"id": f"{k}-{j}", "counts": {"fresh": 1}, "labels": [f"n{k}"], "time": "2024-02-06"}
            for k in range(n_labels)
            for j in range(9)
        ]
        with learned(tmp_path / f"{n_labels}.db", plain_stream(days=9, a_day=8), new) as store:
            figure = store.drift().plot()
        heights.append(figure.get_size_inches()[1])
        assert len(figure.axes[3].get_yticklabels()) == min(n_labels, 12)

    one, three, four, twelve, more = heights
    assert one == three < four < twelve == more


def test_plot_of_long_names(tmp_path):
    """A name of 30 characters is drawn in full; a longer one is shortened in the middle."""
    names = ["s" * 30, "l" * 15 + "middle" + "r" * 15]
    new = [
        {"id": f"{name}{k}", "counts": {"fresh": 1}, "labels": [name], "time": "2024-02-06"}
        for name in names
        for k in range(9)
    ]
    with learned(tmp_path / "s.db", plain_stream(days=9, a_day=8), new) as store:
        figure = store.drift().plot()

    shown = {text.get_text() for text in figure.axes[3].get_yticklabels()}
    assert shown == {"s" * 30, "l" * 15 + "…" + "r" * 14}


def test_plot_of_many_labels(tmp_path):
    """The labels that changed most are drawn, the earliest on top."""
    many = [
        {
            "id": f"{label}-{k}",
            "counts": {"fresh": 1},
            "labels": [f"new{label:02d}"],
            "time": f"2025-01-{30 - label:02d}",
        }
        for label in range(20)
        for k in range(1 + label)
    ]
    with learned(tmp_path / "s.db", plain_stream(days=2, a_day=4), many) as store:
        figure = store.drift(by="month", labels=[d["labels"][0] for d in many]).plot()
        daily = store.drift(since="2025-01-01", labels=[d["labels"][0] for d in many]).plot()

    names = [[t.get_text() for t in f.axes[3].get_yticklabels()] for f in (figure, daily)]
    assert names[0] == [f"new{label:02d}" for label in range(8, 20)]
    assert names[1] == names[0][::-1]


def test_no_plot(tmp_path, monkeypatch):
    """Without documents or without matplotlib, one sentence says so."""
    with learned(tmp_path / "s.db") as store:
        with pytest.raises(PolytopicError, match="no documents in these periods"):
            store.drift().plot()
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(PolytopicError, match="pip install 'polytopic\\[plots\\]'"):
            store.drift().plot()
