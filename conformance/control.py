"""The kit's side of the adapter protocol: JSON lines over any pair of streams, one answer per question.

A question has a `seq`, and so has its answer. Several questions may be under way at a time, for several runs, and their
answers come in any order; the answer to a question that was given up on is skipped. What a harness says of itself comes
back as an `Answer`: ok, a definite error, or an indefinite one. What breaks the protocol is a `SimkitError` with the
offending line: it is the adapter's fault and never counted against the harness.

There is no task behind a channel: whoever waits for an answer reads for everybody, one reader at a time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args, get_origin

import attrs
import cattrs
import trio
from cattrs.errors import ForbiddenExtraKeysError

from conformance.files import NotPlainError, parse_plain
from scenarios.history import State, Status
from simkit.errors import ExitCode, Problem, SimkitError
from simkit.services import LineReader, LineTooLongError

PROTOCOL: Final = 1
LINE_BYTES_MAX: Final = 4 << 20

#: Unanswered questions the channel remembers, so that their late answers surprise nobody.
GIVEN_UP_MAX: Final = 1_000

_FAULTS_SHOWN = 400
_SHOWN = 200  # characters of an offending line that an error repeats


@attrs.frozen
class Answer:
    """What the adapter answered. `ok` is its payload; `status` is filled in for the verb status; not `told`: there was none."""

    outcome: Literal["ok", "error", "indefinite"]
    ok: Mapping[str, Any] = attrs.field(factory=dict)
    detail: str = ""
    status: Status | None = None
    told: bool = True


@attrs.define(eq=False)
class _Question:
    seq: int
    verb: str
    answer: Answer | None = None
    woken: trio.Event | None = None  # while it waits beside the reader

    @property
    def place(self) -> str:
        return f"verb {self.verb}, question {self.seq}"

    async def wait(self) -> None:
        """Until woken: answered, called to read, or to be told that the channel is broken."""
        self.woken = trio.Event()
        try:
            await self.woken.wait()
        finally:
            self.woken = None

    def wake(self) -> None:
        if self.woken is not None:
            self.woken.set()


class _MalformedError(Exception):
    """An answer of the wrong shape; says what is off, and what was wanted where that is no matter of the verb."""

    def __init__(self, what: str, expected: str = "") -> None:
        super().__init__(what)
        self.expected = expected


class ControlChannel:
    """Questions and answers with one worker, from any number of tasks."""

    def __init__(
        self,
        send: trio.abc.SendStream,
        receive: trio.abc.ReceiveStream,
        *,
        peer: str = "the adapter",
        last_words: Callable[[], str] = str,
    ) -> None:
        """`peer` and the end of its error output, `last_words`, are told in errors."""
        self._send, self._peer, self._last_words = send, peer, last_words
        self._lines = LineReader(receive, LINE_BYTES_MAX)
        self._sending = trio.Lock()
        self._reading = False
        self._asked = 0
        self._open: dict[int, _Question] = {}
        self._given_up: dict[int, None] = {}
        self._broken: Problem | None = None

    async def ask(self, verb: str, timeout_ns: int, **fields: object) -> Answer:
        """Ask and wait for the answer, at most `timeout_ns`.

        Raises `SimkitError`: `adapter-gone` (its end is closed), `adapter-silent`, `adapter-garbage` (not a JSON line),
        `adapter-malformed-answer` (a wrong type, a missing field, an answer nobody asked for). After any but silence
        the channel is of no further use, and whoever asks or waits is told the same.
        """
        self._asked += 1
        question = self._open[self._asked] = _Question(self._asked, verb)
        try:
            with trio.move_on_after(timeout_ns / 1e9):
                await self._put(question, fields)
                return await self._get(question)
        finally:
            self._leave(question)
        raise SimkitError(self._silent(question, timeout_ns))

    async def _put(self, question: _Question, fields: Mapping[str, object]) -> None:
        line = json.dumps({"seq": question.seq, "verb": question.verb, **fields}).encode() + b"\n"
        if self._sending.locked():
            await self._sending.acquire()
        else:
            self._sending.acquire_nowait()  # most often; not worth a turn of the scheduler
        sent = False
        try:
            self._check()
            await self._send.send_all(line)
            sent = True
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            self._break(self._gone(question, str(error)))
            self._check()
        finally:
            if not sent:  # cut off by a timeout, perhaps in the middle of the line: nothing can follow it
                self._break(self._problem(question, "adapter-silent", "does not read its input", "", _SLOW))
            self._sending.release()

    async def _get(self, question: _Question) -> Answer:
        while question.answer is None:
            self._check()
            if self._reading:
                await question.wait()
            else:
                await self._read(question)
        return question.answer

    async def _read(self, reader: _Question) -> None:
        """Read one line for whoever it answers."""
        self._reading = True
        try:
            line = await self._lines.read()
        except LineTooLongError as error:
            self._break(self._garbage(reader, error.start, f"a line of more than {error.bytes_max} bytes"))
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            self._break(self._gone(reader, str(error) or "its standard output"))
        else:
            if line is None:
                cut = f" in the middle of the line {self._lines.rest[:_SHOWN]!r}" if self._lines.rest else ""
                self._break(self._gone(reader, f"end of stream{cut}"))
            else:
                self._take(line, reader)
        finally:
            self._reading = False

    def _take(self, line: bytes, reader: _Question) -> None:
        try:
            data = parse_plain(line.decode("utf-8"))
        except NotPlainError as error:
            self._break(self._garbage(reader, line, f"a line that is no plain JSON ({error})"))
            return
        except ValueError:
            self._break(self._garbage(reader, line, "a line that is not JSON"))
            return
        asked = reader
        try:
            seq = _seq(data)
            if seq in self._given_up:
                del self._given_up[seq]
                return
            asked = self._find(seq)
            asked.answer = _answer(data, asked.verb)
            asked.wake()
        except _MalformedError as error:
            self._break(self._malformed(asked, line, error))

    def _find(self, seq: int) -> _Question:
        question = self._open.get(seq)
        if question is None or question.answer is not None:
            waiting = " or ".join(str(one.seq) for one in self._open.values() if one.answer is None)
            raise _MalformedError(
                f"an answer to question {seq}, which is not open", f"seq {waiting}, as the question had"
            )
        return question

    def _leave(self, question: _Question) -> None:
        """The question is answered or given up on; somebody else reads from here."""
        del self._open[question.seq]
        if question.answer is None and self._broken is None:
            self._given_up[question.seq] = None
            if len(self._given_up) > GIVEN_UP_MAX:
                what = f"left {GIVEN_UP_MAX} questions unanswered"
                self._break(self._problem(question, "adapter-silent", what, "", _SLOW))
        if not self._reading:
            beside = next((one for one in self._open.values() if one.woken is not None), None)
            if beside is not None:
                beside.wake()

    def _break(self, problem: Problem) -> None:
        """From now on everybody is told `problem`; the first one stays."""
        self._broken = self._broken or problem
        for question in self._open.values():
            question.wake()

    def _check(self) -> None:
        if self._broken is not None:
            raise SimkitError(self._broken)

    def _silent(self, question: _Question, timeout_ns: int) -> Problem:
        what = f"did not answer `{question.verb}` within {timeout_ns / 1e9:g} s"
        if begun := self._lines.rest:
            what += f"; it began a line and did not end it: {begun[:_SHOWN]!r}"
        return self._problem(question, "adapter-silent", what, "one JSON line with this seq", _SLOW)

    def _gone(self, question: _Question, how: str) -> Problem:
        hint = "did its process end? Its error output tells why"
        how = how or "its standard input"
        return self._problem(question, "adapter-gone", f"closed the channel ({how})", "an answer", hint)

    def _garbage(self, question: _Question, line: bytes, what: str) -> Problem:
        return self._problem(
            question,
            "adapter-garbage",
            f"printed {what}: {line[:_SHOWN]!r}",
            'JSON lines such as {"seq": 1, "ok": {}} and nothing else on standard output',
            "print diagnostics to standard error; the helper `simkit_adapter.serve` does that for you",
        )

    def _malformed(self, question: _Question, line: bytes, error: _MalformedError) -> Problem:
        return self._problem(
            question,
            "adapter-malformed-answer",
            f"answered with {error}: {line[:_SHOWN]!r}",
            error.expected or self._wanted(question.verb),
            "docs/contract.md lists every field of every answer; the helper `simkit_adapter.serve` writes the right shape",
        )

    @staticmethod
    def _wanted(verb: str) -> str:
        if verb == "status":
            return f"a state of {', '.join(get_args(State))}"
        fields = ", ".join(_BODIES.get(verb, ()))
        return "one of `ok` and `error`" + (f", and of ok {fields}" if fields else "")

    def _problem(self, question: _Question, code: str, what: str, expected: str, hint: str) -> Problem:
        if words := self._last_words():
            what = "\n    ".join((f"{what}; the end of its error output:", *words.splitlines()))
        return Problem(code, f"{self._peer} {what}", question.place, expected, hint, ExitCode.TARGET)


_SLOW = "an adapter answers at once and works in the background; is it waiting inside the verb?"


def _seq(data: object) -> int:
    if not isinstance(data, dict) or type(data.get("seq")) is not int:
        raise _MalformedError("no object with an integer `seq`", "an object with the `seq` of the question, a number")
    return int(data["seq"])


def _answer(data: Mapping[str, Any], verb: str) -> Answer:
    """The answer in a decoded line; raises `_MalformedError`."""
    if unknown := sorted(set(data) - {"seq", "ok", "error"}):
        raise _MalformedError(f"the unknown field {unknown[0]!r}")
    if ("ok" in data) == ("error" in data):
        raise _MalformedError("not exactly one of `ok` and `error`")
    if "error" in data:
        return _error(data["error"])
    if not isinstance(data["ok"], dict):
        raise _MalformedError("an `ok` that is no object")
    if verb == "status":
        return Answer("ok", data["ok"], status=read_status(data["ok"]))
    _check_body(data["ok"], verb)
    return Answer("ok", data["ok"])


#: What an answer must hold for the kit to read on: field and type, by verb. Whatever else it says is for judges to read.
_BODIES: Final[Mapping[str, Mapping[str, type]]] = {
    "events": {"events": list, "next": int},
    "artifacts": {"artifacts": list},
}
_ARTIFACT: Final[Mapping[str, type]] = {"name": str, "location": str}
#: States of artifacts that have a version; what was never accepted has none.
_VERSIONED: Final = frozenset({"accepted", "superseded"})


def _check_body(body: Mapping[str, Any], verb: str) -> None:
    """Raise `_MalformedError` where an answer lacks what the kit itself goes by."""
    for field, kind in _BODIES.get(verb, {}).items():
        if type(body.get(field)) is not kind:
            raise _MalformedError(f"no {kind.__name__} as {field!r}")
    for number, row in enumerate(body["artifacts"] if verb == "artifacts" else ()):
        if not isinstance(row, dict) or any(type(row.get(name)) is not kind for name, kind in _ARTIFACT.items()):
            raise _MalformedError(f"artifacts[{number}] without {', '.join(_ARTIFACT)} of their types")
        version = row.get("version")
        if type(version) is not int and (version is not None or row.get("state") in _VERSIONED):
            raise _MalformedError(f"artifacts[{number}] whose version is {version!r:.80}: no integer")


def _error(error: object) -> Answer:
    if not isinstance(error, dict) or set(error) - {"kind", "message"}:
        raise _MalformedError("an `error` that is no object of `kind` and `message`")
    if error.get("kind") not in {"definite", "indefinite"} or not isinstance(error.get("message", ""), str):
        raise _MalformedError("an `error` whose kind is neither definite nor indefinite, or whose message is no text")
    return Answer("error" if error["kind"] == "definite" else "indefinite", detail=error.get("message", ""))


def read_status(data: Mapping[str, Any]) -> Status:
    """A status as the adapter wrote it. Types are taken at their word: a number is no text, and unknown fields are refused."""
    for field in _LISTS:
        if not isinstance(data.get(field, []), list):
            raise _MalformedError(f"a status whose `{field}` are no list")
    with contextlib.suppress(Exception):
        return _QUICK.structure(data, Status)
    try:  # once more, for what is wrong with it
        return _STATUS.structure(data, Status)
    except Exception as error:  # cattrs groups its errors; each names its path
        faults = "; ".join(_moved(text) for text in cattrs.transform_error(error, "status", _describe))
        raise _MalformedError(f"a status that cannot be read ({faults[:_FAULTS_SHOWN]})") from error


_LISTS: Final = ("operations", "children", "approvals")


def _describe(error: BaseException, wanted: type | None) -> str:
    if isinstance(error, ForbiddenExtraKeysError):
        names = [field.name for field in attrs.fields(error.cl)]
        return "; ".join(f"unknown field {key!r}, there are {', '.join(names)}" for key in sorted(error.extra_fields))
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    if get_origin(wanted) is Literal:
        return f"none of {', '.join(get_args(wanted))}"
    if isinstance(error, TypeError):
        return str(error)
    if "Mapping" in str(wanted):
        return "expected an object whose values are text" if "str, str" in str(wanted) else "expected an object"
    return f"not a valid {getattr(wanted, '__name__', 'value')}"


def _moved(text: str) -> str:
    """cattrs says `complaint @ path`; a reader looks for the path first."""
    complaint, _, where = text.rpartition(" @ ")
    return f"{where}: {complaint}"


def _exactly(kind: type) -> Any:
    def hook(value: object, _: object) -> object:
        if type(value) is not kind:  # bool is no int here, and nothing is turned into text
            raise TypeError(f"expected {kind.__name__}, got {value!r:.80}")
        return value

    return hook


def _strict(*, explains: bool) -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=explains)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    return converter


_STATUS, _QUICK = _strict(explains=True), _strict(explains=False)
