"""Long-running operations: started by one request, asked after by others. No I/O.

start    gives a name at once; the work then takes `params.ns`
get      is it done, and with which result or error
cancel   asks for an end; work that is stubborn (`params.stubborn`) or done already is not ended by it
delete   says that nobody is interested any more: the name is gone, the work goes on
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from simkit.services.contracts import MISSING, Effect, Reply, Request, Settled


@attrs.define
class _Work:
    name: str
    nonce: str
    result: str
    done_ns: int
    stubborn: bool
    cancelled: bool = False
    deleted: bool = False


class Operations:
    """Everything that was ever started, by name; `nonce` makes results, which nobody knows before they are there."""

    def __init__(self, now_ns: Callable[[], int], nonce: Callable[[], str]) -> None:
        self._now_ns = now_ns
        self._nonce = nonce
        self._works: dict[str, _Work] = {}
        self._references: dict[str, str] = {}  # first one started under a caller's reference

    def settle(self, request: Request, make: Callable[[], Effect]) -> Settled:
        """Start, cancel or delete; only a start `make`s an effect."""
        if request.action == "start":
            return self._start(request, make())
        work = self._works.get(request.params["name"])
        if work is None or work.deleted:
            return Settled(MISSING)
        if request.action == "delete":
            work.deleted = True
        elif not work.stubborn and not self._is_done(work):
            work.cancelled = True
        return Settled(Reply(200, {"name": work.name}, "executed"), executed=True)

    def look_up(self, request: Request) -> Reply:
        """The operation of this name, or the first that was started under the caller's reference."""
        work = self._works.get(request.params.get("name") or self._references.get(request.reference, ""))
        if work is None or work.deleted:
            return MISSING
        body: dict[str, object] = {"name": work.name, "nonce": work.nonce, "done": self._is_done(work)}
        if work.cancelled:
            body["error"] = "cancelled"
        elif body["done"]:
            body["result"] = work.result
        return Reply(200, body, "found", work.nonce)

    def forget(self, reference: str) -> bool:
        """Find it by its name only from now on; whether it could be found by this reference."""
        return self._references.pop(reference, None) is not None

    def is_working(self, name: str) -> bool:
        """Whether the work still goes on, deleted or not."""
        return not self._is_done(self._works[name])

    def _start(self, request: Request, effect: Effect) -> Settled:
        name = f"operations/{effect.number}"
        done_ns = self._now_ns() + int(request.params.get("ns") or 0)
        stubborn = bool(request.params.get("stubborn", False))
        self._works[name] = _Work(name, effect.nonce, self._nonce(), done_ns, stubborn)
        self._references.setdefault(request.reference, name)
        reply = Reply(200, {"nonce": effect.nonce, "name": name}, "executed", effect.nonce)
        return Settled(reply, effect, executed=True)

    def _is_done(self, work: _Work) -> bool:
        return work.cancelled or self._now_ns() >= work.done_ns
