"""Traces: equal for equal runs whatever the hash seed, and able to say where two runs part."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys

import pytest
import trio

from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.trace import Trace, first_difference
from simkit.world import Outcome, World, run

PROGRAM = """
import trio, sys
from simkit.strategy import RandomWalk
from simkit.tape import Tape
from simkit.world import run
async def main(world):
    async def work(name):
        for word in sorted({"a", "b", name}):
            with trio.move_on_after(0.5):
                await trio.sleep_forever()
            world.trace.record("word", word, name)
    async with trio.open_nursery() as nursery:
        for name in ("x", "y", "z"):
            nursery.start_soon(work, name)
            world.host(name).start(work, name)
        await trio.sleep(3)
for kernel in ("fast", "fallback"):
    tape = Tape.from_seed(4)
    print(run(main, tape=tape, strategy=RandomWalk(tape.stream("s")), kernel=kernel).digest)
"""


@pytest.mark.slow
def test_the_digest_does_not_depend_on_the_hash_seed_or_the_kernel() -> None:
    """Three interpreters, three hash seeds, two kernels each: one digest."""
    digests = [
        line
        for seed in ("0", "1", "2")
        for line in subprocess.run(
            [sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.split()
    ]
    assert len(digests) == 6
    assert len(set(digests)) == 1


def leaky(seed: int, order: list[str], sink: io.StringIO | None = None) -> Outcome[None]:
    """A program whose order of work comes from outside the tape: what a determinism check must find."""

    async def main(world: World) -> None:
        for number, word in enumerate(order):
            await world.sleep_ns(1000)
            world.trace.record("word", word, number)

    tape = Tape.from_seed(seed)
    return run(main, tape=tape, strategy=RandomWalk(tape.stream("s")), trace_sink=sink)


def test_the_first_differing_event_is_named() -> None:
    """Two runs that part tell the event, its time, and both sides."""
    one, other = leaky(1, ["a", "b", "c"]), leaky(1, ["a", "c", "b"])
    difference = first_difference(one.trace, other.trace)
    assert difference is not None
    assert difference.left is not None
    assert difference.right is not None
    assert (difference.left.kind, difference.left.detail, difference.left.now_ns) == ("word", "b 1", 2000)
    assert difference.right.detail == "c 1"
    assert str(difference).startswith(f"event {difference.index}: ")
    assert one.digest != other.digest


def test_equal_traces_have_no_difference_and_a_shorter_one_ends() -> None:
    """Equality is None; where one trace ends, that side is empty."""
    assert first_difference(leaky(1, ["a"]).trace, leaky(1, ["a"]).trace) is None
    difference = first_difference(leaky(1, ["a"]).trace, leaky(1, ["a", "b"]).trace)
    assert difference is not None
    assert str(difference).count("event") >= 2


def test_a_sink_gets_every_event_as_json_lines() -> None:
    """The file holds exactly the events of the trace, with virtual times; writing them changes no digest."""
    sink = io.StringIO()
    words = ["w\n"] * 3000  # more than one batch, and a line break inside
    written = leaky(1, words, sink)
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line["kind"] for line in lines] == [event.kind for event in written.trace.events()]
    assert [line["now_ns"] for line in lines] == [event.now_ns for event in written.trace.events()]
    assert lines[-1]["index"] == len(written.trace) - 1
    assert written.digest == leaky(1, words).digest


def test_a_trace_to_disk_tells_the_same_and_keeps_little() -> None:
    """What the sink has got is packed, a few bytes an entry; digests, steps and differences are as of any other trace."""
    words = [f"word {number}\n" for number in range(3000)]
    written, kept = (leaky(1, words, sink).trace for sink in (io.StringIO(), None))
    assert len(written) == len(kept)
    assert len(written.told) < len(written) // 2
    assert sum(map(len, written._written._chunks)) < 10 * len(written)
    assert list(written.entries()) == list(kept.entries())
    assert written.steps() == kept.steps()
    places = [0, 1, 4095, 4096, 4097, len(kept)]
    assert written.running_digests(places) == kept.running_digests(places)
    assert first_difference(written, kept) is None
    difference = first_difference(written, leaky(1, [*words[:-1], "another"], io.StringIO()).trace)
    assert difference is not None
    assert difference.left is not None
    assert difference.left.detail == "word 2999\\n 2999"


def test_a_digest_asked_for_on_the_way_changes_nothing() -> None:
    """It goes on from where it was, across batches and line breaks."""
    one, other = Trace(), Trace()
    for number in range(10_000):
        one.record("kind", number, "a\nb" if number % 1000 == 7 else "a")
        other.record("kind", number, "a\nb" if number % 1000 == 7 else "a")
        if number % 777 == 0:
            one.digest()
    assert one.digest() == other.digest()
    text = "\n".join(f"kind {number} {'a' + chr(92) + 'nb' if number % 1000 == 7 else 'a'}" for number in range(10_000))
    assert one.digest() == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def test_an_event_is_one_line_whatever_it_holds() -> None:
    """A line break in a detail cannot forge a second event."""
    one, two = Trace(), Trace()
    one.record("kind", "a\nb")
    two.record("kind", "a")
    two.record("b")
    assert one.digest() != two.digest()
    assert len(list(one.events())) == 1


def test_names_of_tasks_are_told_but_not_digested() -> None:
    """Events name tasks for people; two programs that differ in a function's name only have one digest."""

    async def alpha() -> None:
        await trio.lowlevel.checkpoint()

    async def beta() -> None:
        await trio.lowlevel.checkpoint()

    def traced(child: object) -> Trace:
        async def main(_world: World) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)  # type: ignore[arg-type]

        return run(main, tape=Tape.from_seed(0)).trace

    assert traced(alpha).digest() == traced(beta).digest()
    assert any("alpha" in event.detail for event in traced(alpha).events())
