"""Interruptions in words: what each action does, and what each part of a label says. Pure data, and one reader of labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scenarios.interruption import ACTIONS, Action

#: What is done, by action.
MEANINGS: Final[Mapping[Action, str]] = MappingProxyType(
    {
        "kill": "the unit is killed at once (SIGKILL), and started again by the kit",
        "power": "the unit is killed, and what its disk had not synced is lost (simulated world)",
        "drop": "the service never sends its reply; the connection stays open",
        "reset": "the service resets the connection in place of its reply",
        "delay": "the service's reply waits",
        "error-before": "the service answers 503 and applies nothing",
        "error-after": "the service applies the call, then answers 503",
        "leave": "the worker is asked to leave (SIGTERM): it ends what it has begun, hands back the rest, and ends",
        "pause": "the worker is stopped, a second one is started, then the first goes on",
        "lose-ack": "the kit throws the answer away and asks again",
        "repeat": "the kit asks the same thing again, with the same ids",
        "early": "a signal is sent and answered while a call before its wait is held",
        "cancel": "the kit asks for the run to be cancelled",
        "halt": "the kit asks for the run to be paused, and later to go on",
        "steer": "the kit gives two directions, in order, for what an operation is to be asked",
        "deny": "the decision on an approval is no",
        "forge": "somebody without authority decides first",
        "revoke": "an approval is given, then the approver's authority is withdrawn for a time",
        "late-decision": "the decision comes only once its validity has passed",
        "cross": "a yes and a no come one after the other, under two ids",
        "stale-decision": "an operation is steered while it waits for approval, then decided by the old digest and by the new",
        "unmatched": "a signal comes that nothing waits for",
        "late-signal": "one signal more of a known name comes, after its waits are over",
        "misuse": "the same id is started again with another plan",
        "forget": "the engine is killed, and comes up without its audit trail",
        "deploy": "the unit is killed and started with another version of its code",
        "second": "another worker is started under the same name, beside the living one",
        "jump": "the wall clock of the unit jumps, backwards where the time is negative",
        "full": "the disk of the unit is full for a time",
        "eio": "one write or sync fails (simulated world)",
        "flip": "the unit is killed, one bit of its largest state file is flipped, and it is started again",
        "wipe": "the worker is killed, and its state folder emptied",
        "crowd": "other runs are started at once",
        "notice": "a receiver says later, and twice, that an effect happened, and once of one that belongs nowhere",
        "expire": "the service never sends its reply, and forgets the key at once",
    }
)
assert set(MEANINGS) == set(ACTIONS)
#: What the label of a run says whose disk and network misbehave by themselves.
STORM_MEANING: Final = (
    "disks and network of the simulated world misbehave by themselves in this run, as drawn from its seed, until a calm "
    "comes; `run --no-swarm` leaves it out"
)
_BARRIERS = {"received": "reaches the service", "applied": "has taken effect", "replied": "has been answered"}
#: What a length of time is, where it is not how long it lasts.
_LENGTHS: Final[Mapping[Action, str]] = {"jump": "by {:g} ms", "leave": "{:g} ms later"}
_LINK = re.compile(
    r"(?P<action>[a-z-]+)@(?P<site>[^+(>=~\[]+(?:\+\d+ns)?)"
    r"(?:\((?P<unit>[^)]+)\))?(?:>(?P<target>[^=~\[+]+))?(?:=(?P<arg>[^~\[+]+))?(?:~(?P<ns>-?\d+)ns)?(?:\[(?P<state>[^\]]*)\])?"
)


def told(label: str) -> tuple[str, ...]:
    """A label such as `kill@ack:start(engine)+drop@a#1.applied` in sentences, one for each interruption of the chain; empty
    when it is none.
    """
    found: list[str] = []
    at = 0
    while at <= len(label):
        match = _LINK.match(label, at)
        where = _where(match["site"]) if match else ""
        if match is None or not where or match["action"] not in MEANINGS:
            return ()
        found.append(("after that, once the target is back: " if found else "") + _sentence(match, where))
        if match.end() == len(label):
            return tuple(found)
        if label[match.end()] != "+":
            return ()
        at = match.end() + 1
    return ()


def _sentence(match: re.Match[str], where: str) -> str:
    action: Action = match["action"]  # type: ignore[assignment]
    parts = [f"{where}, {MEANINGS[action]}"]
    if match["unit"]:
        parts.append(f"the unit is {match['unit']!r}")
    if match["target"]:
        parts.append(f"the operation is {match['target']!r}")
    if match["arg"]:
        parts.append(f"with {match['arg']}")
    if match["ns"]:
        parts.append(_LENGTHS.get(action, "for {:g} ms").format(int(match["ns"]) / 1e6))
    if match["state"]:
        parts.append(f"the disk is left in state {match['state']}")
    return "; ".join(parts)


def _where(site: str) -> str:
    """When a site is reached, or nothing when it is none."""
    if site == "end":
        return "when a status shows that the run has ended"
    if match := re.fullmatch(r"ack:([a-z]+)(?::(.+))?", site):
        of = f" of {match[2]!r}" if match[2] else ""
        return f"when the kit has just been answered `{match[1]}`{of}"
    if match := re.fullmatch(r"waiting:(.+)", site):
        return f"while the run waits at {match[1]!r}"
    if match := re.fullmatch(r"t\+(-?\d+)ns", site):
        return f"{int(match[1]) / 1e6:g} ms after the start was asked"
    if match := re.fullmatch(r"(.+)\.boundary#(\d+)", site):
        return f"at storage boundary {match[2]} (a write, a sync, …) of unit {match[1]!r}"
    if match := re.fullmatch(r"(.+)#(\d+)\.(received|applied|replied)", site):
        call = "any call" if match[1] == "*" else f"call {match[1]!r}"
        nth = "each request" if match[2] == "0" else f"request {match[2]}"
        return f"when {nth} of {call} {_BARRIERS[match[3]]}"
    return ""
