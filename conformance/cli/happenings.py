"""What a report says that struck or happened, explained: labels of interruptions, actions, scenarios, faults of the world."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation
from scenarios.interruption import ACTIONS
from scenarios.meanings import MEANINGS, STORM_MEANING, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simkit.faults import Fault

#: Faults as they are counted (`disk/engine:torn-write`) by their name in the registry, which docs/faults.md shows.
PRINTED: Mapping[str, Mapping[str, str]] = {
    "disk": {
        "lost-write": "lost write",
        "hollow-write": "hollow write",
        "torn-write": "torn write",
        "reordered-write": "reordered writes",
        "lost-create": "lost create",
        "lost-unlink": "lost unlink",
        "lost-rename": "lost rename",
        "lost-mkdir": "lost create",
        "lost-rmdir": "lost unlink",
        "fsync-eio": "failed fsync",
        "write-enospc": "full disk",
        "lying-fsync": "lying fsync",
        "lying-sync_dir": "lying fsync",
        "short-read": "short read",
        "bit-rot": "bit rot",
        "misdirected-write": "misdirected write",
        "slow": "slow operation",
        "stuck": "stuck operation",
    },
    "network": {
        "partition": "partition",
        "clog": "clogged link",
        "stall": "lost segment, as a stall",
        "break": "broken connection",
        "reset": "broken connection",
        "slow-read": "slow reader",
        "half-open": "half-open peer",
        "timed-out": "silence, noticed",
        "syn-loss": "slow or failing connect",
        "dns": "name that does not resolve",
        "datagram-loss": "lost message",
        "datagram-cut": "lost message",
        "datagram-overflow": "lost message",
        "datagram-duplicate": "doubled message",
        "death-drops": "death of a peer",
    },
    "crash": {
        "kill": "kill",
        "kill-after": "kill",
        "torn": "torn write",
        "power": "lost write",
        "power-state": "lost write",
        "dark": "half-open peer",
        "pause": "pause",
    },
}


def explained(wanted: str) -> e.Explained | None:
    """What `wanted` means when it is an action, a label, a scenario, or a fault as it is printed; else nothing."""
    if wanted == "storm":
        return e.Explained("interruption", wanted, "faults of the simulated world", {"what happens": STORM_MEANING})
    if wanted in ACTIONS:
        return e.Explained("interruption", wanted, "what is done to the world", {"what happens": MEANINGS[wanted]})
    if sentences := told(wanted):
        return e.Explained("interruption", wanted, "what is done to the world, and where", _listed(sentences))
    return _scenario(wanted) or _fault(wanted)


def known() -> Iterable[str]:
    """Names that `explained` knows whole, to find the nearest."""
    return (*ACTIONS, "storm", *(what for part in PRINTED.values() for what in part))


def _listed(sentences: tuple[str, ...]) -> dict[str, str]:
    return {"what happens": "\n".join(sentences)}


def _scenario(wanted: str) -> e.Explained | None:
    from scenarios.catalogue import STORIES, by_name

    scenario = by_name(wanted)
    if scenario is None:
        return None
    story = STORIES[wanted.partition("/")[0]].story
    happens = [sentence for one in scenario.interruptions for sentence in told(one.label)]
    sections = {
        "story": story,
        "what happens": "\n".join(happens) or "nothing disturbs it",
        "try it": invocation.line("replay", "-t", "reference", "--scenario", wanted),
    }
    return e.Explained("scenario", wanted, "a named scenario", sections)


def _fault(wanted: str) -> e.Explained | None:
    match = re.fullmatch(r"(?:(disk|crash)(?:/([^:]+))?|(network)):([a-z_-]+)|([a-z_-]+)", wanted)
    if match is None:
        return None
    what = match[4] or match[5]
    parts = [match[1] or match[3]] if match[1] or match[3] else list(PRINTED)
    found = next((one for part in parts if (one := _of(part, what)) is not None), None)
    if found is None:
        return None
    sections = {
        "what happens": found.what,
        "of": f"host {match[2]!r}" if match[2] else "",
        "struck by": found.by_name,
        "drawn by": found.drawn,
        "against the real thing": found.how,
    }
    title = f"{found.name}, a fault of the simulated world"
    return e.Explained("fault", wanted, title, {name: text for name, text in sections.items() if text})


def _of(part: str, what: str) -> Fault | None:
    """The fault of the registry that is counted under this name."""
    from simkit.faults import FAULTS

    name = PRINTED[part].get(what)
    if name is None and part == "disk" and re.fullmatch(r"[a-z_]+-e[a-z]+", what):
        name = "read or write error"  # any call may be told to fail with any error
    return next((fault for fault in FAULTS if fault.name == name), None)
