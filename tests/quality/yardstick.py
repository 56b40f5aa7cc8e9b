"""Every program of the yardstick, with what the published artefacts report for it.

Published: mean schedules to the first failure, 20 trials, cap 10,000 (SafeStack 1,000,000) in the artefact of SURW, five
minutes in that of RFF; "(a/20)" found in so many trials, "–" never, "·" no data. Their step is a memory access, ours a
yield point of a port of our own: compare strategies on the same port, not columns of two tables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from simkit import World
from tests.quality import classics, library, reorder, stealing, unseen, unseen_shared, unseen_trio, vulnerabilities

STRATEGIES = ("random", "pct3", "pct10", "pos", "surw", "reads-from")


@attrs.frozen
class Program:
    """One program, and its published row, in the order of `STRATEGIES`."""

    name: str
    body: Callable[..., Awaitable[None]]
    published: tuple[str, ...]
    needs_world: bool = False

    async def __call__(self, world: World) -> None:
        await (self.body(world) if self.needs_world else self.body())


def _rows(table: str, bodies: Mapping[str, Callable[[], Any]]) -> dict[str, Program]:
    rows = {}
    for line in table.strip().splitlines():
        name, *published = (cell.strip() for cell in line.split("|"))
        rows[name] = Program(name, bodies[name], tuple(published))
    return rows


_BODIES: dict[str, Callable[[], Any]] = {
    "reorder_3": lambda: reorder.reorder(2, 1),
    "reorder_4": lambda: reorder.reorder(3, 1),
    "reorder_5": lambda: reorder.reorder(4, 1),
    "reorder_10": lambda: reorder.reorder(9, 1),
    "reorder_20": lambda: reorder.reorder(10, 10),
    "reorder_50": lambda: reorder.reorder(49, 1),
    "reorder_100": lambda: reorder.reorder(99, 1),
    "twostage": lambda: reorder.two_stage(1, 1),
    "twostage_20": lambda: reorder.two_stage(19, 1),
    "stack": classics.stack,
    "token_ring": classics.token_ring,
    "lazy01": classics.lazy,
    "deadlock01": classics.deadlock,
    "wronglock": lambda: reorder.wrong_lock(1, 7),
    "wronglock_3": lambda: reorder.wrong_lock(1, 3),
    "circular_buffer": classics.circular_buffer,
    "queue": classics.queue,
    "stringbuffer-jdk1.4": library.string_buffer,
    "qsort_mt": library.sort_pool,
    "WorkStealQueue": stealing.work_steal_queue,
    "InterlockedWorkStealQueue": stealing.interlocked,
    "InterlockedWorkStealQueueWithState": stealing.interlocked_with_state,
    "StateWorkStealQueue": stealing.state,
    "SafeStack": stealing.safe_stack,
    "bug4": library.lazy_lock,
    "bug6": library.monitor,
    "CVE-2013-1792": vulnerabilities.keyring,
    "CVE-2016-1972": vulnerabilities.codec_threads,
    "CVE-2016-1973": vulnerabilities.teardown,
    "CVE-2016-7911": vulnerabilities.io_priority,
    "CVE-2016-9806": vulnerabilities.netlink_dump,
    "CVE-2017-15265": vulnerabilities.sequencer_port,
    "CVE-2017-6346": vulnerabilities.packet_fanout,
}

PROGRAMS = _rows(
    """
reorder_3 | – | 185 | 148 | 86 | 7 | 7
reorder_4 | – | 554 | 362 | 533 | 7 | 6
reorder_5 | – | 647 | 1,094 | 2,169 | 10 | 6
reorder_10 | – | 3,225 (16/20) | 4,462 (12/20) | – | 17 | 6
reorder_20 | – | 3,005 | 3,297 (17/20) | – | 6 | 6
reorder_50 | – | 3,304 (6/20) | 9,422 (1/20) | – | 13 | 6
reorder_100 | – | – | – | – | 194 | 6
twostage | 464 | 13 | 9 | 15 | 8 | 8
twostage_20 | – | 159 | 101 | 156 | 6 | 22
stack | 176 | 3 | 3 | 2 | 5 | 2
token_ring | 13 | 8 | 8 | 9 | 8 | 5
lazy01 | 21 | 5 | 5 | 5 | 2 | 6
deadlock01 | 3 | 13 | 7 | 4 | 2 | 5
wronglock | 36 | 51 | 20 | 10 | 7 | 1
wronglock_3 | 36 | 58 | 14 | 11 | 9 | 1
circular_buffer | 4 | 9 | 5 | 2 | 3 | 2
queue | 1 | 3 | 2 | 1 | 2 | 1
stringbuffer-jdk1.4 | 2,243 (19/20) | 281 | 26 | 23 | 8 | 15
qsort_mt | 3,442 (19/20) | 4,714 (14/20) | 3,689 (15/20) | 3,004 (18/20) | 3,048 (19/20) | 322
WorkStealQueue | · | 48 | 16 | 12 | 6 | 10
InterlockedWorkStealQueue | – | 48 | 13 | 14 | 6 | 1
InterlockedWorkStealQueueWithState | 26 | 907 | 204 | 5 | 6 | 7
StateWorkStealQueue | · | 842 | 199 | 6 | 7 | 1
SafeStack | – | – | – | – | 368,921 (19/20) | –
bug4 | 1,688 (19/20) | 1,973 (19/20) | 1,044 | 240 | 23 | 1
bug6 | 48 | 42 | 21 | 18 | 4 | 1
CVE-2013-1792 | 364 | 95 | 50 | 39 | 15 | 23
CVE-2016-1972 | 299 | 4,902 (16/20) | 2,712 (19/20) | 34 | 11 | 39
CVE-2016-1973 | 308 | 10 | 6 | 5 | 5 | 3
CVE-2016-7911 | 3 | 20 | 15 | 11 | 8 | 13
CVE-2016-9806 | 2,209 | 7 | 4 | 7 | 3 | 11
CVE-2017-15265 | – | – | – | – | – | 36
CVE-2017-6346 | 3 | 24 | 20 | 10 | 15 | 5
""",
    _BODIES,
)

_EXTRA: dict[str, Callable[..., Any]] = {
    "account": unseen.account,
    "bluetooth": unseen.bluetooth,
    "philosophers": unseen.philosophers,
    "plain_philosophers": unseen.plain_philosophers,
    "treiber": unseen.treiber,
    "bounded_buffer": unseen.bounded_buffer,
    "peterson": unseen.peterson,
    "plain_cache": unseen.plain_cache,
    "plain_handover": unseen.plain_handover,
    "hasty_deque": stealing.hasty,
    "free_list": unseen_shared.free_list,
    "double_checked": unseen_shared.double_checked,
    "missed_signal": unseen_shared.missed_signal,
    "upgrade": unseen_shared.upgrade,
    "barrier": unseen_shared.barrier,
    "commit_vote": unseen_shared.commit_vote,
    "two_leaders": unseen_shared.two_leaders,
    "off_by_one": unseen_shared.off_by_one,
    "seqlock": unseen_shared.seqlock,
    "last_reference": unseen_shared.last_reference,
    "plain_pool_leak": unseen_trio.pool_leak,
    "plain_swallowed": unseen_trio.swallowed,
    "plain_stampede": unseen_trio.stampede,
    "plain_lease": unseen_trio.lease,
    "plain_replaced_event": unseen_trio.replaced_event,
    "plain_last_closes": unseen_trio.last_one_closes,
    "plain_stop_flag": unseen_trio.stop_flag,
    "plain_allowance": unseen_trio.allowance,
    "plain_waiter": unseen_trio.philosophers_with_a_waiter,
    "plain_publishers": unseen_trio.publishers,
    "plain_two_locks": unseen_trio.two_locks,
    "plain_snapshot": unseen_trio.snapshot,
    "plain_deleted": unseen_trio.deleted_in_between,
}
_NEED_WORLD = {"plain_deleted"}
#: Programs beyond the yardstick, on which no strategy was tuned; nothing is published for them.
EXTRA = {
    name: Program(name, body, ("·",) * len(STRATEGIES), needs_world=name in _NEED_WORLD)
    for name, body in _EXTRA.items()
}
