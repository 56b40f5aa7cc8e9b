"""Facts about commands, decisions, artifacts, journals and code, as judges ask for them."""

from __future__ import annotations

from scenarios.bodies import (
    ArtifactEntry,
    Invocation,
    Journal,
    Transition,
    Verdict,
    artifacts_of,
    events_of,
    journal_of,
)
from scenarios.index import look
from scenarios.interruption import actions_of
from tests.scenarios.build import Story, plan

GATE = plan("a ledger", "ok approve pay", "pay ledger a,ok", "w wait go", "z ledger pay")


def test_commands_are_joined_by_their_id() -> None:
    """A command asked twice is one, with every answer; what the kit says by its reserved names is no signal of the plan."""
    story = Story(GATE).up().start().cancel("indefinite").cancel().signal("1", disposition="buffered")
    story.steer("pay", {"amount": 2}).steer("pay", {"amount": 3}, 2, "error").notice("a", "a9", disposition="unmatched")
    facts = look(story.history())
    (cancel,) = facts.ordered("cancel")
    assert (len(cancel.asks), cancel.disposition, cancel.refused) == (2, "accepted", False)
    assert facts.cancelled_at() == cancel.ok_at
    assert [(one.name, one.nonce, one.disposition) for one in facts.signals] == [("go", "sig:1", "buffered")]
    first, second = facts.steers("pay")
    assert (first.payload["params"], first.about, second.refused) == ({"amount": 2}, "pay", True)
    assert [(one.about, one.nonce, one.disposition) for one in facts.notices()] == [("a", "a9", "unmatched")]
    assert facts.notices("b") == ()


def test_a_stop_that_came_too_late_is_none() -> None:
    """It is acknowledged, and says so."""
    assert look(Story(GATE).up().start().cancel(disposition="too-late").history()).cancelled_at() is None


def test_a_run_is_certainly_paused_from_the_acknowledgement_until_it_is_let_go() -> None:
    """Neither before, nor once going on has been asked, whether or not that was answered."""
    story = Story(GATE).up().start().halt().call("a").go_on("indefinite").call("pay")
    facts = look(story.history())
    (pause,) = facts.ordered("pause")
    (on,) = facts.ordered("unpause")
    assert facts.stopped == ((pause.ok_at, on.asked_at),)
    assert facts.stopped_at(facts.dispatches("a")[0].at)
    assert not facts.stopped_at(facts.dispatches("pay")[0].at)


def test_a_decision_knows_who_and_about_what() -> None:
    """With the digest of what was proposed, and the authority its actor had."""
    story = Story(GATE).up().start().call("a").decide("ok", "deny", actor="mallory", outcome="error")
    story.decide("ok", nth=2).authority("alice", granted=False).desk("ok")
    facts = look(story.history())
    forged, given = facts.decisions("ok")
    assert (forged.actor, forged.decision, forged.refused, forged.disposition) == ("mallory", "deny", True, None)
    assert (given.disposition, given.digest) == ("approved", story.proposed("pay"))
    assert [facts.has_authority(one.actor, one.asked_at) for one in (forged, given)] == [False, True]
    assert not facts.has_authority("alice", len(story.events))
    assert [request.event.service for request in facts.lookups("ok")] == ["desk"]


def test_another_plan_under_the_same_id_is_no_start_of_the_run() -> None:
    """It is told apart by what it brought."""
    facts = look(Story(GATE).up().start().misuse().history())
    assert (len(facts.asked("start")), len(facts.misuses())) == (1, 1)


def test_artifacts_and_checks_are_requests_beside_the_calls() -> None:
    """Parts and commit of an upload, and what a checker said about which version."""
    story = Story(plan("p artifact report 64 2", "q check p")).up().start().upload("p").check("q", "failed", 1, "d1")
    facts = look(story.history())
    assert facts.requests == ()
    assert [request.event.part for request in facts.dispatches("p")] == [1, 2, None]
    (check,) = facts.dispatches("q")
    assert check.reply is not None
    assert (check.event.subject, check.reply.outcome) == ("report@1#d1", "failed")


def test_what_a_harness_tells_is_read_with_its_place() -> None:
    """Journal, events and artifacts, each with when it was asked and answered."""
    story = Story(GATE).up().start()
    story.journal([{"sequence": 1, "operation": "a", "from": "planned", "to": "dispatched", "move": "dispatch"}])
    story.page([{"cursor": 4, "kind": "signal"}], after=3, cursor=5).artifacts([{"name": "report", "version": 2}])
    facts = look(story.history())
    (journal,), (page,), (listing,) = facts.journals, facts.pages, facts.listings
    assert journal.body.transitions == (Transition(1, "a", "planned", "dispatched", "dispatch"),)
    assert (page.after, page.body.next, page.body.events[0].cursor) == (3, 5, 4)
    assert listing.body == (ArtifactEntry("report", 2),)
    assert journal.asked < journal.answered < page.asked


def test_verdicts_and_what_was_never_accepted_are_read() -> None:
    """A journal's verdicts with what they are about; an upload without a version."""
    row = {
        "operation": "q",
        "generation": 3,
        "checker": "checker",
        "subject": "report",
        "version": 2,
        "outcome": "passed",
    }
    assert journal_of({"verdicts": [row, 1]}).verdicts == (Verdict("q", 3, "checker", "report", 2, "", "passed"),)
    (partial,) = artifacts_of({"artifacts": [{"name": "report", "version": None, "state": "partial"}]})
    assert (partial.version, partial.state) == (None, "partial")


def test_what_is_off_in_a_body_is_left_out() -> None:
    """Rows that are no objects, fields of another type, no body at all: nothing stumbles."""
    assert journal_of(
        {"transitions": 3, "invocations": ["odd", {"generation": "x", "key": "k", "report": True}]}
    ) == Journal(invocations=(Invocation(key="k"),))
    assert events_of(None).events == ()
    assert events_of({"next": "x", "control": [1, {"a": 1}]}).control == ({"a": 1},)
    assert artifacts_of({"artifacts": {"name": "x"}}) == ()


def test_the_code_of_workers_is_told() -> None:
    """Which version they came up with, and that it has changed."""
    facts = look(Story(plan("m model 100", "n model 100")).up(code="1").start().call("m").kill().up(code="2").history())
    assert [code for _, code in facts.codes()] == ["1", "2"]
    assert facts.code_changed()


def test_what_was_done_is_known_by_its_first_action() -> None:
    """What follows in a label fires by itself; ids of loop copies confuse nothing."""
    assert actions_of("kill@a@2#1.applied+kill@*#1.applied") == ("kill", "kill")
    assert actions_of("early@ack:start:w+kill@t+5ns") == ("early", "kill")
    story = Story(GATE).up().fired("expire@a#1.applied").fired("lose-ack@ack:start+kill@end")
    facts = look(story.history())
    assert facts.struck("expire")
    assert facts.struck("lose-ack")
    assert not facts.struck("kill")
    assert facts.expired("a", 9)
    assert not facts.expired("b", 9)
    assert not facts.expired("a", 1)


def test_asking_alone_disturbs_nobody() -> None:
    """Actions that only ask are no reason to repeat a call; others are."""
    asked = Story(GATE).up().start().fired("steer@waiting:w>z").fired("cancel@end").history()
    assert look(asked).halts == ()
    assert len(look(Story(GATE).up().fired("deploy@end=2").history()).halts) == 1


def test_a_word_without_a_nonce_is_no_lost_answer() -> None:
    """The desk's word and a part that was staged are told; what was dropped on its way, or was an error, is lost."""
    gate = Story(GATE).up().start().call("a").decide("ok").desk("ok").call("pay").history()
    assert look(gate).troubles == ()
    assert [one.unanswered for one in look(gate).others] == [False]
    upload = Story(plan("p artifact report 9 2")).up().start().upload("p").history()
    assert look(upload).troubles == ()
    for story in (
        Story(GATE).up().start().request("ok", lookup=True).reply("error", nonce=None),
        Story(GATE).up().start().request("ok", lookup=True).reply("found", nonce=None, delivery="dropped"),
    ):
        (asked,) = look(story.history()).others
        assert asked.unanswered
        assert look(story.history()).troubles == (asked.replied_at,)
