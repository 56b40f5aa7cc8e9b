"""A table as HTML: rows of time and words, and beside them one SVG with lines of life, marks and messages.

The rows say in words all that the drawing shows, so that who does not see it loses nothing. Marks differ in shape, never in
colour alone. Text is never cut: a wide table scrolls.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from simkit.spacetime.model import OUTSIDE, Row, Table, told_time
from simkit.spacetime.text import words

ROW, LANE, LANE_NARROW = 28, 132, 96
_MANY = 6
_LEGEND = (
    "Time is virtual and runs down; each column is a process or a task, drawn while it lives and dotted while it is paused. "
    "Arrows are messages, squares changes of a disk, triangles faults and choices, diamonds rules and named points, crosses "
    "ends by force; what has a ring decides. A replay can be stopped before an event by its number."
)
_TOLD = {
    "gap": "left out",
    "send": "sends",
    "receive": "receives",
    "message": "sends",
    "disk": "disk",
    "fault": "fault",
    "death": "dies",
    "failure": "fails",
}


def diagram(table: Table) -> str:
    """The table as a `<figure>`; its colours come from the page's style sheet."""
    width = LANE if len(table.lanes) <= _MANY else LANE_NARROW
    names = "".join(f'<span style="width:{width}px">{escape(lane.name)}</span>' for lane in table.lanes)
    rows = "\n".join(_table_row(table, at, width) for at in range(len(table.rows)))
    notes = "".join(f"<p>{escape(note)}</p>" for note in _notes(table))
    return f"""<figure class="spacetime">
<div class="scroll" tabindex="0" role="region" aria-label="Space-time table">
<table>
<caption class="quiet">{_LEGEND}</caption>
<thead><tr><th scope="col" class="time">event</th><th scope="col" class="time">time</th>
<th scope="col" class="lanes">{names}</th><th scope="col" class="what">what happens</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
{notes}
</figure>"""


def _notes(table: Table) -> Iterator[str]:
    if table.left_out:
        yield f"{table.left_out} rows are left out, where the table says so: it has at most so many as can be read."
    if table.routine:
        yield f"{table.routine} routine rows are not shown: ends of streams, usual latencies, callbacks."


def _table_row(table: Table, at: int, width: int) -> str:
    row = table.rows[at]
    time = "" if row.kind == "gap" else told_time(row.at_ns)
    same = at > 0 and table.rows[at - 1].kind != "gap" and told_time(table.rows[at - 1].at_ns) == time
    shown = f'<span class="hidden">{time}</span>' if same else time
    drawing = f'<td class="lanes" rowspan="{len(table.rows)}">{_svg(table, width)}</td>' if at == 0 else ""
    tags = "".join(f'<b class="tag">({escape(tag)})</b> ' for tag in row.tags)
    badge = '<b class="badge">decides</b> ' if row.decides and row.kind != "failure" else ""
    names = [f"event-{tag}" for tag in row.tags]
    place = f' id="{escape(names[0], quote=True)}"' if names else ""
    kind = f"{row.kind}{' decides' if row.decides else ''}{' minor' if row.minor else ''}"
    told = f'<span class="hidden">{escape(_where(table, row))}: </span>{badge}{tags}{escape(_words(row))}'
    number = "" if row.kind == "gap" else row.event
    start = f'<tr{place} class="{kind}"><td class="time">{number}</td>'
    return f'{start}<td class="time">{shown}</td>{drawing}<td class="what">{told}</td></tr>'


def _where(table: Table, row: Row) -> str:
    """The place in words, for those who do not see the drawing."""
    if row.kind == "gap":
        return ""
    lanes = [table.lanes[row.lane].name]
    if row.to is not None:
        lanes.append(table.lanes[row.to].name)
    joined = " from ".join(lanes) if row.kind == "receive" else " to ".join(lanes)
    return f"{joined} {_TOLD.get(row.kind, '')}".strip()


def _words(row: Row) -> str:
    return f"… {row.left_out} rows left out" if row.kind == "gap" else words(row)


# ---- the drawing


def _svg(table: Table, width: int) -> str:
    height = len(table.rows) * ROW
    total = len(table.lanes) * width
    parts = [*_bands(table, total), *_lives(table, width), *_messages(table, width), *_marks(table, width)]
    inside = "\n".join(parts)
    return (
        f'<svg aria-hidden="true" viewBox="0 0 {total} {height}" style="width:{total}px;height:{height}px">\n'
        f"{inside}\n</svg>"
    )


def _x(lane: int, width: int) -> int:
    return lane * width + width // 2


def _y(at: int) -> int:
    return at * ROW + ROW // 2


def _bands(table: Table, total: int) -> Iterator[str]:
    """The ground of rows that decide goes on under the drawing."""
    for at, row in enumerate(table.rows):
        if row.decides:
            kind = "failure" if row.kind == "failure" else "decides"
            yield f'<rect class="band {kind}" x="0" y="{at * ROW}" width="{total}" height="{ROW}"/>'


def _lives(table: Table, width: int) -> Iterator[str]:
    """A line for each lane, in pieces of one state."""
    for lane in range(len(table.lanes)):
        begun, state = 0, "alive" if table.lanes[lane].host in {OUTSIDE, ""} else "none"
        for at, row in enumerate(table.rows):
            life = f"{row.lives[lane]}{' gap' if row.kind == 'gap' and row.lives[lane] != 'none' else ''}"
            if life != state:
                middle = at * ROW if "gap" in life + state else _y(at)
                yield from _life(lane, width, begun, middle, state)
                begun, state = middle, life
        yield from _life(lane, width, begun, len(table.rows) * ROW, state)


def _life(lane: int, width: int, top: int, bottom: int, state: str) -> Iterator[str]:
    if state != "none" and bottom > top:
        x = _x(lane, width)
        yield f'<line class="life {state}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>'


def _messages(table: Table, width: int) -> Iterator[str]:
    """An arrow from where each message was sent to where it arrived, as far as both rows are shown."""
    sent: dict[int | None, int] = {}
    for at, row in enumerate(table.rows):
        if row.kind == "send" and row.message is not None:
            sent[row.message] = at
    arrived = {row.message for row in table.rows if row.kind == "receive"}
    for at, row in enumerate(table.rows):
        if row.to is None:
            continue
        here, there = _x(row.lane, width), _x(row.to, width)
        if row.kind == "message":
            yield _arrow(here, _y(at) - 5, there, _y(at) + 5)
        elif row.kind == "receive":
            begun = sent.get(row.message)
            start = (there, _y(begun)) if begun is not None else (here + (40 if there > here else -40), _y(at) - 10)
            yield _arrow(*start, here, _y(at))
        elif row.message not in arrived:
            reach = 36 if there >= here else -36
            yield _arrow(here, _y(at), here + reach, _y(at) + 8, lost=not row.arrives)


def _arrow(x1: int, y1: int, x2: int, y2: int, *, lost: bool = False) -> str:
    if x1 == x2:  # to itself: a bow
        return f'<path class="message" d="M{x1} {y1} C{x1 + 30} {y1} {x2 + 30} {y2} {x2} {y2}"/>' + _head(
            x1 + 9, y2, x2, y2
        )
    line = f'<line class="message{" lost" if lost else ""}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
    return line + (_cross(x2, y2, 4, "lost") if lost else _head(x1, y1, x2, y2))


def _head(x1: int, y1: int, x2: int, y2: int) -> str:
    """The head of an arrow that comes from (x1, y1), clear of the line of life that it meets."""
    length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    left = (x2 - 9 * ux - 4 * uy, y2 - 9 * uy + 4 * ux)
    right = (x2 - 9 * ux + 4 * uy, y2 - 9 * uy - 4 * ux)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in ((x2, y2), left, right))
    return f'<polygon class="head" points="{points}"/>'


def _marks(table: Table, width: int) -> Iterator[str]:
    for at, row in enumerate(table.rows):
        if row.kind == "gap":
            continue
        x, y = _x(row.lane, width), _y(at) - (5 if row.kind == "message" else 0)
        if row.decides:
            yield f'<circle class="ring" cx="{x}" cy="{y}" r="11"/>'
        yield _mark(row, x, y)


def _mark(row: Row, x: int, y: int) -> str:
    match row.kind:
        case "start" | "end":
            return f'<line class="bar" x1="{x - 8}" y1="{y}" x2="{x + 8}" y2="{y}"/>'
        case "death" | "failure":
            return _cross(x, y, 7, "death")
        case "fault":
            return f'<polygon class="fault" points="{x},{y - 7} {x + 7},{y + 6} {x - 7},{y + 6}"/>'
        case "disk":
            return f'<rect class="disk" x="{x - 5}" y="{y - 5}" width="10" height="10"/>'
        case "point" | "note":
            return f'<polygon class="{row.kind}" points="{x},{y - 7} {x + 7},{y} {x},{y + 7} {x - 7},{y}"/>'
        case "receive":
            return ""
        case "pause" | "resume":
            return f'<path class="bar" d="M{x - 4} {y - 5} v10 M{x + 4} {y - 5} v10"/>'
        case _:
            return f'<circle class="{"steps" if row.kind == "steps" else "dot"}" cx="{x}" cy="{y}" r="4"/>'


def _cross(x: int, y: int, reach: int, kind: str) -> str:
    left, right, top, bottom = x - reach, x + reach, y - reach, y + reach
    return f'<path class="{kind}" d="M{left} {top} L{right} {bottom} M{right} {top} L{left} {bottom}"/>'
