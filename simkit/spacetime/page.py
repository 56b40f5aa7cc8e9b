"""One HTML file that stands alone: its style is in it, it asks nothing of any network, and it reads without scripts.

Light and dark by the reader's setting; headings, a table and links by keyboard; what marks something is told in words too.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from simkit.spacetime.drawing import diagram
from simkit.spacetime.model import Table
from simkit.spacetime.text import orders

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --quiet: #5b6475; --paper: #fff; --raised: #f4f6f9; --rule: #d5dae3;
  --link: #0b57d0; --bad: #b3261e; --bad-paper: #fdeceb; --message: #3b6fb6; --disk: #6b7280; --fault: #b45309;
  --fault-paper: #fff4e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #a3abba; --paper: #14171d; --raised: #1d222b;
  --rule: #343b48; --link: #8ab4f8; --bad: #ff8a80; --bad-paper: #3a1f20; --message: #8ab4f8; --disk: #a3abba;
  --fault: #f5b04c; --fault-paper: #37290f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 1.5rem 2rem 4rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; max-width: 60rem; }
a { color: var(--link); }
.quiet, caption { color: var(--quiet); font-size: .875rem; }
.bad { color: var(--bad); }
pre, code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .875rem; }
pre { background: var(--raised); border: 1px solid var(--rule); border-radius: 6px; padding: .75rem 1rem; overflow-x: auto;
  margin: .5rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.plain { list-style: none; padding: 0; margin: .25rem 0 1rem; }
.list td, .list th { text-align: left; padding: .25rem 1.5rem .25rem 0; border-bottom: 1px solid var(--rule); }
figure { margin: .5rem 0; }
.scroll { overflow: auto; max-height: 92vh; border: 1px solid var(--rule); border-radius: 6px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.spacetime table { border-collapse: collapse; min-width: 100%; }
.spacetime caption { caption-side: bottom; text-align: left; padding: .5rem .75rem; }
.spacetime th { position: sticky; top: 0; z-index: 1; }
.spacetime th { background: var(--raised); font-weight: 600; font-size: .8125rem; text-align: left; height: 2rem;
  border-bottom: 1px solid var(--rule); white-space: nowrap; }
.spacetime th.lanes { padding: 0; } .spacetime th.lanes span { display: inline-block; text-align: center;
  overflow: hidden; text-overflow: ellipsis; vertical-align: middle; padding: 0 .25rem; }
.spacetime td { padding: 0; height: 28px; line-height: 28px; white-space: nowrap; }
.spacetime td.lanes { vertical-align: top; line-height: 0; }
.spacetime .time { text-align: right; padding: 0 .75rem; color: var(--quiet); font-variant-numeric: tabular-nums;
  font-size: .8125rem; }
.spacetime .what { padding: 0 .75rem; width: 100%; }
.spacetime td.what { font-family: ui-monospace, "DejaVu Sans Mono", monospace;
  font-size: .8125rem; }
tr.minor .what, tr.gap .what { color: var(--quiet); }
tr.death .what { color: var(--bad); } tr.fault .what { color: var(--fault); }
tr.decides td.what, tr.decides td.time { background: var(--fault-paper); font-weight: 600; }
tr.failure td.what, tr.failure td.time { background: var(--bad-paper); color: var(--bad); }
tr:target td.what { outline: 2px solid var(--link); outline-offset: -2px; }
.badge { font: 600 .6875rem/1 system-ui, sans-serif; border: 1px solid currentColor; border-radius: 4px; padding: 1px 4px; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
svg { display: block; }
.life { stroke: var(--quiet); stroke-width: 1.5; } .life.paused { stroke-dasharray: 3 4; } .life.gap { stroke-dasharray: 1 5; }
.message { stroke: var(--message); stroke-width: 1.75; fill: none; } .message.lost { stroke-dasharray: 5 4; }
path.lost { stroke: var(--bad); stroke-width: 2; } .head { fill: var(--message); }
.band.decides { fill: var(--fault-paper); } .band.failure { fill: var(--bad-paper); }
circle.dot { fill: var(--message); } circle.steps { fill: var(--quiet); }
circle.ring { fill: none; stroke: var(--fault); stroke-width: 2.5; }
.bar { stroke: var(--ink); stroke-width: 3; fill: none; } path.death { stroke: var(--bad); stroke-width: 3; }
polygon.fault { fill: var(--fault); } .disk { fill: var(--paper); stroke: var(--disk); stroke-width: 2; }
polygon.point { fill: var(--message); } polygon.note { fill: var(--ink); }
tr.note td.what { font-weight: 600; }
@media print { body { max-width: none; padding: 0; } .scroll { overflow: visible; max-height: none; } }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole file of these parts, which are HTML."""
    body = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def as_html(table: Table, title: str = "Space-time table of a run") -> str:
    """A page with the table, and what decides."""
    return page(title, [f"<h1>{escape(title)}</h1>", *why(table), diagram(table)])


def why(table: Table, sentence: str = "") -> list[str]:
    """What decides, with links to the rows of the events that `sentence` calls by their letters, and where tasks stood.

    Without a sentence, the orderings of the table.
    """
    told = sentence or (f"It fails only while {orders(table)}." if table.orders else "")
    if not told:
        return []
    items = []
    for stack in table.stacks:
        link = f'<a href="#event-{escape(stack.tag)}">({escape(stack.tag)})</a> {escape(stack.title)}'
        if len(stack.frames) == 1:
            items.append(f"<li>{link}, at <code>{escape(stack.frames[0])}</code></li>")
        else:
            frames = "\n".join(escape(frame) for frame in stack.frames) or "not known"
            items.append(f"<li>{link}, where its task stood before it:<pre>{frames}</pre></li>")
    listed = [f'<ul class="plain">{"".join(items)}</ul>'] if items else []
    return [f"<p>{_linked(told, table)}</p>", *listed]


def _linked(text: str, table: Table) -> str:
    told = escape(text)
    for stack in table.stacks:
        told = told.replace(f"({stack.tag})", f'<a href="#event-{stack.tag}">({stack.tag})</a>')
    return told
