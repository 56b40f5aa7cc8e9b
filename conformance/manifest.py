"""The manifest of an adapter, `adapter.toml`, as a frozen value.

`load(path)` reads one, or raises a `SimkitError` that lists everything wrong with it at once, each with its path in the
file; unknown keys are named with the nearest one that exists. What is off between its parts (a default configuration that
is not there, a command nobody can fill in) is found by `manifest_checks`, in as many sections as can be read.

Sections: `[harness]` who it is · `[install]` how to get it · `[configurations.*]` ways to run it · `[units.*]` its processes
in launch order, the worker that is asked last · `[operations]` what plans it can interpret · `[verbs]` what it can be asked ·
`[claims]` what its vendor promises, with the source · `[shows]` what its status shows · `[swarm]` settings that simulated runs
draw · `[limits]` and `[settings]` what a certificate must record.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError

from conformance import manifest_checks
from conformance.manifest_checks import nearest
from scenarios.history import Declared
from simkit.errors import ExitCode, Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
#: Asked by a signal of the system, SIGTERM to the worker, and not by a line.
SystemVerb = Literal["leave"]
Verb = Literal[AskVerb, ReadVerb, SystemVerb]
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
    """`pip` requirements; `{version}` stands for the version asked for. None at all: nothing is installed.

    `sources` are files and folders beside the adapter's own, by their paths from its folder, that are what is judged as well.
    """

    pip: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


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
    """A process. `{python}` in its command is the interpreter of the adapter's environment; `clock`: the kit may set its wall
    clock, which it reads by `simkit_adapter.follow_clock`.
    """

    command: tuple[str, ...]
    control: bool = False
    killable: bool = True
    clock: bool = False
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
    swarm: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
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
        return _read(path.read_text(encoding="utf-8"), path)
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


@functools.lru_cache(maxsize=16)
def _read(text: str, path: Path) -> Manifest:
    """What a manifest says. Kept, as every seed of a campaign asks for it: to read one takes a fifth of the time of a seed."""
    return _structure(tomllib.loads(text), path)


def _structure(data: dict[str, Any], path: Path) -> Manifest:
    whole, complaints = None, []
    try:
        whole = _CONVERTER.structure(data, Manifest)
    except cattrs.BaseValidationError as error:
        complaints = [_move_path(text) for text in cattrs.transform_error(error, "", _describe)]
    complaints += manifest_checks.between(_sections(data) if whole is None else _fields(whole), data)
    if data.get("protocol", PROTOCOL) != PROTOCOL:
        raise _another_protocol(data["protocol"], complaints, path)
    if whole is not None and not complaints:
        return whole
    what = f"the manifest has {_listed(complaints)}"
    raise _problem("adapter-malformed", what, path, f"a manifest of protocol {PROTOCOL}", _EXAMPLES)


def _fields(manifest: Manifest) -> dict[str, Any]:
    return {field.name: getattr(manifest, field.name) for field in attrs.fields(Manifest)}


def _sections(data: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a file with mistakes that have none themselves; one that may be left out, and is, by its default."""
    read: dict[str, Any] = {}
    for field in attrs.fields(attrs.resolve_types(Manifest)):
        if field.name in data:
            with suppress(cattrs.BaseValidationError, ValueError, TypeError, AttributeError):
                read[field.name] = _CONVERTER.structure(data[field.name], cast("Any", field.type))
        elif isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            read[field.name] = cast("Any", field.default).factory()
        elif field.default is not attrs.NOTHING:
            read[field.name] = field.default
    return read


def _listed(complaints: Sequence[str]) -> str:
    noun = "one mistake" if len(complaints) == 1 else f"{len(complaints)} mistakes"
    return noun + "".join(f"\n    - {text}" for text in complaints)


def _another_protocol(spoken: object, complaints: Sequence[str], path: Path) -> SimkitError:
    """What a later protocol allows is a mistake in this one, so the others are told as read by this one."""
    what = f"the adapter speaks protocol {spoken!r}"
    if complaints:
        what += f"; read as protocol {PROTOCOL}, the manifest has {_listed(complaints)}"
    return _problem(
        "adapter-protocol",
        what,
        f"{path}: protocol",
        f"protocol = {PROTOCOL}",
        "install the release of simkit that the adapter was written for, or bring the adapter up to date",
    )


#: The one place that has every section and every key.
_EXAMPLES = "docs/contract.md, under The manifest, has every section and key"


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
