"""From a trace to rows: each event of interest in words, at its place, in order; steps of one task in a row are one row."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Collection, Iterator
from pathlib import PurePath
from typing import Any, cast

from simkit.spacetime.model import OUTSIDE, Draft, Kind, Life, Place, told_time
from simkit.spacetime.watch import Known
from simkit.trace import Told, Trace

#: Of a longer run only so many of the last entries are told step by step; whatever is no step is told of all.
STEPS_MAX = 50_000
ROOT = 0
MAIN = 1
#: What is drawn all the time: latencies, and which points are switched on.
_USUAL = ("latency:", "switch:", "switch")
#: How the kit's own tasks are called.
_OURS = ("simkit.", "wind up ")
#: (connection or socket, from, to): a direction in which messages keep their order.
_Way = tuple[int, str, str]


def read(trace: Trace, known: Known, deciding: Collection[tuple[int, int]] = ()) -> list[Draft]:
    """The rows of a whole run; steps that are `deciding` (task number, which of its steps, from 1) have rows of their own."""
    reader = _Reader(known, _ends_of_connections(trace, known), frozenset(deciding), max(0, len(trace) - STEPS_MAX))
    for entry in _merged(trace, known):
        reader.take(entry)
    return reader.drafts


def _merged(trace: Trace, known: Known) -> Iterator[int | Told]:
    """Entries and what was told beside them, in order; the latter with a kind that begins with "+"."""
    beside: list[tuple[int, Told]] = [(at, ("+drawn", *site, value)) for at, site, value in known.drawn]
    beside += [(at, (f"+{kind}", *details)) for at, (kind, *details) in trace.asides or ()]
    waiting = collections.deque(sorted(beside, key=_place))
    for index, entry in enumerate(trace.entries()):
        while waiting and waiting[0][0] <= index:
            yield waiting.popleft()[1]
        yield entry
    yield from (told for _, told in waiting)


def _place(told: tuple[int, Told]) -> int:
    return told[0]


def place_of(label: str | None, task: int | None = None) -> Place:
    """The place of a process by its label, "host/name#pid"; None is the outside."""
    if label is None:
        return Place(task=task)
    host, _, rest = label.partition("/")
    return Place(host, rest.rpartition("#")[0] or rest, task)


def _ends_of_connections(trace: Trace, known: Known) -> dict[tuple[int, str], str]:
    """The process at each end of a connection: the one that sends from there, whether before or after it receives."""
    ends: dict[tuple[int, str], str] = {}
    running: str | None = None
    for entry in trace.entries():
        if type(entry) is int:
            running = known.owners.get(entry) if entry >= 0 else None
        elif running is not None and cast("Told", entry)[0] == "net":
            _, _, number, source, *_ = cast("tuple[Any, ...]", entry)
            if running.partition("/")[0] == source:
                ends.setdefault((number, source), running)
    return ends


class _Reader:
    """Goes through a run once."""

    def __init__(
        self, known: Known, ends: dict[tuple[int, str], str], deciding: frozenset[tuple[int, int]], first: int
    ) -> None:
        self.drafts: list[Draft] = []
        self._known = known
        self._ends = ends
        self._deciding = deciding
        self._first = first  # entry from which on steps are told
        self._begun = False
        self._places: dict[int, Place] = {}
        self._now_ns = 0
        self._running: int | None = None
        self._steps: collections.Counter[int] = collections.Counter()
        self._living: dict[str, list[str]] = collections.defaultdict(list)
        self._travelling: dict[_Way, collections.deque[int]] = collections.defaultdict(collections.deque)
        self._datagrams: dict[int, tuple[Draft, _Way]] = {}
        self._numbers = itertools.count(1)
        self._says = ""
        self._index = 0
        self._turns: collections.defaultdict[str, list[Draft]] = collections.defaultdict(
            list
        )  # drawn and not told, by key
        self._event = 0
        self._tellers: dict[str, Callable[..., None]] = {
            "start": self._start,
            "exited": self._ended,
            "failed": self._ended,
            "killed": self._ended,
            "pause": self._paused,
            "resume": self._resumed,
            "net": self._net,
            "boundary": self._boundary,
            "power-loss": self._power_loss,
            "lost": self._lost,
            "boot": self._boot,
            "slow-io": self._slow_io,
            "wall-clock": self._wall_clock,
            "calm": self._calm,
            "point": self._point,
            "out-of-memory": self._out_of_memory,
            "callback": self._callback,
            "+note": self._note,
            "+drawn": self._drawn,
            "+net": self._net_fault,
            "+says": self._hear,
            "+arrives": self._datagram_arrives,
            "+calls": self._calls,
            "+operation": self._operation,
            "+turn": self._turn_lost,
        }

    def take(self, entry: int | Told) -> None:
        """One entry, or something told beside them."""
        self._event = self._index
        if type(entry) is int:
            if entry < 0:
                self._now_ns, self._running = -entry, None  # what follows is done by timers, up to the next step
            else:
                self._step(entry)
            self._index += 1
            self._turns.clear()
            return
        kind = str(cast("Told", entry)[0])
        if kind.startswith("+"):
            self._event = max(0, self._index - 1)
        teller = self._tellers.get(kind)
        if teller is not None:
            teller(*cast("Told", entry))
        elif not kind.startswith("+"):
            self._add("fault", self._here(), " ".join(map(str, cast("Told", entry))))
        if not kind.startswith("+"):
            self._index += 1
            self._turns.clear()

    # ---- helpers

    def _add(self, kind: Kind, place: Place, text: str, **more: Any) -> Draft:
        draft = Draft(self._now_ns, kind, place, text, event=self._event, **more)
        self.drafts.append(draft)
        return draft

    def _here(self, host: str | None = None) -> Place:
        """Where the running task is, if that is on `host`; else whoever lives there."""
        if self._running is not None:
            place = place_of(self._known.owners.get(self._running), self._running)
            if host in {None, place.host}:
                return place
        if host is None or host == OUTSIDE:
            return Place()
        living = self._living.get(host)
        return place_of(living[-1]) if living else Place(host)

    def _end(self, number: int, host: str) -> Place:
        """The end of a connection at `host`."""
        label = self._ends.get((number, host))
        if label is not None:
            return place_of(label)
        return Place() if host == OUTSIDE else self._here(host)

    def _at_host(self, kind: Kind, host: str, text: str) -> None:
        self._add(kind, self._here(host), text)

    # ---- steps

    def _step(self, task: int) -> None:
        self._running = task
        nth = self._steps[task] = self._steps[task] + 1
        decides = (task, nth) in self._deciding
        if not decides and (task == ROOT or self._index < self._first or self._is_kits(task)):
            return
        if self._index >= self._first > 0 and not self._begun:
            self._begun = True
            self._add("note", Place(), f"the steps of the {self._first} events before are not told one by one")
        place = self._places.get(task)
        if place is None:
            place = self._places[task] = place_of(self._known.owners.get(task), task)
        last = self.drafts[-1] if self.drafts else None
        if last is not None and last.kind == "steps" and last.place is place and not (last.decides or decides):
            last.steps += 1
            return
        name = short_name(self._known.names.get(task, ""), task)
        self._add("steps", place, f"step {nth} of {name}", steps=1, nth=nth, decides=decides, minor=not decides)

    def _is_kits(self, task: int) -> bool:
        """Whether it only serves a program: what keeps an event loop alive is not what the program does."""
        return self._known.names.get(task, "").startswith(_OURS)

    def _callback(self, _kind: str, _name: str) -> None:
        """An event loop has many of its own; those of the program are told beside the trace."""

    def _calls(self, _kind: str, name: str, owner: str | None) -> None:
        self._add("callback", place_of(owner), f"callback {name}", minor=True)

    # ---- processes and hosts

    def _start(self, _kind: str, label: str) -> None:
        place = place_of(label)
        self._living[place.host].append(label)
        name = label.partition("/")[2]
        self._add("start", place, f"starts {name}", alive={place: "alive"})

    def _ended(self, kind: str, label: str, error: str = "") -> None:
        place = place_of(label)
        living = self._living[place.host]
        if label in living:
            living.remove(label)
        name = label.partition("/")[2]
        others = any(place_of(other) == place for other in living)
        life: Life = "alive" if others else "none"
        words = {"exited": f"{name} ends", "killed": f"{name} is killed", "failed": f"{name} fails: {error}"}
        self._add("end" if kind == "exited" else "death", place, words[kind], alive={place: life})

    def _paused(self, _kind: str, label: str) -> None:
        place = place_of(label)
        self._add("pause", place, f"{label.partition('/')[2]} is paused", alive={place: "paused"})

    def _resumed(self, _kind: str, label: str) -> None:
        place = place_of(label)
        self._add("resume", place, f"{label.partition('/')[2]} goes on", alive={place: "alive"})

    def _power_loss(self, _kind: str, host: str, mode: str) -> None:
        how = {"sample": "", "lose": ", all that is not synced is lost", "keep": ", all is kept"}
        self._at_host("fault", host, f"power loss{how.get(mode, f', state {mode}')}")

    def _lost(self, _kind: str, host: str, *losses: str) -> None:
        if losses:
            self._at_host("fault", host, "lost by it: " + ", ".join(losses))

    def _boot(self, _kind: str, host: str) -> None:
        self._at_host("start", host, "boots")

    def _slow_io(self, _kind: str, host: str, ns: int) -> None:
        self._at_host("fault", host, f"its disk takes {told_time(ns)} longer")

    def _calm(self, _kind: str) -> None:
        self._add("fault", Place(), "all faults end")

    def _out_of_memory(self, _kind: str, label: str) -> None:
        self._add("fault", place_of(label), "out of memory")

    def _wall_clock(self, _kind: str, host: str, ahead_ns: int, drift_ppb: int) -> None:
        drift = f", {drift_ppb} ppb fast" if drift_ppb else ""
        self._at_host("fault", host, f"its clock is {told_time(ahead_ns)} ahead{drift}")

    def _boundary(self, _kind: str, host: str, number: int, kind: str, path: str, offset: int, size: int) -> None:
        much = f" {size} B at {offset}" if kind == "write" else ""
        self._add("disk", self._here(host), f"{kind} {path}{much} (boundary {number})")

    def _note(self, _kind: str, text: str) -> None:
        self._add("note", self._here(), text)

    def _operation(self, _kind: str, text: str) -> None:
        self._add("operation", self._here(), text)

    def _point(self, _kind: str, what: str, name: str) -> None:
        told = f"point {name!r} fires" if what == "maybe" else f"point {name!r} is violated"
        self._add("point", self._here(), told)

    # ---- messages

    def _hear(self, _kind: str, text: str) -> None:
        self._says = text

    def _net(self, _kind: str, what: str, number: int, source: str, target: str, size: int) -> None:
        way = (number, source, target)
        if what == "send":
            self._send(way, self._content(size))
        elif what == "deliver":
            self._deliver(way)
        elif what == "datagram":
            self._datagrams[self._index] = self._send(way, f"datagram {self._content(size)}", kept=False), way
        elif what == "reset":
            self._add("fault", self._end(number, target), f"connection {number} to {source} is reset")
        else:
            words = {"connect": "connects to", "fin": "ends its stream to", "rst": "resets its connection to"}
            place = self._sender(number, source)
            self._add("send", place, f"{words[what]} {target}", minor=what != "rst")

    def _content(self, size: int) -> str:
        says, self._says = self._says, ""
        return says or f"{size} bytes"

    def _sender(self, number: int, source: str) -> Place:
        """The running task, unless it is at another place: then the end of the connection."""
        here = self._here()
        if here.host == source and self._running is not None:
            return here
        return self._end(number, source)

    def _send(self, way: _Way, text: str, *, kept: bool = True) -> Draft:
        number, source, target = way
        message = next(self._numbers)
        if kept:
            self._travelling[way].append(message)
        return self._add("send", self._sender(number, source), text, to=self._end(number, target), message=message)

    def _deliver(self, way: _Way) -> None:
        number, source, target = way
        waiting = self._travelling[way]
        if waiting:
            place, back = self._end(number, target), self._end(number, source)
            self._add("receive", place, "", to=back, message=waiting.popleft())

    def _datagram_arrives(self, _kind: str, index: int, owner: str | None) -> None:
        sent, (number, source, target) = self._datagrams[index]
        if owner is not None or target == OUTSIDE:
            sent.to = place_of(owner)
        place = sent.to or Place(target)
        self._add("receive", place, "", to=self._end(number, source), message=sent.message)

    # ---- what was drawn, and what the network suffers

    def _drawn(self, _kind: str, label: str, key: str, occurrence: int, value: int) -> None:
        host = None
        if label.startswith("disk/"):
            host = label.removeprefix("disk/")
        elif label == "network" and ">" in key:
            host = key.partition(":")[2].partition(">")[0]
        site = f"{label}/{key}#{occurrence}"
        minor = key.startswith(_USUAL) or label == "threads"
        draft = self._add("fault", self._here(host), f"{site} = {value}", tags=(site,), minor=minor)
        if label == "threads":
            self._turns[key].append(draft)

    def _turn_lost(self, _kind: str, key: str, thread: str, where: str, owner: str | None) -> None:
        """In the row of what was drawn for it, as far as that is a departure."""
        place = place_of(owner)
        waiting = self._turns[key]
        draft = waiting.pop(0) if waiting else self._add("fault", place, "")
        draft.place = Place(place.host, place.process, None, thread)
        line, _, _ = where.partition(" in ")
        draft.text, draft.minor = f"{thread} loses its turn at {PurePath(line).name}", False

    def _net_fault(self, _kind: str, what: str, *places: str | None) -> None:
        named = [place for place in places if place]
        place = Place() if not named or named[0] == OUTSIDE else self._here(named[0])
        between = f" between {' and '.join(named)}" if named else ""
        self._add("fault", place, f"{what}{between}")


def last_step(trace: Trace, task: int) -> int:
    """The number of the event that is the last step of `task`; 0 when it took none."""
    return max((index for index, entry in enumerate(trace.entries()) if entry == task), default=0)


def short_name(name: str, task: int) -> str:
    """A task's name for people: without its module and the functions around it."""
    return name.rsplit(".", 1)[-1] or f"task {task}"
