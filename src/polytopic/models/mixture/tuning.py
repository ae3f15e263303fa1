"""Tuning of temperature and smoothing, on leave-one-out predictions of training documents."""

from __future__ import annotations

import numpy as np

from polytopic.counts.sampling import sample_rows
from polytopic.kernels.blocks import block_borders, run_blocks
from polytopic.models.leave_one_out import loo_theta, table_rows
from polytopic.models.mixture import tuning_kernels as kernels

TEMPERATURES = tuple(2.0 ** (k / 2) for k in range(-2, 11))  # 0.5 to 32
SMOOTHINGS = (0.1, 0.3, 1.0)
TIE = 1e-12
TUNING_SETS = 100
KINDS = {"f": kernels.F_SCORE, "greedy": kernels.GREEDY, "map": kernels.MAP}


def tune(model, X, Y, parameters) -> None:
    """Tune the ``parameters`` ("temperature", "smoothing"), and store them in the model.

    The best values have the highest mean F of leave-one-out predictions or, with ``decode="map"``,
    the highest subset accuracy; of equally good temperatures, the one nearest to 1 is taken. At
    most :data:`~polytopic.counts.TUNING_DOCS` documents are predicted; candidates are the
    ``TUNING_SETS`` seen label sets with the highest bounds.
    """
    docs = sample_rows(X, Y)
    if not docs.size:
        return
    X, Y = X[docs], Y[docs]
    fits: list[tuple] = []
    for smoothing in SMOOTHINGS if "smoothing" in parameters else (model.smoothing_,):
        if smoothing != model.smoothing_:
            model.tuned_["smoothing"] = smoothing
            model._learn(model.classes_.tolist(), model._sets)
        temperatures = TEMPERATURES if "temperature" in parameters else (model.temperature_,)
        quality = loo_quality(model, X, Y, np.array(temperatures))
        best = quality.max()
        equal = [t for t, q in zip(temperatures, quality, strict=True) if q >= best - TIE]
        nearest = min(equal, key=lambda t: abs(np.log(t)))
        fits.append((best, -len(fits), smoothing, nearest))
    _, _, smoothing, temperature = max(fits)
    if "smoothing" in parameters:
        model.tuned_["smoothing"] = smoothing
        model._learn(model.classes_.tolist(), model._sets)
    if "temperature" in parameters:
        model.tuned_["temperature"] = temperature


def loo_quality(model, X, Y, temperatures, n_sets=TUNING_SETS) -> np.ndarray:
    """Return the mean quality of leave-one-out predictions at each temperature."""
    out = np.zeros((X.shape[0], temperatures.size))
    rows = table_rows(model, X, Y)
    prior = model._prior.leave_one_out(rows, Y)
    if prior is None:
        return out.sum(axis=0)
    theta, problem = loo_theta(model, X, Y), model._posterior().problem
    order = np.argsort(rows, kind="stable")
    n_words = np.diff(X.indptr)
    starts = np.cumsum(n_words * np.diff(Y.indptr)) - n_words * np.diff(Y.indptr)
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)

    def block(places):
        kernels.quality_by_temperature(
            X.data,
            indices,
            indptr,
            problem,
            prior,
            order[places],
            theta,
            starts,
            temperatures,
            n_sets,
            KINDS[model.decode],
            out,
        )

    run_blocks(block, block_borders(np.concatenate([[0], np.cumsum(n_words[order])])))
    return out.sum(axis=0) / max(X.shape[0], 1)
