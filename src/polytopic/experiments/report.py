"""A comparison as one HTML page that stands alone: no script, no network."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np

from polytopic.experiments.comparison import Comparison, Row
from polytopic.experiments.figures import figures
from polytopic.experiments.tables import MAIN, WORSE, Column, Entry, entries, notes, summary
from polytopic.explain.html import safe, section, table, whole_page

STYLE = """body { max-width: 76rem } .scroll { overflow-x: auto }
img { width: 100%; height: auto; background: #fff; border-radius: .5rem }
.figures { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)) }
td:first-child { padding-right: 1.5rem } .scroll td { white-space: nowrap; font-size: .9rem }
small { color: var(--soft); font-size: .75rem }
"""
NEAR = 0.01  # samples F1 by which a method may be lower and still be called as good
MORE = (
    Column("samples_precision", "precision"),
    Column("samples_recall", "recall"),
    Column("document_f1", "F1 of both"),
    Column("precision_at_3", "P@3"),
    Column("precision_at_5", "P@5"),
    Column("ndcg_at_3", "nDCG@3"),
    Column("tune_seconds", "tune s", 1, higher=False),
)
PAGE_POLICY = "img-src data:"


def to_html(found: Comparison, *, title: str | None = None) -> str:
    """Return a report for people who want to know which method to take."""
    drawn, more, found = list(figures(found)), _more_documents(found), found.largest()
    sections = [
        f"<p>{safe(summary(found))}</p>",
        _answer(found),
        more,
        section("All methods", f'{_table(found, MAIN)}<p class="soft">{safe(notes(found))}</p>'),
        f'<div class="figures">{"".join(_drawn(*one) for one in drawn)}</div>',
        section("More measures", _table(found, MORE)),
        _settings(found),
        _failures(found),
    ]
    page = whole_page(title or f"Methods on {found.corpus}", sections, STYLE)
    return page.replace("style-src 'unsafe-inline'", f"style-src 'unsafe-inline'; {PAGE_POLICY}")


def _answer(found: Comparison) -> str:
    """Say in sentences what the tables say in numbers."""
    lines = []
    for measure, name in (("samples_f1", "samples F1"), ("subset_accuracy", "subset accuracy")):
        best = found.best(measure)
        if best is None:
            continue
        equal = [row for row in found.rows if _alike(found, row, best, measure)]
        also = (
            f" No method but {_listed(equal)} comes so near that chance may explain the difference."
            if equal
            else " All others are worse by more than chance."
        )
        told = f"<strong>{safe(best.title)}</strong> has the best {name}, {best.mean(measure):.3f}."
        lines.append(f"<p>{told}{safe(also) if len(found.rows) > 1 else ''}</p>")
    return section("In short", "\n".join([*lines, _quickest(found)])) if lines else ""


def _alike(found: Comparison, row: Row, best: Row, measure: str) -> bool:
    """Tell whether chance may explain why a method is not the best."""
    return bool(row.results) and row is not best and (found.chance(row, measure) or 0) >= WORSE


def _listed(rows: list[Row]) -> str:
    *most, last = [row.title for row in rows]
    return f"{'; '.join(most)} and {last}" if most else last


def _quickest(found: Comparison) -> str:
    """Say which method takes least time among those that are nearly as good as the best."""
    best = found.best("samples_f1")
    if best is None:
        return ""
    near = [
        row
        for row in found.rows
        if row.results and row.mean("samples_f1") >= best.mean("samples_f1") - NEAR
    ]
    quick = min(near, key=_seconds)
    if quick is best:
        return ""
    return (
        f"<p><strong>{safe(quick.title)}</strong> is the quickest of those whose samples F1 is "
        f"lower by {NEAR:g} at most: {_seconds(quick):.2g} CPU seconds to learn and to answer, "
        f"where {safe(best.title)} needs {_seconds(best):.2g}.</p>"
    )


def _seconds(row: Row) -> float:
    return row.mean("fit_seconds") + row.mean("predict_seconds")


def _more_documents(found: Comparison) -> str:
    """Say how much the last doubling of the documents gave, where there is a curve."""
    if found.protocol.kind != "curve":
        return ""
    best = found.largest().best("samples_f1")
    own = next((row for row in found.rows if best and row.method == best.method), None)
    if own is None:
        return ""
    sizes = [one["n_train"] for one in own.results]
    if len(set(sizes)) < 2:
        return ""
    before, last = sorted(set(sizes))[-2:]
    values = own.values("samples_f1")
    f, g = (values[np.array(sizes) == size].mean() for size in (before, last))
    return (
        f"<p>From {before:,} to {last:,} documents to learn from, the samples F1 of "
        f"{safe(own.title)} went from {f:.3f} to {g:.3f}.</p>"
    )


def _table(found: Comparison, columns) -> str:
    able = [row for row in found.rows if row.results]
    rows = [
        (
            safe(row.title),
            *(f"<strong>{_spread(c)}</strong>" if c.best else _spread(c) for c in cells),
        )
        for row, cells in zip(able, entries(found, columns), strict=True)
    ]
    heads = ["method", *(f">{column.heading}" for column in columns)]
    return f'<div class="scroll">{table(heads, rows)}</div>'


def _spread(entry: Entry) -> str:
    """Return an entry, its standard deviation smaller."""
    mean, sign, spread = entry.text.partition(" ± ")
    return f"{mean} <small>{sign.strip()} {spread}</small>" if sign else mean


def _drawn(heading: str, sentence: str, figure) -> str:
    image = BytesIO()
    figure.savefig(image, format="svg")
    data = base64.b64encode(image.getvalue()).decode()
    image_tag = f'<img alt="{safe(sentence)}" src="data:image/svg+xml;base64,{data}">'
    return section(heading, f'<p class="soft">{safe(sentence)}</p>{image_tag}')


def _settings(found: Comparison) -> str:
    rows = [
        (safe(row.title), safe("; ".join(sorted({_said(one["settings"]) for one in row.results}))))
        for row in found.rows
        if row.results and any(one["settings"] for one in row.results)
    ]
    return section("Settings", table(["method", "chosen on held-out documents"], rows))


def _said(settings: dict[str, object]) -> str:
    """Return settings as people write them."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )


def _failures(found: Comparison) -> str:
    rows = [(safe(row.title), safe(row.failure)) for row in found.rows if row.failure]
    return section("Not run", table(["method", "why"], rows)) if rows else ""
