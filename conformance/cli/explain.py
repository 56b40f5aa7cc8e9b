"""`explain`: an obligation, a profile, a reported fault, a mutant, an error code, an exit code, an interruption, a fault, a
case, a certificate or a word that reports use, in words, as `Explained` events.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from conformance import events as e
from conformance import invocation
from conformance.certificate_file import is_certificate
from conformance.cli import certificates, codes, happenings, listing, relations, saved, stories, usage, vocabulary
from scenarios.obligations.groups import GROUPS
from simkit.errors import ORDER, ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.mutants.outline import Outline
    from conformance.store import Store
    from scenarios.faults import Reported
    from scenarios.obligations import Obligation
    from scenarios.obligations.catalogue import Promise

_LEVELS = {"MUST": "decides certification", "SHOULD": "is reported, and decides nothing"}
_KINDS = {
    "safety": "safety: one forbidden observation is enough, whenever it happens",
    "liveness": "liveness: required once faults stop; a miss is run again with four times the bound",
}


def explain(wanted: str, store: Store | None = None) -> Iterator[e.Explained]:
    """What `wanted` means, or what is known of the case of `store` that is called so: every meaning, where a word has several.
    Raises SimkitError naming the nearest known id.
    """
    words, named = [*vocabulary.explained(wanted)], _named(wanted, store)
    if not words and named is None:
        raise _unknown(wanted)
    yield from words
    if named is not None:
        yield named


def _named(wanted: str, store: Store | None) -> e.Explained | None:
    """What has this id; of several the first."""
    promises = listing.catalogue()
    profiles = {one.profile.lower(): one.profile for one in promises.values()}
    if promise := promises.get(wanted.upper()):
        judged = listing.registry().get(promise.id)
        return _unjudged(promise) if judged is None else _obligation(judged)
    if profile := profiles.get(wanted.lower()):
        return _profile(profile)
    if fault := listing.faults().get(wanted.upper()):
        return _fault(fault)
    if wanted in codes.CODES:
        return _code(wanted)
    if (number := {str(int(one)): one for one in ExitCode}.get(wanted)) is not None:
        return _exit(number)
    if mutant := listing.mutant_registry().get(wanted):
        return _mutant(wanted, mutant)
    if is_certificate(Path(wanted)):
        return certificates.explained(Path(wanted))
    if store is not None and (path := _case_file(store, wanted)) is not None:
        return saved.explained(path, store.load_case(str(path)))
    return happenings.explained(wanted) or stories.explained(wanted)


def _unknown(wanted: str) -> SimkitError:
    promises = listing.catalogue()
    profiles = dict.fromkeys(one.profile for one in promises.values())
    ids = (*promises, *profiles, *listing.faults(), *codes.CODES, *listing.mutant_registry())
    names = (*ids, *happenings.known(), *vocabulary.known(), *stories.known())
    hint = f"{_numbered(wanted) or usage.nearest(wanted, names)} `simkit explain` lists everything".strip()
    expected = (
        "an obligation, a group, a profile, an anomaly, a verdict, a tier, a requirement set, a fault, an interruption, a "
        "story, a scenario, a service, a mutant, an error code, an exit code, a case or a certificate"
    )
    what = f"nothing is called {wanted!r}"
    return SimkitError(Problem("explain-unknown", what, "command line", expected, hint))


def _numbered(wanted: str) -> str:
    """Of a reported fault that there is not: which there are, for no number is near another."""
    if not re.fullmatch(r"F\d+", wanted, re.IGNORECASE):
        return ""
    numbers = list(listing.faults())
    return f"reported faults are {numbers[0]} to {numbers[-1]};"


def known() -> Iterator[e.Listed | e.ObligationListed]:
    """Everything that can be explained, but for mutants, stories and scenarios, which `list` names."""
    yield from listing.obligations()
    profiles = Counter(one.profile for one in listing.catalogue().values())
    for name, count in profiles.items():
        yield e.Listed("profiles", name, f"{count} {'obligation' if count == 1 else 'obligations'}")
    yield from vocabulary.listed()
    for fault in listing.faults().values():
        yield e.Listed("reported faults", fault.number, fault.kind, {"caught by": ", ".join(fault.obligations)})
    for code, one in codes.CODES.items():
        yield e.Listed("error codes", code, one.meaning)
    for number in ExitCode:
        yield e.Listed("exit codes", str(int(number)), codes.EXITS[number])


def _obligation(one: Obligation) -> e.Explained:
    from scenarios.obligations import ANOMALIES

    anomalies = "\n".join(f"{name}: {ANOMALIES[name]}" for name in one.anomalies)
    sections = {
        "promise": one.promise,
        "put to the test by": one.tested_by,
        "when it is broken": anomalies,
        "usual causes": "\n".join(f"- {cause}" for cause in one.causes),
        "how it is judged": f"{one.level}, which {_LEVELS[one.level]}\n{_KINDS[one.kind]}\n"
        f"put to the test at least {one.minimum} times, else inconclusive",
        "profile": f"{one.profile}, granted whole or not at all",
        **_related(one.id),
    }
    return e.Explained("obligation", one.id, one.name, {title: text for title, text in sections.items() if text})


def _unjudged(one: Promise) -> e.Explained:
    """A promise that this build cannot judge."""
    sections = {
        "promise": one.promise,
        "how it is judged": f"{one.level}, which {_LEVELS[one.level]}\n{_KINDS[one.kind]}\n"
        "it has no judge yet, so no certificate says anything of it",
        "profile": f"{one.profile}, granted whole or not at all",
        **_related(one.id),
    }
    return e.Explained(
        "obligation", one.id, GROUPS[one.group].title, {name: text for name, text in sections.items() if text}
    )


def _related(id_: str) -> dict[str, str]:
    """What belongs to an obligation: stories, mutants, reported faults."""
    mutants, faults = relations.mutants_of(id_), relations.faults_of(id_)
    return {
        "exercised by the stories": ", ".join(relations.stories_of(id_)),
        "proven by the mutants": "\n".join(f"{one.name}: {one.change}" for one in mutants),
        "seen in the wild": "\n".join(f"{one.number}  {one.kind}" for one in faults),
    }


def _fault(one: Reported) -> e.Explained:
    """A kind of fault that was reported, and what is there to catch it."""
    judged = listing.registry()
    promises = [
        f"{id_}  {listing.catalogue()[id_].promise}{'' if id_ in judged else ' (no judge yet)'}"
        for id_ in one.obligations
    ]
    sections = {
        "what goes wrong": one.kind,
        "caught by": "\n".join(promises),
        "exercised by the stories": ", ".join(relations.stories_of_fault(one)),
    }
    title = f"a kind of fault that was reported: {one.area}"
    return e.Explained("reported fault", one.number, title, {name: text for name, text in sections.items() if text})


def _profile(name: str) -> e.Explained:
    """What a profile stands for, and what it takes to be granted."""
    from scenarios.requirements import DRAFTS, demanded

    sets = [demanded(), *DRAFTS.values()]
    demands = next((one for one in sets if name in one.profiles), sets[-1])
    musts = {one.id for one in demands.requirements if one.level == "MUST"}
    rows = [one for one in listing.registry().values() if one.profile == name]
    unjudged = [
        one for id_, one in listing.catalogue().items() if one.profile == name and id_ not in listing.registry()
    ]
    sections = {
        "granted when all of these pass": "\n".join(f"{one.id}  {one.promise}" for one in rows if one.id in musts),
        "also reported": "\n".join(f"{one.id}  {one.promise}" for one in rows if one.id not in musts),
        "without a judge yet": "\n".join(f"{one.id}  {one.promise}" for one in unjudged),
        "how it is claimed": f"[claims.{name}] in adapter.toml claims every obligation that has a judge, by one statement",
    }
    title = f"a profile of requirement set {demands.title}, granted whole or not at all"
    return e.Explained("profile", name, title, {head: text for head, text in sections.items() if text})


def _mutant(name: str, one: Outline) -> e.Explained:
    target = "reference" if one.config is None else f"reference:{one.config}"
    sections = {
        "what is changed": one.change,
        "must be caught by": one.obligation,
        "shown by": one.shown_by,
        "try it": invocation.line("replay", "-t", target, "--mutant", name, "--scenario", one.shown_by),
        "try it in drawn scenarios": invocation.line("run", "-t", target, "--mutant", name, "--seeds", "0-499"),
    }
    return e.Explained(
        "mutant", name, f"must break {one.obligation}", {head: text for head, text in sections.items() if text}
    )


def _code(code: str) -> e.Explained:
    one = codes.CODES[code]
    sections = {"usual causes": "\n".join(f"- {cause}" for cause in one.causes), "what to do": one.remedy}
    return e.Explained("error", code, one.meaning, {title: text for title, text in sections.items() if text})


def _exit(number: ExitCode) -> e.Explained:
    order = f"With several at once the first of {', '.join(str(int(one)) for one in ORDER[:-1])} is the exit code."
    return e.Explained("exit code", str(int(number)), codes.EXITS[number], {"precedence": order})


def _case_file(store: Store, wanted: str) -> Path | None:
    try:
        return store.find_case(wanted)
    except SimkitError:
        return None
