"""Space-time tables: what rows a run has, in which columns, which of them decide, and how a table is drawn."""

from __future__ import annotations

import asyncio
import contextlib
import html.parser
import re
import threading
from typing import Any

import pytest
import trio

import simkit
from simkit import aio, threaded
from simkit.explanation import Cause, Explanation
from simkit.shrinking import LooseSchedule, Retrial, shrink
from simkit.spacetime import Table, Watch, as_html, as_text, table
from simkit.spacetime.model import told_time


async def echo(stream: trio.SocketStream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def serve() -> None:
    await trio.serve_tcp(echo, 80)


async def ask(words: bytes, pause: float = 0) -> None:
    while True:
        try:
            stream = await trio.open_tcp_stream("server", 80)
            break
        except OSError:
            await trio.sleep(1)
    async with stream:
        await stream.send_all(words)
        await stream.receive_some()
        await trio.sleep(pause)


async def two_hosts(world: simkit.World) -> None:
    server = world.host("server").start(serve)
    client = world.host("client").start(ask, b"hello")
    await client.wait()
    server.kill()


def seen(main: Any, **options: Any) -> Table:
    """The table of a run without departures."""
    watch = Watch()
    outcome = watch.run(main, tape=simkit.Tape.from_departures({}), strategy=LooseSchedule())
    return table(outcome.trace, watch.known, **options)


def test_watching_changes_no_digest() -> None:
    """A watched run is the same run, with and without a strategy, also when its tape is drawn."""
    for strategy in (None, LooseSchedule()):
        watch = Watch()
        watched = watch.run(two_hosts, tape=simkit.Tape.from_seed(7), strategy=strategy)
        again = None if strategy is None else LooseSchedule()
        plain = simkit.run(two_hosts, tape=simkit.Tape.from_seed(7), strategy=again)
        assert watched.digest == plain.digest
        assert watched.departures == plain.departures
        assert plain.trace.asides is None
        assert watched.trace.asides


def test_a_case_is_watched_as_it_was_recorded() -> None:
    """With the digest that it has."""
    found = simkit.search(race, "surw", seed=1)
    assert isinstance(found, simkit.Found)
    watch = Watch()
    outcome = watch.replay(found.case, race)
    assert outcome.digest == found.case.digest
    assert [lane.name for lane in table(outcome.trace, watch.known).lanes] == [
        "main #1",
        "increment #2",
        "increment #3",
    ]


def test_each_process_has_a_column_and_messages_go_between() -> None:
    """What is sent to a host arrives at the process that answers there; a kill ends its line of life."""
    drawn = seen(two_hosts)
    assert [lane.name for lane in drawn.lanes] == ["outside", "server", "client"]
    message = next(row for row in drawn.rows if row.text == "hello")
    assert (message.kind, message.lane, message.to) == ("message", 2, 1)
    death = next(row for row in drawn.rows if row.kind == "death")
    assert (death.text, death.lane, death.lives) == ("main#101 is killed", 1, ("alive", "none", "none"))


def test_a_message_that_a_cut_holds_up_is_two_rows() -> None:
    """Sending and arriving share a number; one that never arrives says so."""

    async def main(world: simkit.World) -> None:
        world.host("server").start(serve)
        world.host("client").start(ask, b"hello")
        await trio.sleep(0.0012)
        world.network.partition("client", "server")
        await trio.sleep(1)
        world.network.heal()
        await trio.sleep(0.002)

    drawn = seen(main)
    rows = [(row.kind, row.text, row.message, row.arrives) for row in drawn.rows if row.text == "hello"]
    assert rows == [("send", "hello", 1, True), ("receive", "hello", 1, True), ("message", "hello", 2, True)]
    faults = [row.text for row in drawn.rows if row.kind == "fault"]
    assert faults == ["partition between client and server", "heal"]


def test_datagrams_reach_the_process_that_is_bound_there() -> None:
    """Two processes of one host have a column each, and a datagram goes to the right one."""

    async def listen(port: int) -> None:
        socket = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
        await socket.bind(("0.0.0.0", port))
        await socket.recvfrom(100)

    async def main(world: simkit.World) -> None:
        host = world.host("server")
        host.start(listen, 1, name="one")
        host.start(listen, 2, name="two")
        await trio.sleep(1)
        socket = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
        await socket.sendto(b"who", (host.address, 1))
        await trio.sleep(1)

    drawn = seen(main)
    assert [lane.name for lane in drawn.lanes] == ["outside", "server/one", "server/two"]
    (row,) = [row for row in drawn.rows if row.text == "datagram who"]
    assert (row.lane, row.to) == (0, 1)


async def race(world: simkit.World) -> None:
    value = 0

    async def increment() -> None:
        nonlocal value
        seen = value
        await trio.lowlevel.checkpoint()
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(increment)
        nursery.start_soon(increment)
    assert value == 2


def explained(main: Any, **options: Any) -> Table:
    """The table of the first failing seed, shrunk and explained."""
    for seed in range(100):
        tape = simkit.Tape.from_seed(seed)
        outcome = simkit.run(main, tape=tape, strategy=simkit.RandomWalk(tape.stream("schedule")))
        if outcome.error is not None:
            break
    retrial = Retrial(main, entropy=seed)
    shrunk = shrink(retrial, outcome.departures, outcome.schedule)
    explanation = simkit.explain(retrial, shrunk.best)
    watch = Watch()
    tape = simkit.Tape.from_departures(shrunk.best.departures, entropy=seed)
    again = watch.run(main, tape=tape, strategy=LooseSchedule(shrunk.best.plan))
    return table(again.trace, watch.known, explanation, failure="AssertionError", **options)


def test_tasks_have_columns_where_their_order_decides() -> None:
    """The events of a deciding ordering are rows of their own, marked, lettered, with the line where the task stood."""
    drawn = explained(race)
    assert [lane.name for lane in drawn.lanes] == ["increment #2", "increment #3", "main #1"]
    assert drawn.orders == (("a", "b"), ("b", "c"))
    deciding = [(row.tags, row.lane, row.text) for row in drawn.rows if row.decides and row.tags]
    assert [(tags, lane) for tags, lane, _ in deciding] == [(("a",), 0), (("b",), 1), (("c",), 0)]
    assert all(re.search(r"step \d of increment, at test_spacetime\.py:\d+$", text) for _, _, text in deciding)
    assert [stack.tag for stack in drawn.stacks] == ["a", "b", "c"]
    assert all(stack.frames for stack in drawn.stacks)
    assert drawn.rows[-1].kind == "failure"


async def unsynced(world: simkit.World) -> None:
    """Fails when the tape cuts the power."""
    host = world.host("desk")

    async def write() -> None:
        file = host.disk.open("/data/x", owner=simkit.current_process(), create=True)
        file.write(b"words", 0)
        await trio.sleep(1)

    host.start(write)
    await trio.sleep(0.5)
    if world.tape.stream("plan").chance("cut", 1, 3):
        host.power_loss("lose")
    assert host.disk.exists("/data/x")


def test_a_deciding_choice_is_marked_where_it_was_drawn() -> None:
    """Right before the power loss that follows from it, and with a word for who does not see colours."""
    drawn = explained(unsynced)
    at = next(at for at, row in enumerate(drawn.rows) if row.decides)
    assert [row.text for row in drawn.rows[at : at + 3]] == [
        "plan/cut#0 = 1",
        "power loss, all that is not synced is lost",
        "main#101 is killed",
    ]
    assert "decides</b>" in as_html(drawn)


async def chatty(world: simkit.World) -> None:
    world.host("server").start(serve)
    for number in range(60):
        await ask(b"%d" % number)
    world.host("server").power_loss()
    await trio.sleep(1)


def test_what_does_not_fit_is_counted() -> None:
    """A table keeps within its rows, shows faults and the end before anything else, and says how much is left out."""
    whole, short = seen(chatty), seen(chatty, rows_max=12, failure="ValueError")
    assert len(whole.rows) > 120
    shown = [row for row in short.rows if row.kind != "gap"]
    assert len(shown) == 12
    assert {"fault", "death", "failure"} <= {row.kind for row in shown}
    assert short.left_out + short.routine + len(shown) >= len(whole.rows)
    assert f"{short.left_out} rows are left out" in as_html(short)
    assert sum(int(n) for n in re.findall(r"… (\d+) rows? left out", as_text(short))) == short.left_out


def test_of_a_long_run_the_last_steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table says that there were others; what decides keeps its number and its row, however early it was."""

    async def long_race(world: simkit.World) -> None:
        try:
            await race(world)
        finally:
            for _ in range(50):
                await trio.lowlevel.checkpoint()

    monkeypatch.setattr("simkit.spacetime.reading.STEPS_MAX", 20)
    drawn = explained(long_race)
    assert [row.tags for row in drawn.rows if row.decides and row.tags] == [("a",), ("b",), ("c",)]
    told = [row.text for row in drawn.rows if row.kind == "note"]
    assert len(told) == 1
    assert "are not told one by one" in told[0]
    steps = [row.text for row in drawn.rows if row.kind == "steps" and not row.decides]
    assert steps == ["19 steps of main"]


@pytest.mark.parametrize("rows_max", [1, 2, 5, 30, 1000])
def test_every_row_is_shown_or_counted(rows_max: int) -> None:
    """Whatever the bound; and no line of the text is longer than 100."""
    drawn = seen(chatty, rows_max=rows_max)
    assert len([row for row in drawn.rows if row.kind != "gap"]) <= rows_max
    assert max(map(len, as_text(drawn).splitlines())) <= 100


def test_columns_that_do_not_fit_share_the_last() -> None:
    """Twelve hosts in four columns: the outside, two of their own and one for the rest."""

    async def main(world: simkit.World) -> None:
        for number in range(12):
            world.host(f"host-{number}").start(trio.sleep, 1)
        await trio.sleep(2)

    drawn = seen(main, lanes_max=4)
    assert [lane.name for lane in drawn.lanes] == ["outside", "host-0", "host-1", "10 others"]
    assert {row.lane for row in drawn.rows} == {1, 2, 3}
    assert max(map(len, as_text(seen(main)).splitlines())) <= 100


def test_the_text_draws_lines_of_life_and_arrows() -> None:
    """The whole of a small table, as it is shown."""
    assert as_text(seen(two_hosts)).splitlines() == [
        "    time  outside  server   client",
        "       0  │        ┬                 starts main#101",
        "          │        │        ┬        starts main#102",
        "    1 ms  │        │        ●        connects to server",
        "          │        ◀────────●        hello",
        "  1.5 ms  │        ●────────▶        hello",
        "    2 ms  │        │        ●        ends its stream to server",
        "          │        │        ┴        main#102 ends",
        "          │        X                 main#101 is killed",
        "          │        ●                 resets its connection to client",
    ]


def test_a_message_that_never_arrives_says_so() -> None:
    """What is on its way when the run ends."""

    async def main(world: simkit.World) -> None:
        world.host("server").start(serve)
        world.host("client").start(ask, b"hello")
        await trio.sleep(0.0012)
        world.network.partition("client", "server")
        await trio.sleep(5)

    drawn = seen(main)
    (row,) = [row for row in drawn.rows if row.text == "hello"]
    assert (row.kind, row.arrives) == ("send", False)
    assert "hello [1], which never arrives" in as_text(drawn)
    assert 'class="message lost"' in as_html(drawn)


class Checker(html.parser.HTMLParser):
    """Notes what is opened and not closed, what loads anything, and every id and link."""

    VOID = ("meta", "line", "circle", "rect", "path", "polygon", "link", "img")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        named = {name: value or "" for name, value in attrs}
        self.loads += [f"{tag} {name}" for name in named if name in {"src", "xlink:href"} or tag in {"script", "link"}]
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if tag == "a" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("main", [race, unsynced])
def test_the_page_stands_alone_and_is_well_formed(main: Any) -> None:
    """It loads nothing, has no scripts, closes what it opens, and every link has its target in it."""
    checker = Checker()
    text = as_html(explained(main))
    checker.feed(text)
    assert checker.open == []
    assert checker.loads == []
    assert "http" not in text
    assert {link.removeprefix("#") for link in checker.links} <= set(checker.ids)
    assert len(checker.ids) == len(set(checker.ids))
    assert "prefers-color-scheme: dark" in text


def test_the_page_escapes_what_programs_say() -> None:
    """A message that looks like a tag stays a message."""

    async def main(world: simkit.World) -> None:
        world.host("server").start(serve)
        await ask(b"<script>alert(1)</script>")

    text = as_html(seen(main), title="<b>")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<title>&lt;b&gt;</title>" in text


@pytest.mark.parametrize(
    ("ns", "told"),
    [
        (0, "0"),
        (1_500, "1.5 µs"),
        (2_000_000, "2 ms"),
        (3_010_000_000, "3.01 s"),
        (3_723_000_000_000, "1 h 02 min 3 s"),
        (-5_000_000, "-5 ms"),
    ],
)
def test_times_are_told_in_a_unit_that_fits(ns: int, told: str) -> None:
    """Three digits after the point, and none where they say nothing."""
    assert told_time(ns) == told


def at_last() -> None:
    """A callback of the program."""


async def pong(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.readline():
        writer.write(data)
    writer.close()


async def serve_asyncio() -> None:
    server = await asyncio.start_server(pong, "0.0.0.0", 80)
    await server.serve_forever()


async def ask_asyncio() -> None:
    reader, writer = await asyncio.open_connection("eu-server", 80)
    for _ in range(3):
        writer.write(b"ping\n")
        await reader.readline()
        await asyncio.sleep(1)
    writer.close()
    await writer.wait_closed()
    asyncio.get_running_loop().call_later(1, at_last)
    await asyncio.gather(*(asyncio.wait_for(asyncio.sleep(2), 5) for _ in range(4)))


async def asyncio_hosts(world: simkit.World) -> None:
    world.host("eu-server").start(aio.run, serve_asyncio)
    await world.host("eu-client").start(aio.run, ask_asyncio).wait()


def test_of_an_event_loop_only_the_programs_callbacks_are_told() -> None:
    """They are routine, in the column of their process; no row of a run without faults is marked as one."""
    drawn = seen(asyncio_hosts)
    called = [row for row in drawn.rows if row.kind == "callback"]
    assert [(row.text, drawn.lanes[row.lane].name, row.minor) for row in called] == [
        ("callback at_last", "eu-client", True)
    ]
    assert not any(row.kind == "fault" for row in drawn.rows)
    assert "  ·" in as_text(drawn)


def test_messages_are_shown_before_callbacks() -> None:
    """Where there is room for the messages of a program and its first and last rows, callbacks take it from none of them."""
    drawn = seen(asyncio_hosts, rows_max=11)
    assert sum(row.message is not None for row in drawn.rows) == sum(
        row.message is not None for row in seen(asyncio_hosts).rows
    )


def test_what_only_serves_a_program_takes_no_column() -> None:
    """The tasks of an asyncio program have columns; those that keep its loop alive have not."""

    async def main(_world: simkit.World) -> None:
        await aio.run(two_tasks)

    async def two_tasks() -> None:
        await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))

    names = [lane.name for lane in seen(main).lanes]
    assert not [name for name in names if "_home" in name or "wind up" in name]
    assert sum("sleep" in name for name in names) == 2


def test_names_of_columns_are_shortened_where_they_do_not_differ() -> None:
    """What two names begin with in common is cut from both; names that end alike keep what they begin with."""

    def heads(*names: str) -> list[str]:
        lanes = tuple(simkit.spacetime.Lane(name, name) for name in names)
        return as_text(Table(lanes, ())).splitlines()[0].split()[1:]

    assert heads("storage-server-number-1", "storage-server-number-2") == ["…-server-number-1", "…-server-number-2"]
    east, west = heads("eastern-storage-server", "western-storage-server")
    assert (east[:7], west[:7]) == ("eastern", "western")


def test_rows_have_the_numbers_of_their_events() -> None:
    """Those of the trace, by which a replay stops before them; in the page always, in the text when asked for."""

    async def main(world: simkit.World) -> None:
        world.host("machine").start(trio.sleep, 1)
        await trio.sleep(2)
        world.host("machine").power_loss()
        await trio.sleep(3)

    watch = Watch()
    outcome = watch.run(main, tape=simkit.Tape.from_seed(0))
    drawn = table(outcome.trace, watch.known, failure="It fails")
    kinds = [event.kind for event in outcome.trace.events()]
    rows = {row.kind: row for row in drawn.rows}
    assert {kind: kinds[row.event] for kind, row in rows.items()} == {
        "start": "start",
        "end": "exited",
        "fault": "power-loss",
        "failure": "step",
    }
    ours = [event.index for event in outcome.trace.events() if event.detail == "task 1 main"]
    assert rows["failure"].event == ours[-1]
    heading, *lines = as_text(drawn, with_events=True).splitlines()
    assert heading.split()[:2] == ["event", "time"]
    assert [int(line.removeprefix(">").split()[0]) for line in lines] == [row.event for row in drawn.rows]
    assert "event" not in as_text(drawn)
    assert f'<td class="time">{rows["fault"].event}</td>' in as_html(drawn)


def test_operations_of_a_history_are_rows() -> None:
    """Calls and answers, in the column of the client: what it was told, that it failed, or that nobody knows."""

    async def client(world: simkit.World) -> None:
        history = simkit.History(world)
        with history.call("c", "put", "x", 1):
            await trio.sleep(1)
        with history.call("c", "get", "x") as call:
            call.returns(1)
        with history.call("c", "put", "x", 2) as call:
            call.failed()
        with contextlib.suppress(OSError), history.call("c", "put", "x", 3):
            raise OSError

    async def main(world: simkit.World) -> None:
        await world.host("client").start(client, world).wait()

    drawn = seen(main)
    rows = [row for row in drawn.rows if row.kind == "operation"]
    assert [row.text for row in rows] == [
        "c: put('x', 1)",
        "c: put('x', 1) → None",
        "c: get('x')",
        "c: get('x') → 1",
        "c: put('x', 2)",
        "c: put('x', 2) fails",
        "c: put('x', 3)",
        "c: put('x', 3) → ?",
    ]
    assert {drawn.lanes[row.lane].name for row in rows} == {"client"}
    assert [row.at_ns for row in rows[:2]] == [0, 1_000_000_000]


def sold_by_threads() -> None:
    lock = threading.Lock()

    def sell() -> None:
        for _ in range(3):
            with lock:
                pass

    threads = [threading.Thread(target=sell) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def threads_in_a_process(world: simkit.World) -> None:
    await world.host("shop").start(threaded.run, sold_by_threads).wait()


def test_threads_have_columns_and_tell_where_they_lose_their_turn() -> None:
    """Which thread, and at which line of the program; its column is its own, and lives as its process does."""
    watch = Watch()
    outcome = watch.run(threads_in_a_process, tape=simkit.Tape.from_seed(1))
    drawn = table(outcome.trace, watch.known)
    lost = [row for row in drawn.rows if "loses its turn" in row.text]
    assert {row.text.partition(" loses")[0] for row in lost} >= {"Thread-1 (sell)", "Thread-2 (sell)"}
    for row in lost:
        assert re.search(r" loses its turn at test_spacetime\.py:\d+$", row.text)
        assert drawn.lanes[row.lane].name == f"shop {row.text.partition(' loses')[0]}"
        assert row.lives[row.lane] == "alive"
        assert row.kind == "fault"
        assert not row.minor
    plain = simkit.run(threads_in_a_process, tape=simkit.Tape.from_seed(1))
    assert plain.digest == outcome.digest


def test_a_lost_turn_that_decides_is_marked_in_its_row() -> None:
    """What was drawn for it is its site."""
    watch = Watch()
    outcome = watch.run(threads_in_a_process, tape=simkit.Tape.from_seed(1))
    site = max(site for site in outcome.departures if site[1] == "loses turn")
    explanation = Explanation((), (Cause(site, outcome.departures[site]),), (), (), 1, True)
    decides = [row for row in table(outcome.trace, watch.known, explanation).rows if row.decides]
    assert len(decides) == 1
    assert "loses its turn at test_spacetime.py" in decides[0].text
