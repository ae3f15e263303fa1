"""A rule written as CONTRIBUTING describes works wherever rules are used."""

import numpy as np
import pytest

from polytopic import Labeler, load
from polytopic.corpus import load_sample
from polytopic.decision import LabelDecision, Rule, describe_rule, registry, tune_decision
from polytopic.decision.kernels import ALL
from polytopic.models import NaiveBayes
from polytopic.parameters import check_number


class Margin(Rule):
    """Accept labels whose score is at most a margin below the best."""

    grid = {"margin": (4.0, 2.0, 1.0)}  # noqa: RUF012
    swept = "margin"
    falls = True

    def __init__(self, margin=1.0, *, reject=False):
        self.margin = margin
        self.reject = reject

    def _check_parameters(self):
        check_number(self.margin, "margin", min_val=0)

    def _cut(self, scores, reference, values, cut, ties):
        cut[:] = scores.max(axis=1, keepdims=True) - values
        ties[:] = ALL


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    """List the rule."""
    monkeypatch.setitem(registry.RULES, "Margin", registry.RuleEntry("Margin", __name__))


def test_it_decides():
    """Labels near the best are accepted, on bare scores and on a model's."""
    scores = np.array([[0.0, -0.5, -3.0], [1.0, 1.0, 0.0]])
    X, Y = [[3, 0, 1], [0, 2, 1], [2, 2, 0]], [["sport"], ["film"], ["film", "sport"]]

    assert Margin().decide(scores).toarray().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert LabelDecision(NaiveBayes(), Margin(100.0)).fit(X, Y).predict([[4, 1, 0]]).all()
    with pytest.raises(ValueError, match="margin == -1"):
        Margin(-1.0).decide(scores)


def test_it_is_tuned():
    """It is tried with the values of its grid, like every listed rule."""
    X, Y = np.eye(6, 4, dtype=int) + 1, np.eye(6, 3, dtype=int)
    Y[3:] = 1

    tuned = tune_decision(NaiveBayes(), X, Y, cv=2)

    assert sorted(p["margin"] for p in tuned.surface if p["rule"] == "Margin") == [1.0, 2.0, 4.0]
    assert describe_rule(tuned.best_rules["Margin"]).startswith("Margin(margin=")


def test_it_is_saved(tmp_path):
    """A model file keeps it."""
    documents = load_sample()[:60]
    labeler = Labeler("nb", rule=Margin(2.0)).fit(documents)

    labeler.save(tmp_path / "news.model")

    loaded = load(tmp_path / "news.model")
    assert loaded.rule.margin == 2.0
    assert loaded.predict(documents) == labeler.predict(documents)
