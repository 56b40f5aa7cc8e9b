"""What a world can do to a target: which scenarios it can carry out, told before any of it is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from conformance.worlds.room import CAN_BE_TAKEN
from scenarios.interruption import SHARING_ACTIONS, SIMULATED_ACTIONS, VERBS_OF
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from conformance.manifest import Manifest
    from scenarios.interruption import Action, Interruption, Scenario

WorldName: TypeAlias = Literal["process", "simulated"]

#: What can be done inside a step of the target, where nothing may be awaited.
_AT_BOUNDARY: Final = frozenset({"kill", "power", "eio"})
#: What takes down the unit it names.
_DEADLY: Final = frozenset({"kill", "power", "forget", "deploy", "flip", "wipe"})


def possible(scenario: Scenario, world: WorldName, manifest: Manifest) -> bool:
    """Whether `world` can carry out `scenario` on the target of this manifest."""
    return not obstacle(scenario, world, manifest)


def demand(scenario: Scenario, world: WorldName, manifest: Manifest) -> None:
    """Raise `SimkitError` where `world` cannot carry out `scenario`, before anything of it is tried."""
    if reason := obstacle(scenario, world, manifest):
        raise SimkitError(
            Problem(
                "scenario-impossible",
                f"{scenario.name} cannot be carried out on {manifest.harness.name}: {reason}",
                f"{world} world",
                "a scenario that the manifest and the world allow for",
                "tiers and seeds leave such scenarios out; another target, or the other world, may be able to",
                ExitCode.USAGE,
            )
        )


def obstacle(scenario: Scenario, world: WorldName, manifest: Manifest) -> str:
    """What stands in the way of a scenario, in words; nothing when it can be carried out."""
    if missing := sorted(scenario.plan.needs() - set(manifest.operations.supported)):
        return f"[operations] supported has no {', '.join(missing)}"
    links = (link for one in scenario.interruptions for link in one.chain())
    return next((found for link in links if (found := _obstacle(link, world, manifest))), "")


def _obstacle(one: Interruption, world: WorldName, manifest: Manifest) -> str:
    if missing := sorted(_verbs_of(one) - set(manifest.verbs.supported)):
        return f"{one.label}: [verbs] supported has no {', '.join(missing)}"
    if world == "process" and (why := _beyond(one, manifest)):
        return f"{one.label}: {why}"
    if one.site.where == "boundary" and one.action not in _AT_BOUNDARY:
        return f"{one.label}: at a storage boundary only {', '.join(sorted(_AT_BOUNDARY))} can strike"
    if one.action == "eio" and one.site.where != "boundary":
        return f"{one.label}: an operation fails at a storage boundary"
    if one.action in SHARING_ACTIONS and manifest.limits.lease_ms == 0:
        return f"{one.label}: two workers share no store, lease_ms is 0"
    if one.action == "leave" and one.site.unit != manifest.launch_order()[-1]:
        return f"{one.label}: only the worker is asked to leave"
    if one.site.unit not in manifest.units:
        return f"{one.label}: there is no [units.{one.site.unit}]"
    if one.action in _DEADLY and not manifest.units[one.site.unit].killable:
        return f"{one.label}: [units.{one.site.unit}] is not killable"
    return ""


def _beyond(one: Interruption, manifest: Manifest) -> str:
    """Why real processes cannot suffer it."""
    if one.site.where == "boundary":
        return "in the simulated world only"
    if one.action not in SIMULATED_ACTIONS or one.site.unit in real_actions(manifest).get(one.action, ()):
        return ""
    match one.action:
        case "jump" if one.site.unit in manifest.units:
            return f"[units.{one.site.unit}] has no clock = true, so that nobody can set its clock"
        case "full":
            return "the limits of a running process can be changed on Linux only"
        case _:
            return "in the simulated world only"


def real_actions(manifest: Manifest) -> Mapping[Action, Collection[str]]:
    """Which of the `SIMULATED_ACTIONS` can be carried out on real processes of this target, and on which of its units."""
    return {
        "jump": tuple(name for name, unit in manifest.units.items() if unit.clock),
        "full": tuple(manifest.units) if CAN_BE_TAKEN else (),
    }


def _verbs_of(one: Interruption) -> set[str]:
    """The verbs that an interruption needs: its action's own, and the one at whose acknowledgement or repeat it strikes."""
    return {*VERBS_OF.get(one.action, ()), *([one.site.verb] if one.site.verb else [])}
