"""The control channel: questions and answers in any order, and every way an adapter can break the protocol."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
import trio.testing

from conformance import control
from conformance.control import LINE_BYTES_MAX, Answer, ControlChannel
from conformance.processes import Processes, environment
from scenarios.history import ApprovalStatus, ChildStatus, OperationStatus, Status, Usage
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import LineReader

T = TypeVar("T")
SECOND_NS = 1_000_000_000


class Adapter:
    """The far end, played by the test: reads questions, writes what it is told to."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._lines = LineReader(stream, LINE_BYTES_MAX)

    async def read(self) -> dict[str, Any]:
        return dict(json.loads(await self._lines.read() or b"{}"))

    async def write(self, *answers: object) -> None:
        for answer in answers:
            await self._stream.send_all(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")

    async def hang_up(self) -> None:
        await self._stream.aclose()


def channel(talk: Callable[[ControlChannel, Adapter, trio.Nursery], Awaitable[T]]) -> T:
    """Run `talk` with a channel and its far end in memory, in virtual time: silences take none."""

    async def main() -> T:
        ours, theirs = trio.testing.memory_stream_pair()
        with trio.fail_after(1_000):
            async with trio.open_nursery() as nursery:
                result = await talk(ControlChannel(ours, ours), Adapter(theirs), nursery)
                nursery.cancel_scope.cancel()
        return result

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def answered(*lines: object, verb: str = "status", end: bool = False) -> Answer | Problem:
    """What the first question comes to if the far end writes `lines`, and perhaps hangs up."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> Answer | Problem:
        async def play() -> None:
            await adapter.read()
            await adapter.write(*lines)
            if end:
                await adapter.hang_up()

        nursery.start_soon(play)
        try:
            return await asking.ask(verb, SECOND_NS, run="r1")
        except SimkitError as error:
            return error.problem

    return channel(talk)


def test_a_question_carries_its_fields_and_gets_its_answer() -> None:
    """The line has seq, verb and the fields; ok, definite and indefinite errors come back apart."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> tuple[list[Any], list[Answer]]:
        questions = []

        async def play() -> None:
            for answer in (
                {"ok": {"name": "x"}},
                {"error": {"kind": "definite", "message": "no"}},
                {"error": {"kind": "indefinite", "message": "who knows"}},
            ):
                questions.append(await adapter.read())
                await adapter.write({"seq": questions[-1]["seq"], **answer})

        nursery.start_soon(play)
        return questions, [await asking.ask("start", SECOND_NS, run="r1") for _ in range(3)]

    questions, answers = channel(talk)
    assert questions == [{"seq": n, "verb": "start", "run": "r1"} for n in (1, 2, 3)]
    assert answers == [
        Answer("ok", {"name": "x"}),
        Answer("error", detail="no"),
        Answer("indefinite", detail="who knows"),
    ]


def test_a_status_is_read_into_a_value() -> None:
    """All fields of a status arrive typed; what it leaves out has its default."""
    answer = answered(
        {
            "seq": 1,
            "ok": {
                "state": "waiting",
                "on": "go",
                "version": 3,
                "operations": [{"id": "a", "state": "succeeded", "nonce": "n1"}],
            },
        }
    )
    assert isinstance(answer, Answer)
    assert answer.status == Status("waiting", on="go", version=3, operations=(OperationStatus("a", "succeeded", "n1"),))


def test_a_status_may_show_everything_there_is() -> None:
    """Nested values are typed too, and what is null is as good as left out."""
    approval = {"operation": "ok", "of": "pay", "digest": "d", "state": "pending"}
    shown = {
        "state": "waiting",
        "usage": {"calls": {"allowance": 3, "consumed": 1, "reserved": 0, "unknown": 1}},
        "children": [{"run": "r/c", "state": "running", "detached": True}],
        "approvals": [approval],
        "signals": {"r:w": "buffered"},
        "cancel": None,
        "paused": False,
        "operations": [{"id": "a", "state": "skipped", "ready": False, "tries": 2, "detail": "why"}],
    }
    answer = answered({"seq": 1, "ok": shown})
    assert isinstance(answer, Answer)
    assert answer.status == Status(
        "waiting",
        usage={"calls": Usage(3, 1, 0, 1)},
        children=(ChildStatus("r/c", "running", True),),
        approvals=(ApprovalStatus("ok", "pay", "d"),),
        signals={"r:w": "buffered"},
        paused=False,
        operations=(OperationStatus("a", "skipped", None, False, 2, "why"),),
    )


@pytest.mark.parametrize(
    ("verb", "body", "told"),
    [
        ("events", {"next": 1}, "no list as 'events'"),
        ("events", {"events": [], "next": True}, "no int as 'next'"),
        ("artifacts", {"artifacts": None}, "no list as 'artifacts'"),
        ("artifacts", {"artifacts": [{"name": "x", "version": 1}]}, "artifacts[0] without name"),
        ("artifacts", {"artifacts": [{"name": "x", "version": "1", "location": "l"}]}, "whose version is '1'"),
        (
            "artifacts",
            {"artifacts": [{"name": "x", "version": None, "location": "l", "state": "accepted"}]},
            "whose version is None",
        ),
        ("status", {"state": "waiting", "approvals": {}}, "`approvals` are no list"),
        ("status", {"state": "running", "paused": 1}, "status.paused"),
        ("status", {"state": "running", "usage": {"calls": {"consumed": "1"}}}, "usage"),
    ],
)
def test_what_the_kit_goes_by_has_its_type(verb: str, body: dict[str, Any], told: str) -> None:
    """Cursors, locations and the new parts of a status; what is off is named."""
    problem = answered({"seq": 1, "ok": body}, verb=verb)
    assert isinstance(problem, Problem)
    assert problem.code == "adapter-malformed-answer"
    assert told in problem.what


def test_an_upload_that_was_never_accepted_has_no_version() -> None:
    """It is listed all the same: with null as its version, or without one."""
    partial = {"name": "x", "version": None, "location": "l", "state": "partial"}
    abandoned = {"name": "x", "location": "l", "state": "abandoned"}
    answer = answered({"seq": 1, "ok": {"artifacts": [partial, abandoned]}}, verb="artifacts")
    assert answer == Answer("ok", {"artifacts": [partial, abandoned]})


def test_the_payload_of_a_verb_is_kept() -> None:
    """Whatever it holds: judges read it."""
    answer = answered({"seq": 1, "ok": {"disposition": "late", "consumer": None}}, verb="signal")
    assert answer == Answer("ok", {"disposition": "late", "consumer": None})


def test_answers_may_come_in_any_order() -> None:
    """Three tasks ask at once and are answered last first; each gets its own answer."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> dict[str, Any]:
        got: dict[str, Any] = {}

        async def ask(run: str) -> None:
            got[run] = (await asking.ask("start", SECOND_NS, run=run)).ok["run"]

        async with trio.open_nursery() as askers:
            for run in ("r1", "r2", "r3"):
                askers.start_soon(ask, run)
            questions = [await adapter.read() for _ in range(3)]
            await adapter.write(*({"seq": q["seq"], "ok": {"run": q["run"]}} for q in reversed(questions)))
        return got

    assert channel(talk) == {"r1": "r1", "r2": "r2", "r3": "r3"}


def test_silence_is_told_and_a_late_answer_is_skipped() -> None:
    """A question unanswered in time fails alone; its answer, when it comes after all, is nobody else's."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> tuple[Problem, Answer]:
        with pytest.raises(SimkitError) as caught:
            await asking.ask("start", 250_000_000, run="r1")

        async def play() -> None:
            await adapter.read()
            await adapter.read()
            await adapter.write({"seq": 1, "ok": {"late": True}}, {"seq": 2, "ok": {"late": False}})

        nursery.start_soon(play)
        return caught.value.problem, await asking.ask("start", SECOND_NS, run="r1")

    problem, answer = channel(talk)
    assert (problem.code, problem.exit_code) == ("adapter-silent", ExitCode.TARGET)
    assert "`start` within 0.25 s" in problem.what
    assert "question 1" in problem.where
    assert answer.ok == {"late": False}


def test_whoever_gives_up_reading_hands_over_to_another() -> None:
    """The task that reads for all times out; a task that waited beside it still gets its answer."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> Answer:
        async def impatient() -> None:
            with pytest.raises(SimkitError, match="adapter-silent"):
                await asking.ask("start", SECOND_NS)

        async def play() -> None:
            await trio.sleep(2)
            await adapter.write({"seq": 2, "ok": {}})

        nursery.start_soon(impatient)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(play)
        return await asking.ask("resume", 9 * SECOND_NS)

    assert channel(talk).outcome == "ok"


STATUS = {"seq": 1, "ok": {"state": "running"}}


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (b"hello world\n", "adapter-garbage", "not JSON: b'hello world'"),
        (b"\xff\xfe\n", "adapter-garbage", "not JSON"),
        (b'{"seq": 1, "ok": {}, "ok": {"state": "done"}}\n', "adapter-garbage", "'ok' occurs more than once"),
        (b'{"seq": 1, "ok": {"state": "running", "state": "done"}}\n', "adapter-garbage", "'state' occurs more"),
        (b"[" * 100_000 + b"\n", "adapter-garbage", "nested too deeply"),
        (b"x" * (LINE_BYTES_MAX + 1), "adapter-garbage", f"more than {LINE_BYTES_MAX} bytes"),
        ([1], "adapter-malformed-answer", "integer `seq`"),
        ({"ok": {}}, "adapter-malformed-answer", "integer `seq`"),
        ({**STATUS, "seq": "1"}, "adapter-malformed-answer", "integer `seq`"),
        ({**STATUS, "seq": True}, "adapter-malformed-answer", "integer `seq`"),
        ({**STATUS, "seq": 7}, "adapter-malformed-answer", "question 7, which is not open"),
        ({**STATUS, "extra": 1}, "adapter-malformed-answer", "unknown field 'extra'"),
        ({"seq": 1}, "adapter-malformed-answer", "exactly one of `ok` and `error`"),
        ({**STATUS, "error": {"kind": "definite"}}, "adapter-malformed-answer", "exactly one"),
        ({"seq": 1, "ok": []}, "adapter-malformed-answer", "`ok` that is no object"),
        ({"seq": 1, "error": "no"}, "adapter-malformed-answer", "`kind` and `message`"),
        ({"seq": 1, "error": {"kind": "perhaps"}}, "adapter-malformed-answer", "neither definite nor indefinite"),
        ({"seq": 1, "error": {"kind": "definite", "message": 3}}, "adapter-malformed-answer", "message is no text"),
        ({"seq": 1, "ok": {}}, "adapter-malformed-answer", "the field 'state' is missing"),
        ({"seq": 1, "ok": {"state": "asleep"}}, "adapter-malformed-answer", "status.state"),
        ({"seq": 1, "ok": {"state": "running", "attempt": 1}}, "adapter-malformed-answer", "status.attempt"),
        ({"seq": 1, "ok": {"state": "running", "version": "1"}}, "adapter-malformed-answer", "status.version"),
        ({"seq": 1, "ok": {"state": "running", "colour": "red"}}, "adapter-malformed-answer", "colour"),
        ({"seq": 1, "ok": {"state": "done", "result": {"a": 1}}}, "adapter-malformed-answer", "status.result"),
        ({"seq": 1, "ok": {"state": "done", "operations": ""}}, "adapter-malformed-answer", "no list"),
        ({"seq": 1, "ok": {"state": "done", "operations": [{"id": "a"}]}}, "adapter-malformed-answer", "operations[0]"),
    ],
)
def test_what_breaks_the_protocol_is_told_with_the_line(line: object, code: str, told: str) -> None:
    """Each way to be off has its code, says what is off and quotes the line, bounded; the adapter is to blame."""
    problem = answered(line)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.exit_code) == (code, ExitCode.TARGET)
    assert told in problem.what
    assert len(problem.what) < 700
    assert problem.expected
    assert problem.hint


def test_an_answer_given_twice_is_off() -> None:
    """A second answer to a question is not taken for an answer to the next one."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> Problem:
        await adapter.write({"seq": 1, "ok": {}}, {"seq": 1, "ok": {}})
        await asking.ask("start", SECOND_NS)
        with pytest.raises(SimkitError) as caught:
            await asking.ask("start", SECOND_NS)
        return caught.value.problem

    assert "question 1, which is not open" in channel(talk).what


def test_an_end_of_stream_is_told_with_the_line_it_cut() -> None:
    """A worker that died in the middle of its answer leaves half a line, which is quoted."""
    problem = answered(b'{"seq": 1, "o', end=True)
    assert isinstance(problem, Problem)
    assert problem.code == "adapter-gone"
    assert """b'{"seq": 1, "o'""" in problem.what


def test_everybody_is_told_once_the_channel_is_broken() -> None:
    """Garbage answers nobody in particular: all who wait fail with it at once, and all who ask later."""

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> list[Problem]:
        told: list[Problem] = []

        async def ask() -> None:
            with pytest.raises(SimkitError) as caught:
                await asking.ask("start", 100 * SECOND_NS)
            told.append(caught.value.problem)

        async with trio.open_nursery() as askers:
            for _ in range(3):
                askers.start_soon(ask)
            await adapter.write(b"noise\n")
        assert trio.current_time() < trio.current_effective_deadline() - 900
        await ask()
        return told

    problems = channel(talk)
    assert len(problems) == 4
    assert {problem.code for problem in problems} == {"adapter-garbage"}


def test_an_adapter_that_reads_nothing_cannot_block_the_kit() -> None:
    """A question cut off in the middle of its line is given up in time, and nothing is sent after it."""

    class Clogged(trio.abc.SendStream):
        async def send_all(self, data: object) -> None:
            await trio.sleep_forever()

        async def wait_send_all_might_not_block(self) -> None:
            await trio.sleep_forever()

        async def aclose(self) -> None:
            await trio.sleep_forever()

    async def main() -> list[str]:
        _, receive = trio.testing.memory_stream_one_way_pair()
        asking, codes = ControlChannel(Clogged(), receive), []
        for _ in range(2):
            with pytest.raises(SimkitError) as caught:
                await asking.ask("start", SECOND_NS)
            codes.append(f"{caught.value.problem.code}: {caught.value.problem.what}")
        return codes

    codes = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert codes == [
        "adapter-silent: the adapter did not answer `start` within 1 s",
        "adapter-silent: the adapter does not read its input",
    ]


def test_questions_left_unanswered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that answers nothing is not remembered without end."""
    monkeypatch.setattr(control, "GIVEN_UP_MAX", 2)

    async def talk(asking: ControlChannel, adapter: Adapter, nursery: trio.Nursery) -> list[str]:
        told = []
        for _ in range(4):
            with pytest.raises(SimkitError) as caught:
                await asking.ask("start", SECOND_NS)
            told.append(caught.value.problem.what)
        return told

    assert channel(talk)[-1] == "the adapter left 2 questions unanswered"


def test_errors_travel_between_processes() -> None:
    """A worker of the campaign can send what it met home."""
    problem = answered(b"noise\n")
    assert isinstance(problem, Problem)
    assert pickle.loads(pickle.dumps(SimkitError(problem))).problem == problem


PROGRAM = """
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    if q["verb"] == "die":
        sys.exit("I am out")
    print(json.dumps({"seq": q["seq"], "ok": {"state": "running"}}), flush=True)
"""


def test_over_the_pipes_of_a_real_process(tmp_path: Path) -> None:
    """The same channel works on a process's stdio, before its death and at it."""

    async def main() -> tuple[Answer, Problem]:
        with trio.fail_after(10):
            async with Processes() as units:
                unit = await units.start(
                    "worker",
                    (sys.executable, "-I", "-S", "-c", PROGRAM),
                    cwd=tmp_path,
                    env=environment({}),
                    stderr=tmp_path / "worker.log",
                )
                asking = ControlChannel(unit.stdin, unit.stdout)
                answer = await asking.ask("status", 5 * SECOND_NS, run="r1")
                with pytest.raises(SimkitError) as caught:
                    await unit.first(lambda: asking.ask("die", 5 * SECOND_NS))
                return answer, caught.value.problem

    answer, problem = trio.run(main)
    assert answer.status == Status("running")
    assert problem.code == "worker-died-at-start"
    assert "I am out" in problem.what
