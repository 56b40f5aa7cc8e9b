"""The machines of the store and of decisions once more, with commits that several share: any part of one may fail, and all of
it may be undone before anybody is told.

What holds of transactions holds of parts, so the models stay as they are. What was told in a commit that never came was told
to nobody, and the model forgets it, too.
"""

from __future__ import annotations

import copy
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reference_runtime import Store, views
from reference_runtime.model import Json
from tests.reference_runtime.test_control_machine import ControlMachine
from tests.reference_runtime.test_store_machine import StoreMachine
from tests.runtime_rig import call, par, plan, seq, wait

pytestmark = pytest.mark.slow  # for their many examples, not for any one of them
#: What of a machine is no model: it stays when all else is forgotten. Time goes on as well.
WORLD = frozenset({"folder", "path", "patch", "store", "now", "kept", "shown"})
OTHER = plan(par(call("x"), seq(wait("y", "go"), call("z"))))


class FailedError(Exception):
    """A part that comes to nothing."""


class Sharing(RuleBasedStateMachine):
    """What a machine does besides: begin to share, commit, fail, and end before the commit."""

    store: Store
    seen: Json | None = None
    kept: dict[str, Any] | None = None
    shown: Json

    @precondition(lambda self: self.kept is None)
    @rule()
    def share(self) -> None:
        model = {name: value for name, value in vars(self).items() if name not in WORLD and name[0] != "_"}
        self.kept, self.shown = copy.deepcopy(model), views.status(self.store, "t")
        with self.store.sharing():
            pass

    @precondition(lambda self: self.kept is not None)
    @rule()
    def commit(self) -> None:
        before = everything(self.store)
        self.store.commit_shared()
        assert not self.store.db.in_transaction
        assert everything(self.store) == before
        self.kept = None

    @precondition(lambda self: self.kept is not None)
    @rule()
    def abandon(self) -> None:
        self.store.abandon_shared()
        self.forget()
        assert views.status(self.store, "t") == self.shown

    @precondition(lambda self: self.kept is not None)
    @rule(doing=st.lists(st.sampled_from(["submit", "claim", "signal", "cancel", "timers", "reclaim"]), min_size=1))
    def fail(self, doing: list[str]) -> None:
        before = everything(self.store)
        with pytest.raises(FailedError):
            self.begin(doing)
        assert everything(self.store) == before

    def begin(self, doing: list[str]) -> None:
        with self.store.sharing():
            for what in doing:
                self.do(what)
            raise FailedError

    def do(self, what: str) -> None:
        match what:
            case "submit":
                self.store.submit("u", OTHER)
            case "claim":
                self.store.claim("u", [], 9)
            case "signal":
                self.store.signal("t", "u", "go", {"nonce": "u"})
            case "cancel":
                self.store.cancel("t", "u")
            case "timers":
                self.store.fire_timers()
            case _:
                for generation, _ in self.store.leases():
                    self.store.reclaim(generation)

    @invariant()
    def what_is_shown_has_a_version(self) -> None:
        was, self.seen = self.seen, views.status(self.store, "t")
        assert was is None or self.seen["version"] > was["version"] or self.seen == was

    def forget(self) -> None:
        """Know what was known as sharing began."""
        if self.kept is not None:
            vars(self).update(self.kept)
        self.kept = None


class SharedStore(Sharing, StoreMachine):
    @rule()
    def restart(self) -> None:
        super().restart()
        self.forget()


class SharedControl(Sharing, ControlMachine):
    @rule()
    def restart(self) -> None:
        super().restart()
        self.forget()


def everything(store: Store) -> dict[str, list[Any]]:
    """All that a store holds, table by table, but for how far its numbers were taken ahead."""
    names = [name for (name,) in store._rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    return {name: store._rows(f'SELECT * FROM "{name}"') for name in names}


TestSharedStore = SharedStore.TestCase
TestSharedStore.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestSharedControl = SharedControl.TestCase
TestSharedControl.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
