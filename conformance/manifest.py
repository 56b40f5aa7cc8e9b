"""The manifest of an adapter, `adapter.toml`, as a frozen value.

`load(path)` reads one, or raises a `SimkitError` that lists everything wrong with it at once, each with its path in the
file; unknown keys are named with the nearest one that exists. What is off in the file is checked first, what is off
between its parts (a default configuration that is not there, a command nobody can fill in) after that.

Sections: `[harness]` who it is · `[install]` how to get it · `[configurations.*]` ways to run it · `[units.*]` its processes
in launch order, the worker that is asked last · `[operations]` what plans it can interpret · `[verbs]` what it can be asked ·
`[claims]` what its vendor promises, with the source · `[shows]` what its status shows · `[limits]` and `[settings]` what a
certificate must record.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError

from scenarios.history import Declared
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL = 1
FILE = "adapter.toml"
GroupKind = Literal["seq", "par", "race", "branch", "loop"]
StepKind = Literal[
    "call", "wait", "sleep", "approve", "model", "child", "artifact", "check", "fail", "nondet", "compensate"
]
#: What plans may ask for beside the kinds of operation; see `scenarios.plan.OPTIONS`.
OptionKind = Literal[
    "retries",
    "secrets",
    "tolerate",
    "sizes",
    "poison",
    "timeout",
    "validity",
    "detached",
    "allowance",
    "deadline",
    "code",
]
OperationKind = Literal[GroupKind, StepKind, OptionKind]
AskVerb = Literal["start", "status", "signal", "resume", "decide", "cancel", "pause", "unpause"]
ReadVerb = Literal["events", "artifacts", "journal"]
Verb = Literal[AskVerb, ReadVerb]
#: A claim names one obligation or a whole profile.
PROFILES = ("Durable", "Effects", "Ownership", "Control", "Budget", "Artifacts", "Evolution")
GROUPS = (
    *("DUR", "JRN", "OWN", "EFF", "RTY", "CMP", "SCH", "BUD", "DLN"),
    *("CAN", "SIG", "APR", "ART", "CPL", "STA", "VER", "CHI"),
)
Scalar = str | int | float | bool


@attrs.frozen
class Harness:
    """Who is being judged. `version` and `configuration` are those taken when a target names none."""

    name: str
    version: str
    storage: str
    configuration: str = "default"
    recovery: Literal["automatic", "on_request"] = "automatic"
    early_signal: Literal["buffered", "refused"] = "buffered"
    late_signal: Literal["late", "refused"] = "late"
    unmatched_signal: Literal["buffered", "refused"] = "buffered"


@attrs.frozen
class Install:
    """`pip` requirements; `{version}` stands for the version asked for. None at all: nothing is installed."""

    pip: tuple[str, ...] = ()


@attrs.frozen
class Claim:
    """What the vendor promises, in a short paraphrase, and where it says so."""

    statement: str
    source: str


@attrs.frozen
class Configuration:
    """One way to run the harness. `claims` override those of the file; `false` withdraws one."""

    env: Mapping[str, str] = attrs.field(factory=dict)
    claims: Mapping[str, Claim | Literal[False]] = attrs.field(factory=dict)


@attrs.frozen
class Unit:
    """A process. `{python}` in its command is the interpreter of the adapter's environment."""

    command: tuple[str, ...]
    control: bool = False
    killable: bool = True
    env: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Operations:
    """What plans it can interpret; the kit draws no others for it."""

    supported: tuple[OperationKind, ...] = ("seq", "par", "call", "wait", "sleep")


@attrs.frozen
class Verbs:
    """What it can be asked; the kit asks nothing else, and leaves out the scenarios that need more."""

    supported: tuple[Verb, ...] = ("start", "status", "signal", "resume")


@attrs.frozen
class Shows:
    """What a status carries beyond state and result."""

    operations: bool = False
    attempts: bool = False


@attrs.frozen
class Limits:
    """How long the kit waits for what, and what the harness bounds itself; the latter are 0 where there is no such bound."""

    settle_ms: int = 5000
    call_timeout_ms: int = 1000
    poll_ms: int = 20
    boot_ms: int = 20_000
    timer_grain_ms: int = 1
    lease_ms: int = 0
    grace_ms: int = 0
    key_lifetime_ms: int = 0
    slots: int = 0
    deaths_max: int = 0


@attrs.frozen
class Manifest:
    """A whole `adapter.toml`."""

    protocol: int
    harness: Harness
    units: Mapping[str, Unit]
    install: Install = Install()
    configurations: Mapping[str, Configuration] = attrs.field(factory=lambda: {"default": Configuration()})
    operations: Operations = Operations()
    verbs: Verbs = Verbs()
    claims: Mapping[str, Claim] = attrs.field(factory=dict)
    shows: Shows = Shows()
    limits: Limits = Limits()
    codes: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    settings: Mapping[str, Scalar] = attrs.field(factory=dict)

    def launch_order(self) -> tuple[str, ...]:
        """Unit names as they are started; the one with the control channel comes last."""
        return tuple(sorted(self.units, key=lambda name: self.units[name].control))

    def claims_of(self, configuration: str) -> Mapping[str, Claim]:
        """What is claimed of one configuration: obligation id or profile name → claim."""
        merged = {**self.claims, **self.configurations[configuration].claims}
        return {name: claim for name, claim in merged.items() if isinstance(claim, Claim)}

    def declared(self) -> Declared:
        """What judges must know."""
        limits = self.limits
        verbs: tuple[str, ...] = self.verbs.supported
        return Declared(
            early_signal=self.harness.early_signal,
            timer_grain_ns=limits.timer_grain_ms * 1_000_000,
            shows_operations=self.shows.operations,
            shows_attempts=self.shows.attempts,
            verbs=verbs,
            slots=limits.slots or None,
            grace_ns=limits.grace_ms * 1_000_000 or None,
            deaths_max=limits.deaths_max or None,
            key_lifetime_ns=limits.key_lifetime_ms * 1_000_000 or None,
            late_signal=self.harness.late_signal,
            unmatched_signal=self.harness.unmatched_signal,
            lease_ns=limits.lease_ms * 1_000_000 or None,
            call_timeout_ns=limits.call_timeout_ms * 1_000_000,
            codes=tuple(self.codes.items()),
        )


def load(path: Path) -> Manifest:
    """Read a manifest. Raises `SimkitError` (`adapter-unreadable`, `adapter-malformed`, `adapter-protocol`)."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _problem(
            "adapter-unreadable",
            f"cannot read the manifest: {error.strerror}",
            path,
            "a readable file",
            "change its permissions, or name another file",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        what = f"the manifest is not TOML: {error}"
        raise _problem("adapter-malformed", what, path, "a TOML file in UTF-8", _EXAMPLES) from None
    if data.get("protocol", PROTOCOL) != PROTOCOL:
        raise _problem(
            "adapter-protocol",
            f"the adapter speaks protocol {data['protocol']!r}",
            f"{path}: protocol",
            f"protocol = {PROTOCOL}",
            "install the release of simkit that the adapter was written for, or bring the adapter up to date",
        )
    return _structure(data, path)


def _structure(data: dict[str, Any], path: Path) -> Manifest:
    try:
        manifest = _CONVERTER.structure(data, Manifest)
    except cattrs.BaseValidationError as error:
        complaints = [_move_path(text) for text in cattrs.transform_error(error, "", _describe)]
        complaints += _unknown_claims(data)
    else:
        complaints = list(_check(manifest))
        if not complaints:
            return manifest
    noun = "one mistake" if len(complaints) == 1 else f"{len(complaints)} mistakes"
    what = f"the manifest has {noun}" + "".join(f"\n    - {text}" for text in complaints)
    raise _problem("adapter-malformed", what, path, "a manifest of protocol 1", _EXAMPLES)


_EXAMPLES = "docs/adapters.md shows a whole manifest; those of the adapters that come with simkit are further examples"


def _problem(code: str, what: str, where: Path | str, expected: str, hint: str = "") -> SimkitError:
    return SimkitError(Problem(code, what, str(where), expected, hint, ExitCode.USAGE))


# -- mistakes in one field --------------------------------------------------------------------------------------------


def _describe(error: BaseException, wanted: type | None) -> str:
    if isinstance(error, ForbiddenExtraKeysError):
        names = [field.name for field in attrs.fields(error.cl)]
        return "; ".join(f"unknown key {key!r}{nearest(key, names)}" for key in sorted(error.extra_fields))
    if isinstance(error, KeyError):
        return f"required key {error.args[0]!r} is missing"
    if isinstance(error, _WrongError):
        return str(error)
    if isinstance(error, AttributeError | TypeError):  # cattrs takes for granted that what should be a table is one
        return "expected a table"
    return f"not a valid {getattr(wanted, '__name__', wanted)}: {error}"


def _move_path(text: str) -> str:
    """cattrs says `complaint @ .path`; a reader looks for the path first."""
    complaint, _, where = text.rpartition(" @ ")
    where = re.sub(r"\[['\"](.*?)['\"]\]", r".\1", where).strip(".")
    return f"{where}: {complaint}" if where else complaint


def nearest(name: str, names: Any) -> str:
    """` (did you mean 'x'?)`, or what there is when nothing comes near; for the end of a message."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else f" (there are {', '.join(names)})" if names else ""


class _WrongError(ValueError):
    """A value of the wrong kind, told in full."""


def _strictly(*kinds: type) -> Any:
    """Take a value as it is or not at all: no text for a number, no number for a text."""

    def hook(value: Any, _wanted: Any) -> Any:
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        names = " or ".join(kind.__name__ for kind in kinds)
        raise _WrongError(f"expected {names}, got {type(value).__name__} {value!r:.60}")

    return hook


def _choice(value: Any, wanted: Any) -> Any:
    options = wanted.__args__
    if value in options and isinstance(value, str):
        return value
    raise _WrongError(f"{value!r} is none of {', '.join(options)}{nearest(str(value), options) if value else ''}")


def _claim(value: Any, _wanted: Any) -> Claim | Literal[False]:
    if value is False:
        return False
    if isinstance(value, Mapping):
        return _CONVERTER.structure(value, Claim)
    raise _WrongError(f"expected a table with statement and source, or false; got {value!r:.60}")


def _list(value: Any, wanted: Any) -> Any:
    if not isinstance(value, list):
        raise _WrongError(f"expected a list, got {type(value).__name__} {value!r:.60}")
    return tuple(_CONVERTER.structure(value, list[wanted.__args__[0]]))


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _strictly(kind))
    converter.register_structure_hook_func(lambda wanted: wanted == Scalar, _strictly(str, int, float, bool))
    converter.register_structure_hook_func(lambda wanted: getattr(wanted, "__origin__", None) is Literal, _choice)
    converter.register_structure_hook_func(lambda wanted: getattr(wanted, "__origin__", None) is tuple, _list)
    converter.register_structure_hook_func(lambda wanted: wanted == Claim | Literal[False], _claim)
    return converter


_CONVERTER = _converter()


# -- mistakes between fields ------------------------------------------------------------------------------------------

#: Limits for which 0 says that there is no such bound.
_MAYBE_NONE = ("timer_grain_ms", "lease_ms", "grace_ms", "key_lifetime_ms", "slots", "deaths_max")
_NEEDED_BY: Mapping[str, Verb] = {"wait": "signal", "approve": "decide"}


def _check(manifest: Manifest) -> Iterator[str]:
    chosen = manifest.harness.configuration
    if chosen not in manifest.configurations:
        yield f"harness.configuration: there is no [configurations.{chosen}]{nearest(chosen, manifest.configurations)}"
    yield from _check_units(manifest)
    if "call" not in manifest.operations.supported:
        yield "operations.supported: 'call' is missing; without calls there is nothing to see"
    yield from _check_verbs(manifest)
    for name, others in manifest.codes.items():
        for other in others:
            if other not in manifest.codes:
                yield f"codes.{name}: {other!r} is no version under [codes]{nearest(other, manifest.codes)}"
    yield from _check_claims("claims", manifest.claims)
    for name, configuration in manifest.configurations.items():
        yield from _check_claims(f"configurations.{name}.claims", configuration.claims)
    for limit, value in attrs.asdict(manifest.limits).items():
        if value < 0 or (value == 0 and limit not in _MAYBE_NONE):
            yield f"limits.{limit}: {value}{' milliseconds' if limit.endswith('_ms') else ''}; expected more than none"
    for n, requirement in enumerate(manifest.install.pip):
        yield from _check_braces(f"install.pip[{n}]", requirement, "version")


def _check_verbs(manifest: Manifest) -> Iterator[str]:
    verbs = set(manifest.verbs.supported)
    needed = {"start", "status", *(_NEEDED_BY[kind] for kind in manifest.operations.supported if kind in _NEEDED_BY)}
    if manifest.harness.recovery == "on_request":
        needed.add("resume")
    for verb in sorted(needed - verbs):
        yield f"verbs.supported: {verb!r} is missing, which what stands under [harness] and [operations] needs"
    if ("pause" in verbs) != ("unpause" in verbs):
        yield "verbs.supported: 'pause' and 'unpause' come together"


def _check_units(manifest: Manifest) -> Iterator[str]:
    in_control = [name for name, unit in manifest.units.items() if unit.control]
    if len(in_control) != 1:
        yield f"units: one unit has control = true, the one the kit asks; here {len(in_control)} of {len(manifest.units)} do"
    if not any(unit.killable for unit in manifest.units.values()):
        yield "units: none is killable; there would be nothing to find out"
    for name, unit in manifest.units.items():
        if not unit.command:
            yield f"units.{name}.command: empty; expected a program and its arguments"
        for n, word in enumerate(unit.command):
            yield from _check_braces(f"units.{name}.command[{n}]", word, "python")


def _check_braces(where: str, text: str, known: str) -> Iterator[str]:
    for name in re.findall(r"\{(\w*)\}", text):
        if name != known:
            yield f"{where}: nobody fills in {{{name}}}; expected {{{known}}}"


def _unknown_claims(data: Mapping[str, Any]) -> Iterator[str]:
    """Claims of nothing there is, in a file that has other mistakes too: all of them are told at once."""
    tables = {"claims": data.get("claims")}
    if isinstance(configurations := data.get("configurations"), Mapping):
        for name, one in configurations.items():
            tables[f"configurations.{name}.claims"] = one.get("claims") if isinstance(one, Mapping) else None
    for where, claims in tables.items():
        if isinstance(claims, Mapping):
            yield from _check_claims(where, claims)


def _check_claims(where: str, claims: Mapping[str, object]) -> Iterator[str]:
    for name in claims:
        group, _, number = name.partition("-")
        if name not in PROFILES and not (group in GROUPS and number.isdigit()):
            known = [*PROFILES, *(f"{one}-{number or 'n'}" for one in GROUPS)]
            yield f"{where}: {name!r} is neither an obligation nor a profile{nearest(name, known)}"
