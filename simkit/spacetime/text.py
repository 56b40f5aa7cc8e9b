"""A table as text of at most 100 columns: time, one narrow column each with its line of life, and the words.

`│` lives, `┊` is paused; `●` acts, `○` asks or answers, `·` calls back, `▶` and `◀` receive; `┬` begins,
`┴` ends, `X` dies; `◆` is a rule; `>` marks what decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simkit.spacetime.model import Row, Table, told_time

WIDTH = 100
_LANE_MIN, _LANE_MAX = 8, 18
_WORDS_MIN = 36
_LIVES = {"alive": "│", "paused": "┊", "none": " "}
_MARKS = {
    "start": "┬",
    "end": "┴",
    "death": "X",
    "pause": "┊",
    "resume": "│",
    "fault": "!",
    "send": "●",
    "receive": "●",
    "message": "●",
    "disk": "■",
    "point": "◇",
    "note": "◆",
    "steps": "●",
    "operation": "○",
    "callback": "·",
    "failure": "X",
}


def as_text(table: Table, *, width: int = WIDTH, with_orders: bool = True, with_events: bool = False) -> str:
    """The table in lines of at most `width` characters.

    With `with_orders` the last one says which orderings decide; with `with_events` there is one column more, before the
    others, with the number of each event, by which a replay can be stopped before it.
    """
    times = [told_time(row.at_ns) for row in table.rows]
    time_width = max(map(len, ["time", *times]))
    numbers = [f"{'' if row.kind == 'gap' else row.event:>5}  " if with_events else "" for row in table.rows]
    number_width = max(map(len, numbers), default=0)
    room = width - 2 - time_width - 2
    widest = max((len(one.name) for one in table.lanes), default=0) + 2
    lane = max(_LANE_MIN, min(_LANE_MAX, widest, (room - _WORDS_MIN) // max(1, len(table.lanes))))
    heading = "".join(head.ljust(lane) for head in _heads([one.name for one in table.lanes], lane - 1))
    lines = [f"  {'event  ' if with_events else '':>{number_width}}{'time':>{time_width}}  {heading}"]
    before = ""
    for row, number, time in zip(table.rows, numbers, times, strict=True):
        told = "" if time == before else time
        mark = ">" if row.decides else " "
        drawn = "".join(_drawn(row, len(table.lanes), lane))
        lines.append(
            _cut(f"{mark} {number:>{number_width}}{told:>{time_width}}  {drawn}{_words(row)}", width + number_width)
        )
        before = time
    if table.orders and with_orders:
        lines.append(f"  it fails only while {orders(table)}")
    if table.routine:
        lines.append(f"  ({table.routine} routine rows are not shown: ends of streams, usual latencies, callbacks)")
    return "\n".join(line.rstrip() for line in lines)


def _drawn(row: Row, lanes: int, width: int) -> Iterator[str]:
    """The lines of life and, across them, the arrow of a message."""
    cells = [(_LIVES[row.lives[lane]] if lane < len(row.lives) else " ").ljust(width) for lane in range(lanes)]
    line = list("".join(cells))
    if row.kind == "gap":
        yield "".join(line).replace("│", "┆")
        return
    at = row.lane * width
    line[at] = _MARKS[row.kind]
    if row.to is not None and row.to != row.lane:
        sender, receiver = (row.to, row.lane) if row.kind == "receive" else (row.lane, row.to)
        _arrow(line, sender * width, receiver * width, whole=row.kind != "send")
    yield "".join(line)


def _arrow(line: list[str], start: int, end: int, *, whole: bool) -> None:
    """From `start` to `end`; only its beginning for a message that is still on its way."""
    forward = end > start
    line[start] = "●" if whole or line[start] == " " else line[start]
    cells = range(start + 1, end) if forward else range(start - 1, end, -1)
    shown: Sequence[int] = cells if whole else cells[:3]
    for cell in shown:
        line[cell] = "┼" if line[cell] in "│┊" else "─"
    if whole:
        line[end] = "▶" if forward else "◀"
    elif shown:
        line[shown[-1]] = "╴" if forward else "╶"


def _words(row: Row) -> str:
    if row.kind == "gap":
        return f"… {row.left_out} row{'s' if row.left_out > 1 else ''} left out"
    tags = "".join(f"({tag}) " for tag in row.tags)
    return tags + words(row)


def orders(table: Table) -> str:
    """The orderings that decide, by the letters of their events."""
    return ", and ".join(f"({first}) comes before ({second})" for first, second in table.orders)


def words(row: Row) -> str:
    """What a row says, apart from its time and place."""
    if row.message is None or row.kind == "message":
        return row.text
    if row.kind == "receive":
        return f"arrives: {row.text} [{row.message}]"
    return f"{row.text} [{row.message}]" + ("" if row.arrives else ", which never arrives")


def _heads(names: Sequence[str], width: int) -> list[str]:
    """Names that fit: what they end with mostly tells them apart, else what they begin with."""
    ways = [[name if len(name) <= width else "…" + name[1 - width :] for name in names]]
    ways.append([_cut(name, width) for name in names])
    return max(ways, key=lambda heads: len(set(heads)))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
