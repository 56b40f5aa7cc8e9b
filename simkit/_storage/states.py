"""What a power loss may leave: every legal state of the unsynced writes and directory entries when these are few, else
a sample with a bias to boundaries.

A state says what becomes of each pending change, by the number of the boundary at which it was made; so a state found in
one run can be struck in another run of the same tape, at the same boundary.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from simkit._storage.inode import Change, Choices, Fate, Inode, Settled, Stray, Write, drawn_fate, options, put, settle
from simkit._storage.namespace import EntryChange, Namespace, settled

#: So many combinations for each state that was asked for are tried, as different ones can leave the same bytes.
_TRIES = 8


@attrs.frozen
class CrashState:
    """One state that a power loss may leave. `Disk.crash` and `Host.power_loss` take it."""

    #: The pending changes that are not simply kept: boundary number → which of `options`; a lost entry is 1.
    decisions: Mapping[int, int]
    #: The files that are there afterwards.
    files: Mapping[str, bytes] = attrs.field(factory=dict, repr=False, eq=False)

    @property
    def code(self) -> str:
        """It as text, e.g. `12:1,15:3`; empty when all is kept."""
        return ",".join(f"{number}:{choice}" for number, choice in sorted(self.decisions.items()))

    @classmethod
    def from_code(cls, code: str) -> CrashState:
        """Read `code` back."""
        pairs = (part.split(":") for part in code.split(",") if part)
        return cls({int(number): int(choice) for number, choice in pairs})


@attrs.frozen
class CrashStates:
    """States, each leaving other bytes; whether they are all there are."""

    states: tuple[CrashState, ...]
    complete: bool

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[CrashState]:
        return iter(self.states)


@attrs.frozen
class Verdicts:
    """How one power loss decides."""

    entry: Callable[[EntryChange], bool]
    data: Callable[[str, Change], Settled]


def verdicts(mode: str | CrashState, stream: Choices) -> Verdicts:
    """What decides in a mode of `Disk.crash`, or in a state."""
    if isinstance(mode, CrashState):
        chosen = mode.decisions
        return Verdicts(lambda change: not chosen.get(change.number, 0), lambda _, change: _option(change, chosen))
    if mode == "sample":
        return Verdicts(
            lambda change: stream.choose(f"{change.kind}:{change.path}", 2, (1, 1)) == 0,
            lambda path, change: drawn_fate(stream, path, change),
        )
    kept = mode == "keep"
    fate: Settled = (Fate.KEPT if kept else Fate.LOST, 0)
    return Verdicts(lambda _: kept, lambda _path, _change: fate)


def crash_states(names: Namespace, bound: int, stream: Choices) -> CrashStates:
    """All states when at most `bound`, else `bound` of them."""
    if bound < 1:
        raise ValueError("there is always at least one state")
    combinations = list(itertools.islice(_combinations(names, bound * _TRIES), bound * _TRIES + 1))
    if len(combinations) <= bound * _TRIES:
        distinct = _distinct(names, combinations, bound + 1)
        if len(distinct) <= bound:
            return CrashStates(distinct, complete=True)
    noise = random.Random(stream.choose("crash-states", 1 << 32))
    sample = itertools.islice(_sample(names, bound, noise), bound * _TRIES)
    return CrashStates(_distinct(names, sample, bound), complete=False)


def picture(names: Namespace, decisions: Mapping[int, int]) -> dict[str, bytes]:
    """The files that `decisions` leave; nothing is changed."""
    kept, _ = settled(names.pending, lambda change: not decisions.get(change.number, 0))
    survivors = names.survivors(kept)
    images: dict[Inode, bytearray] = {}
    strays: list[Stray] = []
    for node in survivors.values():
        if isinstance(node, Inode) and node.pending and node not in images:
            image = images[node] = bytearray(node.durable)
            for change in node.pending:
                if not isinstance(change, Stray):
                    settle(image, change, _option(change, decisions))
                elif not decisions.get(change.number, 0):
                    strays.append(change)
    for stray in strays:
        put(images.setdefault(stray.victim, bytearray(stray.victim.durable)), stray.data, stray.landing)
    files = ((path, node) for path, node in survivors.items() if isinstance(node, Inode))
    return {path: bytes(images.get(node, node.durable)) for path, node in files}


def _option(change: Change, decisions: Mapping[int, int]) -> Settled:
    choice = decisions.get(change.number, 0)
    return options(change)[choice] if choice else (Fate.KEPT, 0)


def _distinct(
    names: Namespace, combinations: list[dict[int, int]] | Iterator[dict[int, int]], most: int
) -> tuple[CrashState, ...]:
    found: dict[tuple[tuple[str, bytes], ...], CrashState] = {}
    for decisions in combinations:
        files = picture(names, decisions)
        found.setdefault(tuple(files.items()), CrashState(decisions, files))
        if len(found) >= most:
            break
    return tuple(found.values())


def _combinations(names: Namespace, most: int) -> Iterator[dict[int, int]]:
    """Every combination of decisions that can matter, the harmless first."""
    if 1 << len(names.pending) > most:
        yield from ({} for _ in range(most + 1))  # too many to tell apart
        return
    for fates in itertools.product((0, 1), repeat=len(names.pending)):
        lost = {change.number: 1 for change, fate in zip(names.pending, fates, strict=True) if fate}
        kept, _ = settled(names.pending, lambda change, lost=lost: change.number not in lost)  # type: ignore[misc]
        if len(kept) + len(lost) < len(names.pending):
            continue  # a rename of a directory that is kept without the one before it
        changes = _data_changes(list(names.survivors(kept).values()))
        for choices in itertools.product(*(_useful(change, size) for change, size in changes)):
            chosen = {change.number: choice for (change, _), choice in zip(changes, choices, strict=True) if choice}
            yield lost | chosen


def _data_changes(nodes: Sequence[object]) -> list[tuple[Change, int]]:
    """The pending changes of the files among `nodes`, each with the durable size of its file."""
    inodes = dict.fromkeys(node for node in nodes if isinstance(node, Inode))
    return [(change, len(inode.durable)) for inode in inodes for change in inode.pending]


def _useful(change: Change, durable_bytes: int) -> list[int]:
    """Options by number; a write that does not grow the file leaves no hollow."""
    found = range(len(options(change)))
    grows = isinstance(change, Write) and change.end > durable_bytes
    return [n for n in found if grows or options(change)[n][0] is not Fate.HOLLOW]


def _sample(names: Namespace, bound: int, noise: random.Random) -> Iterator[dict[int, int]]:
    """Decisions at boundaries first: cut off after each change, torn there; one lost, one kept; then at random."""
    nodes = [*names.visible.values(), *names.survivors().values()]
    choices = {change.number: _useful(change, size) for change, size in _data_changes(nodes)}
    choices |= {change.number: [0, 1] for change in names.pending}
    numbers = sorted(choices)
    yield {}
    yield dict.fromkeys(numbers, 1)
    for cut in _spread(numbers, bound // 2):
        after = {number: 1 for number in numbers if number > cut}
        yield after | {cut: 1}
        if len(choices[cut]) > 2:
            yield after | {cut: noise.choice(choices[cut][2:])}
    for number in _spread(numbers, bound // 4):
        yield {number: 1}
        yield {other: 1 for other in numbers if other != number}
    while True:
        drawn = {number: noise.choice(choices[number]) for number in numbers}
        yield {number: choice for number, choice in drawn.items() if choice}


def _spread(numbers: list[int], most: int) -> list[int]:
    """At most `most` of them, evenly spread and with both ends."""
    if len(numbers) <= most or most < 2:
        return numbers[-max(1, most) :] if len(numbers) > most else numbers
    return [numbers[index * (len(numbers) - 1) // (most - 1)] for index in range(most)]
