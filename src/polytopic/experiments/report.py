"""A comparison as one HTML page that stands alone: no script, no network."""

from __future__ import annotations

import base64
from io import BytesIO

from polytopic.experiments.comparison import Comparison
from polytopic.experiments.figures import figures
from polytopic.experiments.tables import MAIN, Column, entries, notes, summary
from polytopic.explain.page import safe, section, table, whole_page

STYLE = """body { max-width: 76rem } .scroll { overflow-x: auto }
img { max-width: 100%; height: auto; background: #fff; border-radius: .5rem }
td:first-child { white-space: nowrap; padding-right: 1.5rem } td { white-space: nowrap }
"""
MORE = (
    Column("document_precision", "precision"),
    Column("document_recall", "recall"),
    Column("document_f1", "F1 of both"),
    Column("precision_at_3", "P@3"),
    Column("precision_at_5", "P@5"),
    Column("ndcg_at_3", "nDCG@3"),
    Column("tune_seconds", "tune s", 1, higher=False),
)
PAGE_POLICY = "img-src data:"


def to_html(found: Comparison, *, title: str | None = None) -> str:
    """Return a report for people who want to know which method to take."""
    drawn, found = list(figures(found)), found.largest()
    sections = [
        f"<p>{safe(summary(found))}</p>",
        _answer(found),
        section("All methods", f'{_table(found, MAIN)}<p class="soft">{safe(notes(found))}</p>'),
        *(
            section(heading, f'<p class="soft">{safe(sentence)}</p>{_image(figure, heading)}')
            for heading, sentence, figure in drawn
        ),
        section("More measures", _table(found, MORE)),
        _settings(found),
        _failures(found),
    ]
    page = whole_page(title or f"Methods on {found.corpus}", sections, STYLE)
    return page.replace("style-src 'unsafe-inline'", f"style-src 'unsafe-inline'; {PAGE_POLICY}")


def _answer(found: Comparison) -> str:
    """Say in sentences what the tables say in numbers."""
    lines = []
    goals = (("labeling_f", "labelling F"), ("exact_match", "exact match"))
    for measure, name in goals:
        best = found.best(measure)
        if best is None:
            continue
        value = best.mean(measure)
        equal = [
            row.title
            for row in found.rows
            if row.results and row is not best and (found.chance(row, measure) or 0) >= 0.05
        ]
        also = f" Not told apart from it by chance: {', '.join(equal)}." if equal else ""
        lines.append(
            f"<p><strong>{safe(best.title)}</strong> has the best {name}, {value:.3f}."
            f"{safe(also)}</p>"
        )
    return section("In short", "\n".join(lines)) if lines else ""


def _table(found: Comparison, columns) -> str:
    able = [row for row in found.rows if row.results]
    rows = [
        (
            safe(row.title),
            *(f"<strong>{c.text}</strong>" if c.best else c.text for c in cells),
        )
        for row, cells in zip(able, entries(found, columns), strict=True)
    ]
    heads = ["method", *(f">{column.heading}" for column in columns)]
    return f'<div class="scroll">{table(heads, rows)}</div>'


def _image(figure, heading: str) -> str:
    image = BytesIO()
    figure.savefig(image, format="svg")
    data = base64.b64encode(image.getvalue()).decode()
    return f'<img alt="{safe(heading)}" src="data:image/svg+xml;base64,{data}">'


def _settings(found: Comparison) -> str:
    rows = [
        (safe(row.title), safe("; ".join(sorted({str(one["settings"]) for one in row.results}))))
        for row in found.rows
        if row.results and any(one["settings"] for one in row.results)
    ]
    return section("Settings", table(["method", "chosen on held-out documents"], rows))


def _failures(found: Comparison) -> str:
    rows = [(safe(row.title), safe(row.failure)) for row in found.rows if row.failure]
    return section("Not run", table(["method", "why"], rows)) if rows else ""
