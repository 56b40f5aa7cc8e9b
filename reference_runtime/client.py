"""The client: calls that are repeated until they are answered.

A lost answer says nothing, so a call reconnects and asks the same thing again, after a growing, jittered delay, for as
long as its patience lasts. Every verb may be repeated: tasks and signals by their ids, leases by their generations.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Mapping
from typing import Any

import trio

from reference_runtime.connecting import connect
from reference_runtime.handle import NS, Handle, Patience, Unreachable
from reference_runtime.model import Json, Refusal
from reference_runtime.rpc import (
    ANSWER_BYTES_MAX,
    CROWDED,
    LINE_BYTES_MAX,
    LOST,
    Lines,
    parse_answer,
    refusal_in,
)

CONNECTIONS_IDLE_MAX = 8
#: How long a server does not answer before that is worth a word; a restart takes less.
SILENCE_NS = 5 * NS


class Client(Handle):
    """A handle on the server at `host:port`; connections are made when needed and kept while they work.

    As a context manager it closes at the end what it kept. `on_silence` is told, once for each time that the server does not
    answer for `SILENCE_NS`, for how many seconds it has not.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        patience: Patience | None = None,
        rng: random.Random | None = None,
        on_silence: Callable[[float], object] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.patience = patience or Patience()
        self.rng = rng or random.Random(random.getrandbits(64))
        self._idle: list[Lines] = []
        self._requests = 0
        self._on_silence = on_silence
        self._cause: Exception | None = None  # why the last question has no answer, where that is known
        self._silent_since: float | None = None  # when the first request was made that was not answered, and none since
        self._is_silence_told = False

    async def call(self, verb: str, params: Mapping[str, Any], patience: Patience | None = None) -> Json:
        """Ask until answered. Raises `Refusal` for a no (`too-large`: for what was asked; `too-many-connections`: when patience
        ends and there never was room), `Unreachable` when patience ends.
        """
        patience = patience or self.patience
        total_s = float("inf") if patience.total_ns is None else patience.total_ns / NS
        end, tries, crowded = trio.current_time() + total_s, 0, list[Refusal]()
        while (now := trio.current_time()) < end:
            refused = len(crowded)
            with trio.move_on_at(min(end, now + _answer_ns(tries, patience) / NS)):
                answer = await self._ask(verb, params, crowded)
                if answer is not None:
                    return answer
            if patience.total_ns is not None and _is_no_name(self._cause):
                raise Unreachable(f"{verb}: there is no host of the name {self.host!r} ({self._cause})")
            if len(crowded) == refused:  # what befell this connection may have befallen those that were idle with it
                await self._let_go_of_idle()
            self._note_silence(now)
            await trio.sleep_until(min(end, trio.current_time() + self.backoff_ns(tries, patience) / NS))
            tries += 1
        if crowded and len(crowded) == tries:  # it was never asked at all
            raise crowded[-1]
        last = f"; the last one it gave was {crowded[-1]}" if crowded else f" ({self._cause})" if self._cause else ""
        raise Unreachable(f"{verb}: no answer from {self.host}:{self.port} within {total_s:g} s{last}")

    def backoff_ns(self, tries: int, patience: Patience) -> int:
        """Doubling, half of it left to chance."""
        ceiling = min(patience.backoff_ns_min << min(tries, 30), patience.backoff_ns_max)
        return ceiling // 2 + self.rng.randrange(ceiling // 2 + 1)

    def _note_silence(self, asked: float) -> None:
        """Note that what was asked then has no answer, and tell of it when that has been so for long."""
        if self._silent_since is None:
            self._silent_since = asked
        silent_s = trio.current_time() - self._silent_since
        if silent_s >= SILENCE_NS / NS and not self._is_silence_told and self._on_silence is not None:
            self._is_silence_told = True
            self._on_silence(silent_s)

    async def _ask(self, verb: str, params: Mapping[str, Any], crowded: list[Refusal]) -> Json | None:
        """One request over one connection; None when the answer is lost, or the connection was refused, which is put down in
        `crowded`. The connection is kept only after an answer.
        """
        self._requests += 1
        id_, lines, self._cause = self._requests, None, None
        answered = False
        try:
            lines = self._idle.pop() if self._idle else await self._connect()
            await lines.send({"id": id_, "verb": verb, "params": params}, LINE_BYTES_MAX)
            message = parse_answer(await lines.receive(), id_)
            if (no := refusal_in(message)) is not None and no.code == CROWDED:
                crowded.append(no)
                return None
            answered, self._silent_since, self._is_silence_told = True, None, False
        except (*LOST, ValueError) as error:
            self._cause = error
            return None
        finally:
            if lines is not None and not (answered and self._keep(lines)):
                await trio.aclose_forcefully(lines.stream)
        if no is not None:
            raise no
        result: Json = message["ok"]
        return result

    async def _connect(self) -> Lines:
        return Lines(await connect(self.host, self.port), ANSWER_BYTES_MAX)

    def _keep(self, lines: Lines) -> bool:
        if len(self._idle) < CONNECTIONS_IDLE_MAX:
            self._idle.append(lines)
            return True
        return False

    async def _let_go_of_idle(self) -> None:
        """Close the connections that nobody uses; closing one forcefully does not wait."""
        with trio.CancelScope(shield=True):
            while self._idle:
                await trio.aclose_forcefully(self._idle.pop().stream)

    async def __aexit__(self, *_: object) -> None:
        await self._let_go_of_idle()


def _answer_ns(tries: int, patience: Patience) -> int:
    """How long an answer is waited for, after so many tries that had none."""
    return max(patience.answer_ns, min(patience.answer_ns << min(tries, 30), patience.answer_ns_max or 0))


def _is_no_name(error: Exception | None) -> bool:
    """Whether a host is called so by nobody, which no patience mends; that nobody could be asked is another matter."""
    return isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
