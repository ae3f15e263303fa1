"""One thread learns and forgets while others ask: each answer belongs to one state."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polytopic import Labeler
from polytopic.labeler import Selector
from polytopic.labels import LabelTree

TEXTS = ["a goal in the match", "the rover in orbit", "a goal from orbit", "the match and rover"]
LABELS = [["sport"], ["space"], ["space", "sport"], ["sport"]]
MORE = ["an opera aria", "aria about a rover", "opera goal", "a match of sopranos"]
MORE_LABELS = [["art"], ["art", "space"], ["art", "sport"], ["music"]]
ASKED = ["goal aria", "rover opera orbit", "", "a match", "sopranos in orbit"]
TREE = LabelTree({"sport": "life", "art": "life", "music": "art", "space": None})
ROUNDS = 12
QUESTIONS = {
    "predict": lambda labeler: labeler.predict(ASKED),
    "predict_level": lambda labeler: labeler.predict(ASKED, level=0),
    "suggest": lambda labeler: labeler.suggest(ASKED, 3),
    "suggest_some": lambda labeler: labeler.suggest(ASKED, 3, include=["life"]),
    "explain": lambda labeler: labeler.explain(ASKED[0], shares=True).to_dict(),
    "predict_proba": lambda labeler: labeler.predict_proba(ASKED).tolist(),
    "certainty": lambda labeler: labeler.certainty(ASKED).tolist(),
    "score": lambda labeler: labeler.score(TEXTS, LABELS),
    "label_terms": lambda labeler: labeler.label_terms(3),
    "map": lambda labeler: labeler.map().to_dict(),
    "select": lambda labeler: Selector(labeler, ["life"], min_share=0.2).select(ASKED),
    "counts": lambda labeler: labeler.counts_.n_docs,
}


@pytest.fixture
def switching():
    """Let threads switch as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("model", ["nb", "pmm1", "mml"])
@pytest.mark.usefixtures("switching")
def test_answers_are_of_one_state(model):
    """While labels are learned and forgotten, each answer is one that some state gives."""
    labeler = Labeler(model, tree=TREE).fit(TEXTS, LABELS)
    before = {name: ask(labeler) for name, ask in QUESTIONS.items()}
    changed = copy.copy(labeler).learn(MORE, MORE_LABELS)
    after = {name: ask(changed) for name, ask in QUESTIONS.items()}
    done = Event()

    def ask_on(name):
        answers = []
        while not done.is_set() or not answers:
            answers.append(QUESTIONS[name](labeler))
        return answers

    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        futures = {name: pool.submit(ask_on, name) for name in QUESTIONS}
        try:
            for _ in range(ROUNDS):
                labeler.learn(MORE, MORE_LABELS)
                labeler.forget(MORE, MORE_LABELS)
        finally:
            done.set()

    for name, answers in futures.items():
        assert all(answer in (before[name], after[name]) for answer in answers.result()), name
    assert {name: ask(labeler) for name, ask in QUESTIONS.items()} == before


def test_the_state_never_changes():
    """Learning, forgetting and taking counts leave an earlier state unchanged."""
    labeler = Labeler("pmm1").fit(TEXTS, LABELS)
    state, earlier = labeler.state_, copy.copy(labeler)
    answers, n_docs = labeler.predict(ASKED), state.counts.n_docs

    labeler.learn(MORE, MORE_LABELS)
    labeler.set_state(labeler.state_.with_counts(labeler.counts_ + labeler.counts_))

    assert earlier.state_ is state
    assert earlier.predict(ASKED) == answers
    assert state.counts.n_docs == state.model.counts_.n_docs == n_docs
    assert labeler.classes_.tolist() == ["art", "music", "space", "sport"]
    with pytest.raises(AttributeError):
        state.model = None


def test_copies_are_fitted_and_clones_are_not():
    """scikit-learn sees whether a labeler is fitted; copies and pickles answer the same."""
    labeler = Labeler("nb").fit(TEXTS, LABELS)

    check_is_fitted(labeler)
    assert not hasattr(clone(labeler), "model_")
    pickled = pickle.loads(pickle.dumps(labeler))  # noqa: S301
    for other in (copy.copy(labeler), copy.deepcopy(labeler), pickled):
        assert other.predict(ASKED) == labeler.predict(ASKED)
        assert other.learn(MORE, MORE_LABELS).classes_.size == 4
    assert labeler.classes_.size == 2
