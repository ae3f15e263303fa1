"""The map of labels as a figure of matplotlib."""

from __future__ import annotations

import numpy as np

from polytopic.errors import PolytopicError
from polytopic.explain.dendrogram import Dendrogram
from polytopic.explain.label_map import LabelMap

ROW = 0.17  # height of a label in inches
LARGEST = 60  # of the correlations in inches: labels get smaller beyond
LONGEST = 40  # characters of a label that are drawn
TICKS = 4  # heights told
FIRM, FAINT = "#333333", "#e6e6e6"  # lines, and what is not compared


def draw(found: LabelMap):
    """Draw the dendrogram and, beside it, the correlations in its order; return the figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PolytopicError(
            "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
        ) from error
    names = [_drawable(label.shown) for label in found.in_order]
    row = min(ROW, LARGEST / len(names))
    side, tree = max(2.0, row * len(names)), min(6.0, 2.0 + 0.02 * len(names))
    beside = 0.55 * row * max(map(len, names)) + 0.3
    figure = Figure(figsize=(tree + beside + side + 1.2, side + beside + 0.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[tree, side])
    _draw_tree(left, found.dendrogram)
    image = _draw_correlations(right, found)
    _write_names(right, names, 72 * row * 0.7)
    figure.colorbar(image, ax=right, label="correlation; grey: none", shrink=min(1, 4 / side))
    return figure


def _draw_tree(axes, dendrogram: Dendrogram) -> None:
    from matplotlib.collections import LineCollection

    depth = dendrogram.depth
    lines = [
        [(depth(above), top), (depth(height), top), (depth(height), bottom), (depth(below), bottom)]
        for height, (top, above), (bottom, below) in dendrogram.joints()
    ]
    axes.add_collection(LineCollection(lines, colors=FIRM, linewidths=1.0))
    heights = np.unique(np.linspace(*dendrogram.span, TICKS)).tolist()
    axes.set_xticks([depth(height) for height in heights], [f"{height:.2f}" for height in heights])
    axes.set(xlim=(-0.02, 1.0), xlabel="distance of words")
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.tick_params(left=False, labelleft=False)


def _draw_correlations(axes, found: LabelMap):
    order = found.dendrogram.order
    values = found.correlations[np.ix_(order, order)]
    strongest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 1.0
    diagonal = np.where(np.eye(len(values), dtype=bool), 0.0, np.nan)
    axes.set_facecolor(FAINT)
    axes.imshow(diagonal, cmap="Greys", vmin=-1, vmax=1, aspect="auto")
    image = axes.imshow(values, cmap="RdBu_r", vmin=-strongest, vmax=strongest, aspect="auto")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return image


def _write_names(axes, names: list[str], size: float) -> None:
    """Write names beside the rows and below the columns, as they are: no formula in them."""
    places = range(len(names))
    plain = {"fontsize": size, "parse_math": False}
    axes.set_yticks(places, names, **plain)
    axes.set_xticks(places, names, rotation=90, **plain)
    axes.tick_params(labelleft=True)


def _drawable(name: str) -> str:
    """Return a name on one short line."""
    line = "".join(c if c.isprintable() else " " for c in name)
    half = (LONGEST - 1) // 2  # of paths the ends tell most
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1 - half]}…{line[-half:]}"
