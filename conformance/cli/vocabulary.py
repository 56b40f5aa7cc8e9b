"""The words of a report that are not ids, explained from the registries: anomalies, groups, verdicts, tiers, requirement sets,
services, answers of a replay, and the kit's own terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from conformance import events as e
from conformance import invocation
from conformance.cli import listing
from simkit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scenarios.requirements import RequirementSet

#: What each verdict says.
VERDICTS: Final[Mapping[str, str]] = {
    "error": "kit or adapter broke the protocol, so that nothing can be said of the promise",
    "fail": "the promise was seen broken, with the events that prove it",
    "inconclusive": "not put to the test often enough, or in doubt for the reason beside it: zero evidence is never a pass",
    "pass": "put to the test often enough, by faults that were seen to strike, and never broken",
    "not-covered": "nothing in this world puts it to the test: neither a pass nor a failure, and named beside each profile",
    "not-claimed": "the product does not promise it; what it did is shown beside, and fails nothing",
}
#: What each tier tries.
TIERS: Final[Mapping[str, str]] = {
    "smoke": "a few scenarios of a few stories, within about a minute",
    "core": "every scenario that fits the target, of all stories whose operations it supports",
    "full": "what core tries, a second crash after every kill at a barrier, and drawn scenarios besides",
}
#: What each service does with a request, as docs/contract.md has it.
SERVICES: Final[Mapping[str, str]] = {
    "ledger": "keyed: the first answer is saved for its key, a failure too; other parameters under the same key are refused",
    "registry": "not keyed; an earlier effect can be looked up by the caller's own reference",
    "mailer": "neither: every request is a new effect",
    "reader": "read only",
    "flaky": "keyed, a refusal saves nothing",
    "fenced": "keyed as `flaky`; takes a fencing token and refuses one that is older than the newest it saw for this operation",
    "model": "every answer is a new one and costs tokens; what it says is chosen by the prompt and what is carried",
    "store": "takes artifacts in parts and makes them visible whole by a commit; one location holds one content for ever",
    "desk": "can only be asked: has this actor authority, at this moment",
    "operation": "long work: a keyed start gives a name at once; asked later, it is not done yet, done, or cancelled",
    "checker": "a verdict on one version of an artifact: `passed`, `failed`, `unavailable`, `timeout` or `skipped`",
}
#: What each answer of a replay says, as it is printed, with its exit code; by its name in JSON where that is another.
ANSWERS: Final[Mapping[str, tuple[str, ExitCode]]] = {
    "reproduced": ("what the case was saved for was violated again, in the same way", ExitCode.VIOLATION),
    "fixed": ("the run was made again, and nothing that is claimed was violated any more", ExitCode.PASSED),
    "nothing violated": (
        "a scenario of which nothing was expected broke no promise that is claimed",
        ExitCode.PASSED,
    ),
    "different failure": (
        "what the case was saved for was not violated, and something else that is claimed was",
        ExitCode.VIOLATION,
    ),
    "diverged": ("the run left the recorded path, at the event that is named, so it proves nothing", ExitCode.DIVERGED),
    "stopped": ("the run was stopped on its way, by --until or in the debugger, and not judged", ExitCode.PASSED),
    "inconclusive": (
        "nothing was violated, but no run was struck as asked, settled and could be judged",
        ExitCode.INCONCLUSIVE,
    ),
}
_ANSWERS_IN_JSON: Final[Mapping[str, str]] = {"clean": "nothing violated", "different": "different failure"}
#: Words that the kit's sentences are made of.
TERMS: Final[Mapping[str, str]] = {
    "interruption": "one thing done to the world in a run, and where: `kill@buy#1.applied` kills the worker when the first "
    "request of `buy` has taken effect; each is explained by its name too",
    "fault": "what the simulated world does wrong by itself, such as a message that is lost; also a kind of fault that people "
    "reported, F01 and on",
    "scenario": "a story with the interruptions of one run: `chain/kill@end`",
    "story": "a plan, which is what a task is asked to do, with what is asked of it on the way",
    "seed": "a number that a run is drawn from: the same seed of the same build is the same run",
    "case": "a file that brings a run back: its scenario, and in simulation each choice that was made in it",
    "mutant": "the reference runtime with one promise broken on purpose: the judge of that promise must blame it",
}


def explained(wanted: str) -> Iterator[e.Explained]:
    """Every meaning that `wanted` has among these words; none where it has none."""
    from scenarios.obligations import ANOMALIES
    from scenarios.obligations.groups import GROUPS

    lower, sets = wanted.lower(), _sets()
    if lower in ANOMALIES:
        yield _anomaly(lower, ANOMALIES[lower])
    if wanted.upper() in GROUPS:
        yield _group(wanted.upper())
    if lower in VERDICTS:
        yield e.Explained("verdict", lower, "what is said of a promise", {"what it means": VERDICTS[lower]})
    if lower in TIERS:
        yield _tier(lower)
    if wanted in sets:
        yield _requirements(sets[wanted])
    if lower in SERVICES:
        yield _service(lower)
    if (answer := _ANSWERS_IN_JSON.get(lower, lower)) in ANSWERS:
        yield _answer(answer)
    if lower in TERMS:
        yield e.Explained("term", lower, "a word of the kit's own", {"what it means": TERMS[lower]})


def listed() -> Iterator[e.Listed]:
    """All of these words, by kind."""
    from scenarios.obligations import ANOMALIES
    from scenarios.obligations.groups import GROUPS

    groups = {name: f"{group.title}, of profile {group.profile}" for name, group in GROUPS.items()}
    sets = {name: f"{len(one.ids)} obligations{', a draft' if one.draft else ''}" for name, one in _sets().items()}
    kinds: Mapping[str, Mapping[str, str]] = {
        "groups of obligations": groups,
        "anomalies": ANOMALIES,
        "verdicts": VERDICTS,
        "tiers": TIERS,
        "requirement sets": sets,
        "services": SERVICES,
        "answers of a replay": {name: what for name, (what, _) in ANSWERS.items()},
        "terms": TERMS,
    }
    yield from (e.Listed(kind, name, what) for kind, words in kinds.items() for name, what in words.items())


def known() -> Iterable[str]:
    """Names that `explained` knows, to find the nearest."""
    return (one.id for one in listed())


def _anomaly(name: str, meaning: str) -> e.Explained:
    users = [one for one in listing.registry().values() if name in one.anomalies]
    sections = {"what it means": meaning, "found by": "\n".join(f"{one.id}  {one.promise}" for one in users)}
    return _explained("anomaly", name, "what a broken promise is called", sections)


def _group(name: str) -> e.Explained:
    from scenarios.obligations.groups import GROUPS

    group = GROUPS[name]
    promises = [one for one in listing.catalogue().values() if one.group == name]
    sections = {
        "obligations": "\n".join(f"{one.id}  {one.promise}" for one in promises),
        "profile": group.profile,
    }
    return _explained("group", name, f"obligations about {group.title}", sections)


def _tier(name: str) -> e.Explained:
    from scenarios.catalogue import FULL_SEEDS, STORIES, tier

    every = frozenset[str]().union(*(one.plan.needs() for one in STORIES.values()))
    picked = dict.fromkeys(one.name.partition("/")[0] for one in tier("smoke", every, workers=True))
    sections = {
        "what is tried": TIERS[name],
        "stories": ", ".join(picked)
        if name == "smoke"
        else f"{len(STORIES)} in all; `simkit list scenarios` names them",
        "drawn scenarios": str(len(FULL_SEEDS)) if name == "full" else "",
        "used by": invocation.line("certify", "TARGET", "--tier", name),
    }
    return _explained("tier", name, "how much `certify` tries", sections)


def _sets() -> Mapping[str, RequirementSet]:
    from scenarios.requirements import DRAFTS, REQUIREMENT_SETS

    return {**REQUIREMENT_SETS, **DRAFTS}


def _requirements(one: RequirementSet) -> e.Explained:
    from scenarios.requirements import CURRENT

    demands = []
    for profile in one.profiles:
        levels = [row.level for row in one.requirements if row.profile == profile]
        should = levels.count("SHOULD")
        demands.append(f"{profile}: {len(levels) - should} decide" + (f", {should} only reported" if should else ""))
    state = "a draft: it changes with the judges" if one.draft else "published, and never changed since"
    sections = {
        "demands": "\n".join(demands),
        "state": f"{state}{'; what a certificate is made by unless told otherwise' if one.name == CURRENT else ''}",
        "digest": one.digest,
        "used by": invocation.line("certify", "TARGET", "--requirements", one.name),
    }
    return _explained("requirement set", one.name, f"the {len(one.ids)} obligations a certificate demands", sections)


def _answer(name: str) -> e.Explained:
    what, code = ANSWERS[name]
    sections = {"what it means": what, "exit code": f"{int(code)}, {code.name.lower().replace('_', ' ')}"}
    return _explained("answer", name, "what a replay found", sections)


def _service(name: str) -> e.Explained:
    from scenarios.catalogue import STORIES

    told = [story.name for story in STORIES.values() if any(one.service == name for one in story.plan.calls())]
    sections = {"what it does with a request": SERVICES[name], "called in the stories": ", ".join(told)}
    return _explained("service", name, "a service that the kit hosts, which the work calls", sections)


def _explained(kind: str, id_: str, title: str, sections: Mapping[str, str]) -> e.Explained:
    return e.Explained(kind, id_, title, {head: text for head, text in sections.items() if text})
