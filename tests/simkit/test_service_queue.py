"""The queue's contract: at least once, hidden while it is worked on, a receipt per delivery, dead letters."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from simkit.services import Queue
from tests.service_rig import counted


@attrs.define
class Clocked:
    """A queue with a clock to set: messages are hidden for 10 ns and delivered three times at most."""

    now_ns: int = 0
    queue: Queue = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.queue = Queue(lambda: self.now_ns, counted(), visibility_ns=10, deliveries_max=3)


def test_a_message_is_hidden_while_it_is_worked_on_and_gone_when_acknowledged() -> None:
    """Nobody else gets it meanwhile; acknowledged, it never comes back."""
    clocked = Clocked()
    clocked.queue.send("body")
    handout = clocked.queue.receive()
    assert handout
    assert (handout.message, handout.body, handout.delivery) == (1, "body", 1)
    assert clocked.queue.receive() is None
    assert clocked.queue.acknowledge(handout.receipt)
    clocked.now_ns = 100
    assert clocked.queue.receive() is None
    assert not clocked.queue.acknowledge(handout.receipt)


def test_a_message_that_nobody_acknowledged_in_time_is_handed_out_again() -> None:
    """The second delivery has a receipt of its own, and only that one acknowledges from then on."""
    clocked = Clocked()
    clocked.queue.send("body")
    first = clocked.queue.receive()
    clocked.now_ns = 10
    second = clocked.queue.receive()
    assert first
    assert second
    assert (second.message, second.delivery) == (1, 2)
    assert not clocked.queue.acknowledge(first.receipt)
    assert clocked.queue.acknowledge(second.receipt)


def test_a_message_may_be_handed_out_twice_inside_its_timeout() -> None:
    """At least once is all that is promised: a duplicate counts as a delivery."""
    clocked = Clocked()
    clocked.queue.send("body")
    first, second = clocked.queue.receive(), clocked.queue.receive(twice=True)
    assert first
    assert second
    assert (first.message, second.message, second.delivery) == (1, 1, 2)


def test_whoever_needs_longer_says_so() -> None:
    """An extended delivery stays hidden; extended by nothing, it is given back."""
    clocked = Clocked()
    clocked.queue.send("body")
    handout = clocked.queue.receive()
    assert handout
    clocked.now_ns = 9
    assert clocked.queue.extend(handout.receipt, 10)
    clocked.now_ns = 18
    assert clocked.queue.receive() is None
    assert clocked.queue.extend(handout.receipt, 0)
    assert clocked.queue.receive()
    assert not clocked.queue.extend(handout.receipt, 10)


def test_a_message_that_fails_too_often_is_a_dead_letter() -> None:
    """After its last delivery ran out it is handed out no more, and stands among the dead letters."""
    clocked = Clocked()
    clocked.queue.send("poison")
    for delivery in (1, 2, 3):
        handout = clocked.queue.receive()
        assert handout
        assert handout.delivery == delivery
        clocked.now_ns += 10
    assert clocked.queue.receive(twice=True) is None
    assert clocked.queue.dead_letters == (1,)


@pytest.mark.parametrize(("visibility_ns", "deliveries_max"), [(0, 1), (1, 0)])
def test_a_queue_that_cannot_be_is_refused(visibility_ns: int, deliveries_max: int) -> None:
    """Messages must be hidden for some time and delivered at least once."""
    with pytest.raises(ValueError, match=f"visibility_ns {visibility_ns}, deliveries_max {deliveries_max}"):
        Queue(lambda: 0, str, visibility_ns=visibility_ns, deliveries_max=deliveries_max)


class QueueMachine(RuleBasedStateMachine):
    """Any order of sends, deliveries, acknowledgements and time passing."""

    @initialize()
    def begin(self) -> None:
        self.clocked = Clocked()
        self.sent: set[int] = set()
        self.acknowledged: set[int] = set()
        self.delivered: dict[int, int] = {}
        self.newest: dict[int, str] = {}
        self.receipts: dict[str, int] = {}

    @rule()
    def send(self) -> None:
        self.sent.add(self.clocked.queue.send("body"))

    @rule(twice=st.booleans())
    def receive(self, twice: bool) -> None:
        handout = self.clocked.queue.receive(twice=twice)
        if handout is None:
            return
        assert handout.message in self.sent - self.acknowledged
        assert handout.receipt not in self.receipts
        assert handout.delivery == self.delivered.get(handout.message, 0) + 1 <= 3
        self.delivered[handout.message] = handout.delivery
        self.newest[handout.message] = handout.receipt
        self.receipts[handout.receipt] = handout.message

    @rule(nth=st.integers(0, 5))
    def acknowledge(self, nth: int) -> None:
        for receipt, message in itertools.islice([*self.receipts.items()], nth, nth + 1):
            dead = message in self.clocked.queue.dead_letters
            usable = self.newest[message] == receipt and message not in self.acknowledged and not dead
            assert self.clocked.queue.acknowledge(receipt) is usable
            if usable:
                self.acknowledged.add(message)

    @rule(ns=st.integers(1, 12))
    def wait(self, ns: int) -> None:
        self.clocked.now_ns += ns

    @invariant()
    def loses_nothing(self) -> None:
        queue = self.clocked.queue
        waiting, dead = set(queue.waiting), set(queue.dead_letters)
        assert waiting | dead | self.acknowledged == self.sent
        assert len(waiting) + len(dead) + len(self.acknowledged) == len(self.sent)
        assert all(self.delivered[message] == 3 for message in dead)


TestQueueMachine = QueueMachine.TestCase
