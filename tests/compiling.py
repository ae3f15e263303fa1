"""Compile what the tests call, once and on both cores, so that each test process need not do it."""

import subprocess
import sys

import numpy as np
from scipy import sparse

from polytopic import (
    MML,
    PDMM,
    PMM1,
    PMM2,
    BoosTexter,
    CoL,
    LabelTree,
    NaiveBayes,
    Stack,
)
from polytopic.cli.compile import use as use_labeler
from polytopic.decision import RULES, Rule, TreeCohort, UnconstrainedCohort

MODELS = {
    "pmm": [
        NaiveBayes(),
        PMM1(),
        PMM2(),
        PMM1(decode="greedy"),
        PMM1(prior="uniform", decode="greedy"),
        PMM2(decode="greedy"),
    ],
    "stack": [Stack()],
    "pdmm": [PDMM(), PDMM(decode="greedy")],
    "mml": [MML(), MML(labels="neighbours")],
    "mml-exact": [MML(rank=None), MML(rank=None, labels="neighbours")],
    "col": [
        CoL(5),
        CoL(5, predict_mode="sets"),
        CoL(2, batch_size=9, predict_mode="paper"),
        CoL(3, inference="paper"),
    ],
    "boostexter": [BoosTexter(3)],
    "rules": [
        UnconstrainedCohort(cohort="best"),
        *(
            kind(LabelTree({"a": "b"})) if kind.needs_tree else kind()
            for kind in (entry.load() for entry in RULES.values())
        ),
    ],
}

LABELERS = {"pmm": "pmm1", "mml": "mml", "col": "col", "boostexter": "boostexter"}
TOGETHER = (  # they share kernels
    ("pmm", "pdmm", "rules", "boostexter"),
    ("mml", "mml-exact", "stack", "col"),
)


def use(model):
    """Call all methods of a model on a few documents."""
    rng = np.random.default_rng(0)
    if isinstance(model, Rule):
        scores, Y = rng.normal(size=(20, 3)), sparse.csr_matrix(np.ones((20, 3)))
        if isinstance(model, TreeCohort):
            model.set_params(tree=LabelTree({"a": "b"}))
        model.fit(classes=["a", "b", "c"]).decide(scores, reference=np.zeros(20))
        model.decide(scores.astype(np.float32), reference=np.zeros(20))
        value = None if model.swept is None else [getattr(model, model.swept)]
        model.count(scores, Y, value, reference=np.zeros(20), measure=lambda *counts: None)
        return
    X, Y = rng.poisson(1.0, (40, 6)), (rng.random((40, 3)) < 0.5).astype(int)
    Y[:, 0] = 1
    model.fit(X, Y).predict(X)
    model.predict_proba(X)
    model.word_labels(X)
    if isinstance(model, MML):
        model.best_with(X, 0)
        if model.labels == "all":
            model.fit(X, Y, warm=model, rows=np.arange(len(Y)))
    elif isinstance(model, CoL):
        model.best_with(X, 0)
        model.score(X, Y)
    elif isinstance(model, BoosTexter | Stack):
        model.best_with(X, 0)
    else:
        model.log_likelihood(X, Y)
        model.loo_predict(X, Y)
    if hasattr(model, "predict_sets"):
        model.predict_sets(X)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for name in sys.argv[1:]:
            if name in LABELERS:
                use_labeler(LABELERS[name])
            for model in MODELS[name]:
                use(model)
    else:
        command = [sys.executable, "-m", "tests.compiling"]
        parts = [subprocess.Popen([*command, *names]) for names in TOGETHER]
        sys.exit(max(part.wait() for part in parts))
