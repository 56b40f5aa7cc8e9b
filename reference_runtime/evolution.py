"""Evolution: which code may go on with which work, and how what is saved is carried over to newer code.

Every attempt has the version of the code that its work was written by: pinned at its admission where the task says so, else
by the first execution that takes something of it up. A worker says which code it is as it says hello, and by its *policy* what
it may go on with; it is given nothing else. Work that none of the workers there may go on with is *stranded*: it is shown as
blocked, with both versions, and goes on as soon as code comes up that may. Nothing of it is changed meanwhile.

Once newer code has taken a task up, the task is of that version: older code is not offered it any more.
"""

from __future__ import annotations

import json
import random
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import apsw
import attrs

from reference_runtime import jsontext
from reference_runtime.audit import Audit
from reference_runtime.importing import names_in
from reference_runtime.model import Json, Policy, Refusal, canonical, digest
from reference_runtime.promises import KNOWN, TAKEN, Promise, pair
from reference_runtime.records import PENDING

CodePolicy: TypeAlias = Literal["pin", "refuse", "compatible", "transform", "replay"]
#: What is saved of a task, in and out: `{"params": {call: its parameters}, "input": a workflow's input}`. Pure, same ids.
Transform: TypeAlias = Callable[[Json], Json]
#: The code of the reason of work that waits for code.
INCOMPATIBLE = "code-incompatible"

#: How long work rests that could not be carried over, until that is tried again.
REST_NS = 1_000_000_000
#: Of how many executions it is remembered what they run.
CODES_MAX = 1_000
#: A condition on the attempt `a`, for the versions that `Evolution.fits` gives.
FITS = "(?1 IS NULL OR a.code IS NULL OR a.code IN (SELECT value FROM json_each(?1)))"


@attrs.frozen
class NamedTransform:
    """A function that carries saved state over, under the name by which workers ask for it."""

    name: str
    function: Transform


def transform(name: str) -> Callable[[Transform], NamedTransform]:
    """Register a pure function from what is saved to what newer code goes on with."""
    return lambda function: NamedTransform(name, function)


def load_transforms(*modules: str) -> dict[str, Transform]:
    """The transforms of importable modules, by name. Raises `Refusal`: `no-transforms`, or `two-transforms` of one name, of
    which only one could be meant.
    """
    found: dict[str, Transform] = {}
    for module in modules:
        for one in _transforms_in(module):
            if found.setdefault(one.name, one.function) != one.function:
                raise Refusal(
                    "two-transforms", f"{module}: {one.name!r} names two functions; each needs a name of its own"
                )
    return found


def _transforms_in(module: str) -> list[NamedTransform]:
    found = [one for one in names_in(module, "no-transforms").values() if isinstance(one, NamedTransform)]
    if not found:
        raise Refusal("no-transforms", f"{module} has no function marked @transform")
    return found


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen
class Code:
    """What a worker runs: its version, and by its policy which older work it may go on with.

    pin, refuse: none; work of other versions is left to them without a word, or shown as blocked over it. compatible: of the
    versions in `older`. transform: of those that `transforms` has a named function for. replay: a workflow of a version in
    `older`, once its history has been followed without a difference.
    """

    version: str = "1"
    policy: CodePolicy = "refuse"
    older: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    transforms: Mapping[str, str] = attrs.field(factory=dict)  # older version → the function's name
    tools: Mapping[str, str] = attrs.field(factory=dict)  # those of one's own that it can carry out → what they promise

    @property
    def continues(self) -> tuple[str, ...]:
        """The versions whose work it may be given."""
        match self.policy:
            case "compatible":
                return (self.version, *self.older)
            case "transform":
                return (self.version, *self.transforms)
        return (self.version,)

    @property
    def replays(self) -> tuple[str, ...]:
        """The versions whose workflows it may try to follow."""
        return (*self.continues, *self.older) if self.policy == "replay" else self.continues

    def to_json(self) -> Json:
        """As `from_json` takes it."""
        return attrs.asdict(self, filter=lambda field, value: field.name != "tools" or bool(value))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Code:
        """What a worker says of itself. Raises `Refusal` (`bad-code`)."""
        kinds = (
            ("older", (list, tuple), "a list"),
            ("transforms", (dict,), "an object"),
            ("tools", (dict,), "an object"),
        )
        for name, wanted, called in kinds:
            if name in data and not isinstance(data[name], wanted):
                raise Refusal("bad-code", f"code: {name} must be {called}; got {data[name]!r:.80}")
        try:
            one = cls(**data)
        except TypeError as error:
            raise Refusal("bad-code", f"code: {error}") from None
        carried = (*one.transforms, *one.transforms.values(), *one.tools, *one.tools.values())
        texts: tuple[Any, ...] = (one.version, *one.older, *carried)
        are_texts = all(isinstance(text, str) and text != "" for text in texts)  # whatever came over the wire
        if one.policy not in get_args(CodePolicy) or not are_texts:
            raise Refusal(
                "bad-code", f"code has a version, a policy of {', '.join(get_args(CodePolicy))}; got {data!r:.120}"
            )
        return one


#: Code of the first version, which goes on with its own work only.
FIRST = Code()


class Evolution(Audit):
    """Pinning, carrying over and stranding."""

    transforms: Mapping[str, Transform] = MappingProxyType({})
    tools: Mapping[str, Promise] = KNOWN
    _own: frozenset[str] | None = None  # see `own`; None: not read yet

    def __init__(self, db: apsw.Connection, policy: Policy, rng: random.Random) -> None:
        super().__init__(db, policy, rng)
        self._codes: dict[str, Code] = {}  # as read, by execution; what an execution runs never changes

    def introduce(self, execution: str, code: Code) -> None:
        """Write down what an execution runs."""
        with self._transaction():
            said = canonical(code.to_json())
            self.db.execute("INSERT OR REPLACE INTO execution VALUES (?, ?)", (execution, said))
            self._codes.pop(execution, None)

    def code_of(self, execution: str) -> Code | None:
        """What an execution runs; None for one that never said."""
        if (known := self._codes.get(execution)) is not None:
            return known
        said = self._value("SELECT code FROM execution WHERE id = ?", execution)
        if said is None:
            return None
        if len(self._codes) >= CODES_MAX:
            self._codes.clear()
        self._codes[execution] = code = Code(**json.loads(said))
        return code

    def fits(self, execution: str | None) -> str | None:
        """The versions whose work an execution may be given, as JSON; None where there is no limit."""
        code = None if execution is None else self.code_of(execution)
        return None if code is None else canonical(code.continues)

    # -- tools of one's own

    def declare(self, tools: Mapping[str, Promise]) -> None:
        """Know tools of one's own from now on. What was admitted keeps the promise that it was admitted with."""
        self.tools = {**KNOWN, **tools}
        self._own = None

    @property
    def own(self) -> frozenset[str]:
        """The tools of one's own, each with its promise: those declared now, and those that open work was admitted with. Read
        from that once, when it is first asked for: opening a store reads no work.
        """
        if self._own is None:
            admitted = self._rows(f"SELECT DISTINCT tool, semantics FROM operation WHERE {PENDING}")
            declared = [pair(name, one.semantics) for name, one in self.tools.items() if name not in TAKEN]
            found = [pair(name, semantics) for name, semantics in admitted if name and name not in TAKEN]
            self._own = frozenset((*declared, *found))
        return self._own

    def beyond(self, execution: str | None) -> list[str]:
        """Which tools an execution may not be given work of: of one's own, and not what it has declared, as promised."""
        if not self.own or execution is None:
            return []
        code = self.code_of(execution)
        able = set[str]() if code is None else {pair(name, promise) for name, promise in code.tools.items()}
        return sorted(self.own - able)

    def within(self, execution: str | None, number: int) -> tuple[str, tuple[str, ...]]:
        """A further condition on the operation `o`, for parameter `number`, and its value: that an execution can carry it out;
        nothing where it can carry out whatever there is.
        """
        beyond = self.beyond(execution)
        if not beyond:
            return "", ()
        pairs = f"(SELECT value FROM json_each(?{number}))"
        return f" AND o.tool || ' ' || ifnull(o.semantics, '') NOT IN {pairs}", (canonical(beyond),)

    def pin(self, attempt: str, code: str | None, schema: int) -> None:
        """Write down by which code an attempt is to be carried out, and in which schema; a child is of its owner's code."""
        self._forget(attempt)
        self.db.execute(
            "UPDATE attempt SET schema = ?2, code = coalesce(?1, (SELECT p.code FROM child c JOIN attempt p ON p.id = c.attempt"
            " WHERE c.task = attempt.task)) WHERE id = ?3",
            (code, schema, attempt),
        )

    def is_fit(self, attempt: str, execution: str) -> bool:
        """Whether an execution's code may be given this attempt's work as it is."""
        fits = f"SELECT 1 FROM attempt a WHERE a.id = ?2 AND {FITS}"
        return self._row(fits, self.fits(execution), attempt) is not None

    def may_continue(self, code: Code, written: str | None) -> bool:
        """Whether this code may go on with work written by that one."""
        return written is None or written in code.replays

    def take_up(self, attempt: str, execution: str) -> Literal["kept", "carried", "refused"]:
        """Make an attempt one of the code that takes it up, carrying over what is saved where that is needed.

        Where it may not be, or cannot be carried over, nothing of it is changed.
        """
        code = self.code_of(execution)
        if code is None:
            return "kept"
        stands = self._attempt(attempt)
        task, written, stranded = stands.task, stands.code, stands.stranded
        if written == code.version and stranded is None:
            return "kept"
        if not self.may_continue(code, written):
            return "refused"
        function = code.transforms.get(written or "") if code.policy == "transform" else None
        if function is not None:
            try:
                self._carry_over(task, attempt, execution, function)
            except Refusal as error:
                self._strand(attempt, f"{INCOMPATIBLE}: {error.message}")
                self.db.execute(
                    "UPDATE operation SET due_ns = ? WHERE attempt = ? AND due_ns IS NOT NULL",
                    (time.time_ns() + REST_NS, attempt),
                )
                return "refused"
        if written is not None and written != code.version:
            self.audit(task, execution, f"code {code.version}", "continue", task, f"written by code {written}")
        self._set_attempt(attempt, "code = ?", code.version)
        self._strand(attempt, None)
        return "kept" if function is None else "carried"

    # -- carrying over

    @abstractmethod
    def void_approvals(self, attempt: str, operation: str) -> None:
        """Ask again about an operation that is not what it was."""

    def _carry_over(self, task: str, attempt: str, execution: str, name: str) -> None:
        """Apply a named function to what is saved of an attempt and was not sent yet. Raises `Refusal` (`bad-transform`)."""
        function = self.transforms.get(name)
        if function is None:
            raise Refusal("bad-transform", f"the engine has no transform {name!r}")
        rows = self._rows(
            "SELECT id, spec ->> 'params' FROM operation WHERE attempt = ? AND request IS NULL"
            " AND kind IN ('call', 'compensate') ORDER BY position",
            attempt,
        )
        input_ = self._value("SELECT input FROM workflow WHERE attempt = ?", attempt)
        before = {"params": {id_: json.loads(params) for id_, params in rows}, "input": json.loads(input_ or "null")}
        try:
            after = jsontext.read(canonical(function(json.loads(canonical(before)))))
            written = {id_: _params(id_, after["params"][id_]) for id_ in before["params"]}
            carried = canonical(after["input"])
        except Exception as error:
            raise Refusal("bad-transform", f"transform {name!r} failed: {type(error).__name__}: {error}") from error
        for id_, params in written.items():
            self.db.execute(
                "UPDATE operation SET spec = json_set(spec, '$.params', json(?)), version = version + 1"
                " WHERE attempt = ? AND id = ?",
                (params, attempt, id_),
            )
        changed = [id_ for id_, params in written.items() if params != canonical(before["params"][id_])]
        for id_ in changed:
            self.void_approvals(attempt, id_)
        if changed:
            self._conclude(attempt)
        self.db.execute("UPDATE workflow SET input = ? WHERE attempt = ?", (carried, attempt))
        self.db.execute(  # the plans of children that are yet to come stay what they are, and are carried over in their turn
            "UPDATE operation SET spec = json_set(spec, '$.code', ?) WHERE attempt = ? AND kind = 'child' AND state = 'planned'"
            " AND spec ->> 'code' IS NULL",
            (self._attempt(attempt).code, attempt),
        )
        self.audit(task, execution, f"transform {name}", "transform", task, f"{digest(before)} to {digest(after)}")

    # -- stranding

    def strand(self, present: Collection[str]) -> bool:
        """Show as blocked what could go on and may not, by the code of the executions that are `present`, and no longer what
        need not; whether anything changed. Who is pinned takes no offence at the work of others, and what may go on is shown so
        by whoever takes it up.
        """
        codes = [code for code in map(self.code_of, sorted(present)) if code is not None]
        able = {version for code in codes for version in code.continues}
        proving = able.union(*(code.replays for code in codes))
        strict = [code for code in codes if code.policy != "pin"]
        changed = False
        for attempt, written in self._rows("SELECT id, code FROM attempt WHERE stranded IS NOT NULL ORDER BY id"):
            if not self.is_due(attempt, written in proving):
                changed |= self._strand(attempt, None)
        if not strict or len(codes) < len(present):
            return changed
        for version in [one for one in self._versions() if one not in able]:
            for (attempt,) in self._rows(
                "SELECT id FROM attempt WHERE code = ? AND outcome IS NULL AND stranded IS NULL ORDER BY id", version
            ):
                if self.is_due(attempt, version in proving):
                    changed |= self._strand(attempt, _why(version, strict))
        return changed

    def is_due(self, attempt: str, may_replay: bool) -> bool:
        """Whether something of an attempt could be taken up by fitting code, and nobody has it. `may_replay`: its turns are not
        asked for, as somebody may take these.
        """
        found = self._value(
            "SELECT 1 FROM operation o JOIN attempt a ON a.id = o.attempt WHERE o.attempt = ? AND o.due_ns IS NOT NULL"
            " AND NOT a.paused LIMIT 1",
            attempt,
        )
        return bool(found)

    def _versions(self) -> list[str]:
        """Every version that open work is of; as many steps as there are versions."""
        found, last = list[str](), ""
        while True:
            last = self._value(
                "SELECT min(code) FROM attempt WHERE outcome IS NULL AND code IS NOT NULL AND code > ?", last
            )
            if last is None:
                return found
            found.append(last)

    def _strand(self, attempt: str, reason: str | None) -> bool:
        """Write down that an attempt waits for code, or no longer does; whether that was news."""
        with self._transaction():
            if not self._set_attempt(attempt, "stranded = ? WHERE stranded IS NOT ?", reason, reason):
                return False
            self._log_run(attempt, "parked" if reason else "unparked", reason)
            self._touch(attempt)
            return True


def _params(id_: str, made: object) -> str:
    """What a transform made of an operation's parameters, as JSON. Raises TypeError."""
    if not isinstance(made, dict):
        raise TypeError(f"params of {id_!r} must be an object; got {made!r:.80}")
    return canonical(made)


def _why(version: str, present: Collection[Code]) -> str:
    told = "; ".join(f"code {code.version} goes on with {', '.join(code.continues)}" for code in present)
    return f"{INCOMPATIBLE}: the work was written by code {version}, and of those that are there {told}; {way_out(version)}"


def way_out(version: str | None) -> str:
    """What to do about work that waits for code of a version; of work of no version yet, only for some that may go on."""
    if version is None:
        return "start a worker whose code may go on with it (`worker --code`, `--older`)"
    return (
        f"start a worker with `--code {version}`, or one that goes on with it (`--older {version}`);"
        " this is the version of `worker --code`, and none of `@workflow(..., code=...)`"
    )
