"""Pages that stand alone, without script and network: their style, and parts that are safe."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from string import Template

from polytopic.explain.drawing import PALETTE

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #595959; --line: #d9d9d9; --ground: #fff;
  --fade: .55 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --soft: #a8a8a8; --line: #444; --ground: #161616; --fade: .38 } }
body { font: 1rem/1.6 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; line-height: 1.3 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; border-left: .6rem solid rgb(var(--c));
  padding-left: .5rem }
.side { display: grid; gap: 0 2rem; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)) }
p { margin: .5rem 0 } .soft { color: var(--soft); font-size: .9rem }
.bar { display: block; height: .5rem; background: var(--line); border-radius: 1rem }
.bar span { display: block; height: 100%; background: rgb(var(--c)); border-radius: 1rem }
table { border-collapse: collapse; width: 100%; font-size: .95rem }
th, td { text-align: left; font-weight: normal; padding: .15rem .5rem .15rem 0;
  border-bottom: 1px solid var(--line) }
thead th { color: var(--soft); font-size: .85rem }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.wide { width: 30% } tfoot td { font-weight: 600 }
@media print { body { margin: 0; max-width: none } .bar, .bar span {
  print-color-adjust: exact; -webkit-print-color-adjust: exact } section { break-inside: avoid } }
$style
</style>
</head>
<body>
<main>
<h1>$title</h1>
$sections
</main>
</body>
</html>
""")
COLOURS = "\n".join(
    f".l{k} {{ --c: {int(c[1:3], 16)} {int(c[3:5], 16)} {int(c[5:], 16)} }}"
    for k, c in enumerate(PALETTE)
)


def whole_page(title: object, sections: Iterable[str], style: str = "") -> str:
    """Return a page of safe sections, those that are empty left out, with a style of its own."""
    return PAGE.substitute(
        title=safe(title), style=f"{style}{COLOURS}", sections="\n".join(filter(None, sections))
    )


def section(heading: object, content: str) -> str:
    """Return a part of a page under a heading; its content is safe."""
    return f"<section>\n<h2>{safe(heading)}</h2>\n{content}\n</section>"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], total: Iterable[str] = ()) -> str:
    """Return a table of safe cells.

    Columns whose name starts with ``>`` are set to the right; one without a name has bars.
    """
    columns = list(columns)
    kinds = [' class="n"' if c[:1] == ">" else "" if c else ' class="wide"' for c in columns]
    head = "".join(
        f'<th scope="col"{kind}>{name.removeprefix(">")}</th>'
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = "\n".join(_row(row, kinds) for row in rows)
    foot = f"\n<tfoot>{_row(total, kinds)}</tfoot>" if total else ""
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table>"


def _row(cells: Iterable[str], kinds: list[str]) -> str:
    return "<tr>" + "".join(f"<td{k}>{c}</td>" for c, k in zip(cells, kinds, strict=True)) + "</tr>"


def bar(part: float) -> str:
    """Return a bar that is filled to a part of its width."""
    return f'<span class="bar" aria-hidden="true"><span style="width: {part:.1%}"></span></span>'


def signed(number: float, digits: int) -> str:
    """Return a number with its sign."""
    return f"{number:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def safe(text: object) -> str:
    """Return a text without markup, control characters and what UTF-8 cannot write."""
    return escape(CONTROL.sub(" ", str(text)))
