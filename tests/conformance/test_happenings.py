"""Whatever a report prints as struck or happened can be explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simkit
from conformance.cli import explain, happenings
from conformance.simulate import draw
from conformance.targets import parse
from scenarios import catalogue
from scenarios.interruption import ACTIONS
from scenarios.meanings import told
from simkit._storage.faults import STRIKES
from simkit.faults import FAULTS
from simkit.striking import KINDS
from simkit.tape import Tape

#: Where the package is that is tested, which away from the repository is an installed one.
KIT = Path(simkit.__file__).parent


def sections(name: str) -> str:
    (found,) = (one for one in explain.explain(name) if one.kind in {"interruption", "scenario", "fault"})
    return "\n".join(found.sections.values())


def test_every_label_of_the_catalogue_and_of_drawn_scenarios_is_explained() -> None:
    """Chains, units, targets, lengths of time and boundaries among them."""
    labels = {
        one.label
        for story in catalogue.STORIES
        for s in catalogue.scenarios_of(story, workers=True)
        for one in s.interruptions
    }
    manifest = parse("reference").manifest
    labels |= {one.label for seed in range(200) for one in draw(manifest, Tape.from_seed(seed), seed).interruptions}
    assert len(labels) > 100
    for label in labels:
        assert len(told(label)) == len(re.findall(r"(?:^|\+)[a-z-]+@", label)), label


@pytest.mark.parametrize("name", [*ACTIONS, "storm", "kill@ack:start", "tour/kill@ack:start(engine)"])
def test_actions_labels_and_scenarios_are_explained(name: str) -> None:
    """As they are printed."""
    assert sections(name)


def test_a_chain_is_told_link_by_link() -> None:
    """Whatever its labels say besides the action: unit, time, order."""
    first, second = told("kill@ack:start(engine)~5000000ns+drop@buy#2.applied")
    assert first == (
        "when the kit has just been answered `start`, the unit is killed at once (SIGKILL), and started again by the kit; "
        "the unit is 'engine'; for 5 ms"
    )
    assert second.startswith(
        "after that, once the target is back: when request 2 of call 'buy' has taken effect, the service"
    )
    assert told("kill@nowhere") == told("kil@end") == told("kill@end+") == told("") == ()


@pytest.mark.parametrize(
    "name", ["disk/engine:torn-write", "network:clog", "clog", "crash/engine:dark", "disk/a:rename-eio"]
)
def test_faults_are_explained_as_they_are_printed(name: str) -> None:
    """With the host in front of them, or without."""
    assert sections(name)


def test_every_fault_that_is_counted_is_known() -> None:
    """The names are those in the source of the kit, and every one of them leads to a fault of the registry."""
    network = {
        name
        for path in [*(KIT / "_network").glob("*.py"), KIT / "network.py"]
        for name in re.findall(r'\.count\("([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    assert len(network) > 8
    for part, names in (("disk", STRIKES), ("network", network), ("crash", KINDS.values())):
        for name in names:
            assert happenings._of(part, name) is not None, name
    known = {one.name for one in FAULTS}
    assert all(name in known for names in happenings.PRINTED.values() for name in names.values())
