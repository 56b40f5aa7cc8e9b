"""Every fault that a simulated world knows: how it is asked for or drawn, and how its effect was held against a real system.

`FAULTS` is the registry. docs/faults.md is written from it, and a test holds it against the options of disk and network
and against the tests of tests/fidelity, so that no fault is missing and no check is made up.
"""

from __future__ import annotations

from typing import Literal

import attrs

__all__ = ["FAULTS", "Fault"]

Component = Literal["disk", "network", "process", "clock", "program"]


@attrs.frozen
class Fault:
    """One kind of fault.

    `checked` names a test of tests/fidelity, as `module.function`, that plays the same program on the real system and in
    simulation; `how` says what provokes it there, or, where nothing is checked, why it cannot be.
    """

    name: str
    component: Component
    what: str
    by_name: str  # the call that makes it happen here and now, empty when only drawn
    drawn: str  # the option that draws it from the tape, empty when only by name
    how: str
    checked: str = ""


_EXT4 = "ext4 in an image, copied at the instant of the power loss; what is found is one of `crash_states`"
_NO_DRIVER = "no ordinary device can be made to; the model is that of the literature"
_NAMESPACE = "a network namespace whose loopback is switched off and on"

_DISK = (
    Fault(
        "lost write",
        "disk",
        "a write that no fsync covers is gone after a power loss",
        "`Host.power_loss(state)`",
        "`power_loss()`",
        _EXT4,
        "test_power.test_unsynced_writes_are_lost",
    ),
    Fault(
        "hollow write",
        "disk",
        "the file has its name or its new size, its bytes did not arrive",
        "`power_loss(state)`",
        "`power_loss()`",
        _EXT4,
        "test_power.test_a_name_can_become_durable_before_the_bytes",
    ),
    Fault(
        "torn write",
        "disk",
        "some sectors are new, some old; or a write is cut short by a death",
        "`Host.at_boundary(n, lambda: Tear(…))`, `power_loss(state)`",
        "`power_loss()`",
        "the instant at which a page is half written cannot be hit from outside",
    ),
    Fault(
        "reordered writes",
        "disk",
        "a later write survives an earlier one that no fsync separates from it",
        "`power_loss(state)`",
        "`power_loss()`",
        f"{_EXT4}: a synced file beside an unsynced one written before",
        "test_power.test_unsynced_writes_are_lost",
    ),
    *(
        Fault(
            f"lost {what}",
            "disk",
            f"a {what} without a sync of the directory never happened",
            "`power_loss(state)`",
            "`power_loss()`",
            f"{_EXT4}; with the sync it has happened",
            "test_power.test_a_change_of_names_without_a_sync_is_lost",
        )
        for what in ("create", "unlink", "rename", "rename of a directory")
    ),
    Fault(
        "read or write error",
        "disk",
        "EIO; nothing happens",
        '`Disk.fail_next("read", errno.EIO)`',
        "`DiskFaults.read_eio`, `write_eio`",
        "the image below a mounted ext4 is cut short: what lay there cannot be read",
        "test_power.test_a_sector_that_is_gone_is_an_error",
    ),
    Fault(
        "failed fsync",
        "disk",
        "an error once, then success; the dirty pages are gone, which shows when the cache is",
        '`fail_next("fsync", errno.EIO)`, `Disk.drop_caches()`',
        "`fsync_eio`",
        "ext4 on a device that is full",
        "test_power.test_a_failed_fsync_drops_the_dirty_pages",
    ),
    Fault(
        "failed fsync of another",
        "disk",
        "whoever has the file open is told of a failed write-back, once; whoever opens it later is not",
        '`fail_next("fsync", errno.EIO)`',
        "`fsync_eio`",
        "as above, with three open files",
        "test_power.test_a_failed_fsync_is_told_to_everybody_who_has_the_file_open",
    ),
    Fault(
        "lying fsync",
        "disk",
        "says done, makes nothing durable; of files and of directories",
        '`strike_next("lying-fsync")`, `strike_next("lying-sync_dir")`',
        "`fsync_lies`, `sync_dir_lies`",
        _NO_DRIVER,
    ),
    Fault(
        "full disk",
        "disk",
        "ENOSPC: what fits is written, overwriting goes on",
        "`Disk.capacity_bytes`",
        "`write_enospc`",
        "a tmpfs of 64 KiB",
        "test_files.test_a_full_file_system_takes_what_fits",
    ),
    Fault(
        "short read",
        "disk",
        "fewer bytes than there are",
        '`strike_next("short-read")`',
        "`short_read`",
        "local file systems do it only when a signal interrupts; the end of a file is checked",
        "test_files.test_reads_end_at_the_end_of_the_file",
    ),
    Fault(
        "bit rot",
        "disk",
        "a bit has turned over, without an error",
        "`Disk.corrupt(path, offset)`",
        "`bit_rot`",
        "a byte changed in the image below a mounted ext4",
        "test_power.test_rot_below_the_file_system_is_read_as_data",
    ),
    Fault(
        "misdirected write",
        "disk",
        "lands in other sectors of this file or another; shows when the cache is gone",
        '`strike_next("misdirected-write")`',
        "`misdirected_write`",
        _NO_DRIVER,
    ),
    Fault(
        "wiped disk",
        "disk",
        "everything is gone, synced or not: an empty disk under the old name",
        "`Host.wipe()`",
        "",
        "it is what a new disk is: an empty one",
    ),
    Fault(
        "slow operation",
        "disk",
        "the process stands still for `slow_ns` from its next await",
        '`strike_next("slow")`',
        "`slow`",
        "as a stuck one, only shorter",
        "test_power.test_a_stuck_device_holds_its_writer_only",
    ),
    Fault(
        "stuck operation",
        "disk",
        "the process stands still for `stuck_ns`, or until `World.calm`",
        '`strike_next("stuck")`',
        "`stuck`",
        "ext4 frozen and thawed (FIFREEZE)",
        "test_power.test_a_stuck_device_holds_its_writer_only",
    ),
)

_NETWORK = (
    Fault(
        "latency",
        "network",
        "each segment takes its time; connections overtake each other, a stream stays in order",
        "",
        "`NetworkOptions.latency_ns`, `spread`",
        "order and bounds of streams on the loopback; times are not compared",
        "test_streams.test_a_stream_has_no_message_bounds",
    ),
    Fault(
        "partition",
        "network",
        "a cut link: what is sent waits for `heal`; senders give up with ETIMEDOUT in the end",
        "`Network.partition(a, b)`, `heal()`",
        "",
        _NAMESPACE,
        "test_links.test_a_cut_link_holds_up_and_loses_nothing",
    ),
    Fault(
        "partition one way",
        "network",
        "what is sent arrives and its answer does not, or the other way round",
        "`Network.partition(a, b, one_way=True)`, `clog(a, b, ns, one_way=True)`",
        "",
        "two network namespaces, one of which sends its frames to nobody",
        "test_links.test_a_link_that_is_cut_one_way_carries_the_other_way",
    ),
    Fault(
        "retransmission time-out",
        "network",
        "who sent into a link that stays cut meets ETIMEDOUT, who only listens waits for ever",
        "`NetworkOptions.retransmit_timeout_ns`",
        "",
        f"{_NAMESPACE}, with TCP_USER_TIMEOUT",
        "test_links.test_whoever_sends_into_a_cut_link_gives_up",
    ),
    Fault(
        "clogged link",
        "network",
        "nothing arrives for a time, then everything does",
        "`clog(a, b, ns)`",
        "`clogs`, `clog_ns`",
        _NAMESPACE,
        "test_links.test_a_cut_link_holds_up_and_loses_nothing",
    ),
    Fault(
        "narrow link",
        "network",
        "size takes time",
        "`NetworkOptions.bytes_per_s`",
        "",
        "a namespace with a token bucket (tc tbf)",
        "test_links.test_a_narrow_link_takes_time",
    ),
    Fault(
        "lost segment, as a stall",
        "network",
        "sent again, it arrives later, and so does all that follows",
        '`strike_next("stall", a, b)`',
        "`stalls`, `stall_ns`",
        _NAMESPACE,
        "test_links.test_a_cut_link_holds_up_and_loses_nothing",
    ),
    Fault(
        "broken connection",
        "network",
        "ECONNRESET once, then the end for readers and EPIPE for writers; what is in flight is lost",
        '`reset(a, b)`, `abort(stream)`, `strike_next("break", a, b)`',
        "`breaks`",
        "SO_LINGER of zero",
        "test_streams.test_closing_with_a_linger_of_zero_resets",
    ),
    Fault(
        "slow reader",
        "network",
        "every receive at a place takes a pause and gives little: senders wait for room",
        "`slow_reader(place, pause_ns=…)`",
        "",
        "a peer that does not read on the loopback",
        "test_streams.test_a_peer_that_does_not_read_blocks_its_sender",
    ),
    Fault(
        "half-open peer",
        "network",
        "a machine without power tells nobody; what is sent is answered by a reset once it is on again",
        "`Host.power_loss(silent=True)`, `Host.boot()`",
        "",
        "a socket under TCP_REPAIR, which closes without a word",
        "test_links.test_a_peer_that_vanished_answers_with_a_reset_once_it_is_back",
    ),
    Fault(
        "silence, noticed",
        "network",
        "with SO_KEEPALIVE: ETIMEDOUT after TCP_KEEPCNT probes without an answer, a reset from a machine that is back",
        "as a cut link or a half-open peer",
        "",
        f"{_NAMESPACE}; a socket under TCP_REPAIR that is probed",
        "test_links.test_whoever_probes_a_cut_link_is_told",
    ),
    Fault(
        "refused connection",
        "network",
        "nobody listens there",
        "no listener, or a dead one",
        "",
        "a free port of the loopback",
        "test_streams.test_nobody_listens",
    ),
    Fault(
        "slow or failing connect",
        "network",
        "the first packet is lost and sent again after a second; at last ETIMEDOUT",
        '`strike_next("syn-loss", a, b)`',
        "`syn_losses`, `connect_timeout_ns`",
        _NAMESPACE,
        "test_links.test_a_cut_link_holds_up_and_loses_nothing",
    ),
    Fault(
        "full backlog",
        "network",
        "one more than the backlog connect, the others wait until there is room",
        "`listen(backlog)`",
        "",
        "six connections and a backlog of two",
        "test_streams.test_connections_beyond_the_backlog_wait",
    ),
    Fault(
        "name that does not resolve",
        "network",
        "EAI_AGAIN",
        '`strike_next("dns", target=name)`',
        "`dns_failures`",
        "a namespace without a way to a resolver",
        "test_links.test_a_name_cannot_be_resolved_for_now",
    ),
    Fault(
        "lost message",
        "network",
        "a datagram does not arrive: drawn, on a cut link, or as the queue is full",
        '`strike_next("datagram-loss", a, b)`',
        "`datagram_losses`",
        f"{_NAMESPACE}; a receive queue that nobody empties",
        "test_links.test_a_cut_link_loses_messages",
    ),
    Fault(
        "doubled message",
        "network",
        "a datagram arrives twice",
        '`strike_next("datagram-duplicate", a, b)`',
        "`datagram_duplicates`",
        "the loopback does not, and netem is no part of every kernel",
    ),
    Fault(
        "message overtaken",
        "network",
        "datagrams arrive in another order",
        "",
        "`latency_ns`, `spread`",
        "the loopback keeps their order; bounds and refusals of messages are checked",
        "test_datagrams.test_messages_keep_their_bounds",
    ),
)

_PROCESS = (
    Fault(
        "kill",
        "process",
        "no `finally` runs; what was written stays in the page cache",
        "`Process.kill()`, `Host.at_boundary(n, process.kill)`",
        "",
        "SIGKILL",
        "test_processes.test_a_killed_process_unwinds_nothing_and_its_writes_stay",
    ),
    Fault(
        "death of a peer",
        "process",
        'with `death="eof"` as Linux: data, end, and a reset for what is sent; by default harsher, a reset',
        "`Process.kill()`",
        "`NetworkOptions.death`, `death_loses_in_flight`",
        "SIGKILL, with and without unread data",
        "test_processes.test_the_peer_of_a_killed_process_reads_what_it_said_and_the_end",
    ),
    Fault(
        "request to leave",
        "process",
        "its handler of SIGTERM is called, as that of `trio.open_signal_receiver`; without one it is killed",
        "`Process.terminate()`",
        "",
        "SIGTERM",
        "test_processes.test_a_process_that_is_asked_to_leave_does_so_in_order_or_is_killed",
    ),
    Fault(
        "pause",
        "process",
        "none of its tasks runs; it is connected to and sent to meanwhile",
        "`Process.pause()`, `resume()`",
        "",
        "SIGSTOP and SIGCONT",
        "test_processes.test_a_stopped_server_is_connected_to_and_answers_when_it_goes_on",
    ),
    Fault(
        "out of memory",
        "process",
        "killed at a named point",
        "`world.points.out_of_memory_at(name, nth=…)`",
        "`world.points.out_of_memory`",
        "a control group of 64 MiB",
        "test_processes.test_a_process_that_takes_all_memory_is_killed",
    ),
    Fault(
        "no room for more",
        "process",
        "a MemoryError at a named point, which the program may survive",
        "`world.points.memory_error_at(name, nth=…)`",
        "`world.points.memory_errors`",
        "RLIMIT_AS",
        "test_processes.test_a_process_that_gets_no_more_memory_may_go_on",
    ),
)

_CLOCK = (
    Fault(
        "skew, drift and jumps",
        "clock",
        "the wall clock of one host is ahead or behind, gains or loses, is set; monotonic time is not touched",
        "`Host.clock.jump(ns)`, `adjust(skew_ns=…, drift_ppb=…)`",
        "`Host.clock.draw()`, `draw_jump()`",
        "everything that runs on the real machine would notice",
    ),
    Fault(
        "zone",
        "clock",
        "local time is that of a zone",
        "`Host.clock.zone`",
        "",
        "a process with TZ set",
        "test_clock.test_local_time_is_that_of_the_zone",
    ),
)

_PROGRAM = (
    Fault(
        "named point",
        "program",
        "what is legal and rare in the program happens: a retry, an early return, a tiny batch",
        "`world.points.at(name, action)`",
        "`simkit.maybe(name, num, den)`",
        "it is the program's own code",
    ),
)

FAULTS: tuple[Fault, ...] = (*_DISK, *_NETWORK, *_PROCESS, *_CLOCK, *_PROGRAM)
