"""The kit's side of the adapter protocol: JSON lines over any pair of streams, one answer per question.

A question has a `seq`, and so has its answer; an answer to an earlier question that was given up on is skipped. What a
harness says of itself comes back as an `Answer`: ok, a definite error, or an indefinite one. What breaks the protocol
is a `SimkitError` with the offending line: it is the adapter's fault and never counted against the harness.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import cattrs
import trio

from scenarios.history import Status
from simkit.errors import ExitCode, Problem, SimkitError

PROTOCOL = 1
LINE_BYTES_MAX = 1 << 20
_SHOWN = 200  # characters of an offending line that an error repeats
_CONVERTER = cattrs.Converter(forbid_extra_keys=True)


@attrs.frozen
class Answer:
    """What the adapter answered. `ok` is its payload; `status` is filled in for the verb status."""

    outcome: Literal["ok", "error", "indefinite"]
    ok: Mapping[str, Any] = attrs.field(factory=dict)
    detail: str = ""
    status: Status | None = None


class ControlChannel:
    """Questions and answers with one worker. Not for two tasks at a time without the lock that `ask` takes."""

    def __init__(
        self, send: trio.abc.SendStream, receive: trio.abc.ReceiveStream, *, peer: str = "the adapter"
    ) -> None:
        self._send, self._receive, self._peer = send, receive, peer
        self._seq = 0
        self._buffer = bytearray()
        self._lock = trio.Lock()
        self._broken: SimkitError | None = None

    async def ask(self, verb: str, timeout_ns: int, **fields: object) -> Answer:
        """Ask and wait for the answer, at most `timeout_ns`.

        Raises `SimkitError`: `adapter-gone` (its end is closed), `adapter-silent`, `adapter-garbage` (not a JSON line),
        `adapter-malformed-answer` (a wrong type, a missing field, an answer nobody asked for). After any but silence
        the channel is of no further use and raises the same again.
        """
        async with self._lock:
            if self._broken is not None:
                raise self._broken
            try:
                return await self._exchange(verb, timeout_ns, fields)
            except SimkitError as error:
                if error.problem.code != "adapter-silent":
                    self._broken = error
                raise

    async def _exchange(self, verb: str, timeout_ns: int, fields: Mapping[str, object]) -> Answer:
        self._seq += 1
        line = json.dumps({"seq": self._seq, "verb": verb, **fields}).encode() + b"\n"
        with trio.move_on_after(timeout_ns / 1e9):
            try:
                await self._send.send_all(line)
                while True:
                    answer = self._parse(await self._line(verb), verb)
                    if answer is not None:
                        return answer
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
                raise self._gone(verb, str(error)) from error
        raise SimkitError(
            Problem(
                "adapter-silent",
                f"{self._peer} did not answer `{verb}` within {timeout_ns / 1e9:g} s",
                f"verb {verb}, question {self._seq}",
                "one JSON line with this seq",
                "an adapter answers at once and works in the background; is it waiting inside the verb?",
                ExitCode.TARGET,
            )
        )

    async def _line(self, verb: str) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LINE_BYTES_MAX:
                raise self._garbage(bytes(self._buffer), verb, f"a line of more than {LINE_BYTES_MAX} bytes")
            chunk = await self._receive.receive_some(65536)
            if not chunk:
                raise self._gone(verb, "end of stream")
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _parse(self, line: bytes, verb: str) -> Answer | None:
        """The answer in a line; None when it answers an earlier question."""
        try:
            data = json.loads(line)
        except ValueError:
            raise self._garbage(line, verb, "a line that is not JSON") from None
        if not isinstance(data, dict) or not isinstance(data.get("seq"), int):
            raise self._malformed(line, verb, "an answer without an integer `seq`")
        if data["seq"] < self._seq:
            return None
        if data["seq"] > self._seq:
            raise self._malformed(line, verb, f"an answer to question {data['seq']}, which was never asked")
        if unknown := sorted(set(data) - {"seq", "ok", "error"}):
            raise self._malformed(line, verb, f"unknown field {unknown[0]!r}")
        if "error" in data:
            return self._error(data["error"], line, verb)
        if not isinstance(data.get("ok"), dict):
            raise self._malformed(line, verb, "neither `ok` (an object) nor `error`")
        status = self._status(data["ok"], line) if verb == "status" else None
        return Answer("ok", data["ok"], status=status)

    def _error(self, error: object, line: bytes, verb: str) -> Answer:
        if not isinstance(error, dict) or error.get("kind") not in {"definite", "indefinite"}:
            raise self._malformed(line, verb, "an error whose kind is neither definite nor indefinite")
        outcome: Literal["error", "indefinite"] = "error" if error["kind"] == "definite" else "indefinite"
        return Answer(outcome, detail=str(error.get("message", "")))

    def _status(self, data: Mapping[str, Any], line: bytes) -> Status:
        try:
            return _CONVERTER.structure(data, Status)
        except Exception as error:  # cattrs groups its errors; each names its path
            raise self._malformed(line, "status", "; ".join(cattrs.transform_error(error, path="status"))) from error

    def _gone(self, verb: str, how: str) -> SimkitError:
        return self._problem("adapter-gone", f"{self._peer} closed the channel ({how})", verb, "an answer", "")

    def _garbage(self, line: bytes, verb: str, what: str) -> SimkitError:
        return self._problem(
            "adapter-garbage",
            f"{self._peer} printed {what}: {line[:_SHOWN]!r}",
            verb,
            'JSON lines such as {"seq": 1, "ok": {}} and nothing else on standard output',
            "print diagnostics to standard error; the helper `simkit_adapter.serve` does that for you",
        )

    def _malformed(self, line: bytes, verb: str, what: str) -> SimkitError:
        return self._problem(
            "adapter-malformed-answer",
            f"{self._peer} answered with {what}: {line[:_SHOWN]!r}",
            verb,
            "an answer as docs/contract.md describes it",
            "the helper `simkit_adapter.serve` writes answers of the right shape",
        )

    def _problem(self, code: str, what: str, verb: str, expected: str, hint: str) -> SimkitError:
        return SimkitError(Problem(code, what, f"verb {verb}, question {self._seq}", expected, hint, ExitCode.TARGET))
