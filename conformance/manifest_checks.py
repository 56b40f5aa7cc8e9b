"""What is off between the parts of a manifest, section by section, so that a file is judged as far as it can be read."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

from scenarios.obligations.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from conformance.manifest import Configuration, Harness, Install, Operations, Unit, Verbs

#: A claim names one obligation or a whole profile.
PROFILES: Final = tuple(dict.fromkeys(one.profile for one in CATALOGUE.values()))
#: Limits for which 0 says that there is no such bound.
_MAYBE_NONE = ("timer_grain_ms", "lease_ms", "grace_ms", "key_lifetime_ms", "slots", "deaths_max")
_NEEDED_BY: Mapping[str, str] = {"wait": "signal", "approve": "decide"}


def nearest(name: str, names: Collection[str], otherwise: str = "") -> str:
    """` (did you mean 'x'?)`, or what there is when nothing comes near: `otherwise`, or all of it; for the end of a message."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" ({otherwise or 'there are ' + ', '.join(names)})" if names else ""


def between(sections: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    """Every mistake between `sections`, those of a manifest that could be read. Names of claims and the values of limits are
    looked up in `data`, the file as it is: a mistake beside them hides none of theirs.
    """
    for needed, check in _CHECKS.items():
        if sections.keys() >= set(needed):
            yield from check(*(sections[name] for name in needed))
    for where, claims in _claims(data):
        yield from check_claims(where, claims)
    yield from _check_limits(data.get("limits"))


def _check_chosen(harness: Harness, configurations: Mapping[str, Configuration]) -> Iterator[str]:
    chosen = harness.configuration
    if chosen not in configurations:
        yield f"harness.configuration: there is no [configurations.{chosen}]{nearest(chosen, configurations)}"


def _check_operations(operations: Operations) -> Iterator[str]:
    if "call" not in operations.supported:
        yield "operations.supported: 'call' is missing; without calls there is nothing to see"


def _check_codes(codes: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name, others in codes.items():
        for other in others:
            if other not in codes:
                yield f"codes.{name}: {other!r} is no version under [codes]{nearest(other, codes)}"


def _check_swarm(swarm: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name, values in swarm.items():
        if not values:
            yield f"swarm.{name}: empty; expected the values to draw from, the usual one first"


def _check_install(install: Install) -> Iterator[str]:
    for n, requirement in enumerate(install.pip):
        yield from _check_braces(f"install.pip[{n}]", requirement, "version")


def _check_verbs(harness: Harness, operations: Operations, supported: Verbs) -> Iterator[str]:
    verbs: set[str] = set(supported.supported)
    needed = {"start", "status", *(_NEEDED_BY[kind] for kind in operations.supported if kind in _NEEDED_BY)}
    if harness.recovery == "on_request":
        needed.add("resume")
    for verb in sorted(needed - verbs):
        yield f"verbs.supported: {verb!r} is missing, which what stands under [harness] and [operations] needs"
    if ("pause" in verbs) != ("unpause" in verbs):
        yield "verbs.supported: 'pause' and 'unpause' come together"


def _check_units(units: Mapping[str, Unit]) -> Iterator[str]:
    in_control = [name for name, unit in units.items() if unit.control]
    if len(in_control) != 1:
        yield f"units: one unit has control = true, the one the kit asks; here {len(in_control)} of {len(units)} do"
    if not any(unit.killable for unit in units.values()):
        yield "units: none is killable; there would be nothing to find out"
    for name, unit in units.items():
        if not unit.command:
            yield f"units.{name}.command: empty; expected a program and its arguments"
        for n, word in enumerate(unit.command):
            yield from _check_braces(f"units.{name}.command[{n}]", word, "python")


def _check_braces(where: str, text: str, known: str) -> Iterator[str]:
    for name in re.findall(r"\{(\w*)\}", text):
        if name != known:
            yield f"{where}: nobody fills in {{{name}}}; expected {{{known}}}"


#: Which sections a check reads. One that could not be read is blamed for itself only.
_CHECKS: Final[Mapping[tuple[str, ...], Callable[..., Iterator[str]]]] = {
    ("harness", "configurations"): _check_chosen,
    ("units",): _check_units,
    ("operations",): _check_operations,
    ("harness", "operations", "verbs"): _check_verbs,
    ("codes",): _check_codes,
    ("swarm",): _check_swarm,
    ("install",): _check_install,
}


def _check_limits(limits: object) -> Iterator[str]:
    for limit, value in limits.items() if isinstance(limits, dict) else ():
        if type(value) is not int:
            continue  # told already
        if value < 0 or (value == 0 and limit not in _MAYBE_NONE):
            yield f"limits.{limit}: {value}{' milliseconds' if limit.endswith('_ms') else ''}; expected more than none"


def _claims(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every table of claims in the file, with its path."""
    tables = {"claims": data.get("claims")}
    if isinstance(configurations := data.get("configurations"), dict):
        for name, one in configurations.items():
            tables[f"configurations.{name}.claims"] = one.get("claims") if isinstance(one, dict) else None
    yield from ((where, claims) for where, claims in tables.items() if isinstance(claims, dict))


def check_claims(where: str, claims: Mapping[str, object]) -> Iterator[str]:
    """Claims of what is no promise of the catalogue."""
    known = [*PROFILES, *CATALOGUE]
    for name in claims:
        if name not in known:
            near = nearest(name, known, "`simkit list obligations` has all of them")
            yield f"{where}: {name!r} is neither an obligation nor a profile{near}"
