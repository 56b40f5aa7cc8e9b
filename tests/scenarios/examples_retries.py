"""Examples for RTY-1 2 3 4 5 6."""

from __future__ import annotations

from scenarios.history import OperationStatus, Status
from scenarios.plan import Call, Fail, Loop, Model, Par, Plan, Seq
from tests.scenarios.build import MS, Story, plan
from tests.scenarios.examples import breaks, holds

OPS = {"shows_operations": True}
THREE = plan(Call("a", "flaky", {"of": "a"}, tries=3))
SOON = plan(Call("a", "flaky", {"of": "a"}, elapsed_ns=500 * MS))
ONE = plan("a flaky", "b ledger a")
HERD = Plan(Par("herd", tuple(Call(f"c{n}", "flaky", {"of": n}) for n in range(12))))
AGENT = Plan(
    Seq(
        "main",
        (
            Loop(
                "again", (Model("think", "go on", 100), Call("act", "flaky", {"of": "act"}, tolerate=True)), "think", 3
            ),
            Fail("enough", "rejected"),
        ),
    )
)


def tried(times: int, story: Story | None = None) -> Story:
    """A call that fails so often."""
    sent = story or Story(THREE, **OPS).up().start()
    for _ in range(times):
        sent.call("a", "error")
    return sent


def shown(story: Story, tries: int) -> Story:
    """The run ends with `a` unresolved after so many tries, by its own count."""
    operation = OperationStatus("a", "unresolved", tries=tries)
    return story.ask("status").answer("ok", Status("blocked", error="a: used up", operations=(operation,))).settled()


# --- RTY-1 ------------------------------------------------------------------------------------------------------------
holds(
    "RTY-1", "three tries, by three workers", tried(1, tried(1, tried(1).crash()).crash()).status("blocked").settled()
)
holds("RTY-1", "answered at the last", tried(2).crash().call("a").done().settled())
holds(
    "RTY-1",
    "a look-up is no try",
    Story(plan(Call("a", "registry", {"of": "a"}, tries=2)), **OPS)
    .up()
    .start()
    .request("a")
    .crash()
    .look_up("a", "error")
    .look_up("a")
    .call("a")
    .done()
    .settled(),
)
holds("RTY-1", "nothing died", tried(3).status("blocked").settled(), exercised=0)
breaks("RTY-1", "a restart begins anew", tried(3, tried(2).crash()), "overspend")
breaks("RTY-1", "one more, by one worker", tried(4), "overspend")

# --- RTY-2 ------------------------------------------------------------------------------------------------------------
holds(
    "RTY-2",
    "nobody was there until it was too late",
    tried(1, Story(SOON).up().start()).kill().later(2000).up().status("blocked").settled(),
)
holds(
    "RTY-2",
    "the last request was on its way for a while",
    tried(1, tried(1, Story(SOON).up().start()).kill().later(900).up()).later(600).status("blocked").settled(),
)
holds(
    "RTY-2",
    "a dead worker's request comes in long after",
    Story(SOON).up().start().request("a").kill().up().later(2000).request("a", by=1).status("blocked").settled(),
)
holds(
    "RTY-2",
    "the clock was set back meanwhile",
    tried(1, tried(1, Story(SOON).up().start()).fired("jump@ack:start~-3600000000000ns").crash().later(3000)),
    exercised=0,
)
holds("RTY-2", "answered in time", tried(2, Story(SOON).up().start()).crash().call("a").later(2000).done(), exercised=0)
breaks(
    "RTY-2",
    "a restart starts the clock anew",
    tried(1, tried(1, Story(SOON).up().start()).kill().later(2000).up()),
    "overspend",
)
breaks("RTY-2", "tried on and on", tried(1, tried(1, Story(SOON).up().start()).later(4000)), "overspend")

# --- RTY-3 ------------------------------------------------------------------------------------------------------------
holds(
    "RTY-3",
    "refused, and told why",
    Story(ONE, **OPS)
    .up()
    .start()
    .call("a", "rejected")
    .status("failed", ops={"a": "failed"}, error="a: 400")
    .settled(),
)
holds(
    "RTY-3",
    "refused, and told by a code",
    Story(ONE).up().start().call("a", "rejected").status("failed", reason="rejected").settled(),
)
holds(
    "RTY-3",
    "the worker dies on the word of a refusal: asked again",
    Story(ONE)
    .up()
    .start()
    .call("a", "rejected")
    .crash()
    .call("a", "rejected")
    .status("failed", error="a: 400")
    .settled(),
    exercised=2,
)
holds(
    "RTY-3",
    "its worker was stopped before the refusal could reach it: asked again",
    Story(ONE)
    .up()
    .start()
    .pause()
    .call("a", "rejected")
    .up()
    .call("a", "rejected")
    .status("failed", error="a: 400")
    .settled(),
    exercised=2,
)
holds(
    "RTY-3",
    "its worker was stopped before the answer could reach it: asked again, whoever delivers what",
    Story(ONE).up().start().start().pause().call("a").up().request("a").reply("saved").call("b").done().settled(),
    exercised=0,
)
holds(
    "RTY-3",
    "not now is no refusal",
    Story(ONE).up().start().call("a", "limited").call("a", "busy").call("a").call("b").done().settled(),
    exercised=0,
)
breaks(
    "RTY-3", "refused, and sent again", Story(ONE).up().start().call("a", "rejected").call("a", "rejected"), "overspend"
)
breaks(
    "RTY-3",
    "refused, sent again, and taken",
    Story(ONE).up().start().call("a", "rejected").call("a").call("b").done(),
    "overspend",
)
breaks(
    "RTY-3",
    "failed, for no reason that anybody is told",
    Story(ONE, **OPS).up().start().call("a", "rejected").status("failed", ops={"a": "failed"}, reason=None).settled(),
    "amnesia",
)


# --- RTY-4 ------------------------------------------------------------------------------------------------------------
def herd(*waits_ms: int, jitter_ms: int = 0, away: int | None = None, held: int | None = None) -> Story:
    """A dozen calls fail together and wait before each repeat, one `jitter_ms` longer than the other; the server is `away` for a
    moment, or the run `held`, before the repeat of that number.
    """
    story = Story(HERD).up("engine").up().start()
    at_ms = 0
    for number in range(len(waits_ms) + 1):
        if number == away:
            story.kill(unit="engine", incarnation=1).up("engine")
        if number == held:
            story.halt().go_on()
        for n in range(12):
            story.now_ns = (10 + at_ms + number * n * jitter_ms) * MS
            story.request(f"c{n}")
            story.now_ns -= MS
            story.reply("error")
        at_ms += waits_ms[number] if number < len(waits_ms) else 0
    return story


holds(
    "RTY-4", "waits that double, each a bit longer than its neighbour's", herd(20, 40, 80, 160, 320, 640, jitter_ms=10)
)
holds("RTY-4", "few failures show nothing", herd(20, 20), exercised=0)
holds(
    "RTY-4",
    "a herd that something strikes at shows nothing",
    herd(20, 20).crash(),
    exercised=0,
)
holds(
    "RTY-4",
    "the run was held before their first repeat, which is what they waited for",
    herd(500, 20, 40, 80, 160, 320, held=1, jitter_ms=3),
    exercised=0,
)
breaks("RTY-4", "a constant wait", herd(*[50] * 6, jitter_ms=1), "overspend")
breaks("RTY-4", "all in step", herd(20, 40, 80, 160, 320, 640), "overspend")


def struck(*after_ms: int, away: int | None = None) -> Story:
    """The herd has failed four times, the last wait being 160 ms, when its server dies; one comes after each of these."""
    story = herd(40, 80, 160, away=away).kill(unit="engine", incarnation=1 if away is None else 3)
    since_ns = story.up("engine").now_ns
    for n, ms in enumerate(after_ms):
        story.now_ns = since_ns + ms * MS
        story.request(f"c{n}")
    return story


def held_then_struck() -> Story:
    """The herd has failed four times as the run is held; the server dies meanwhile."""
    story = herd(40, 80, 160).halt().kill(unit="engine", incarnation=1).up("engine").go_on()
    for n in range(12):
        story.request(f"c{n}")
    return story


holds("RTY-4", "the server dies, and each comes when it would have come", struck(*range(20, 320, 25)))
breaks("RTY-4", "the server dies, and they all come as it is back", struck(*range(20, 32)), "overspend")
holds(
    "RTY-4",
    "the server dies as the run is held, and they all come as it is let go on",
    held_then_struck(),
    exercised=0,
)
holds("RTY-4", "it was away before, and that was what they waited for", struck(*range(20, 32), away=3), exercised=0)

# --- RTY-5 ------------------------------------------------------------------------------------------------------------
holds("RTY-5", "as many requests as tries", shown(tried(3), 3))
holds("RTY-5", "answered at the second try", tried(1).call("a").done().settled())
holds("RTY-5", "a try that never left is one all the same", shown(tried(2), 3))
holds("RTY-5", "something had died: not a matter of layers", shown(tried(1, tried(2).crash()), 3), exercised=0)
breaks("RTY-5", "each try is three requests", shown(tried(9, Story(ONE, **OPS).up().start()), 3), "overspend")
breaks("RTY-5", "three times three", tried(9).status("blocked", error="a").settled(), "overspend")


# --- RTY-6 ------------------------------------------------------------------------------------------------------------
def turns(*rounds: int, story: Story | None = None) -> Story:
    """The model is asked, and what it proposes is refused, once in each of these rounds."""
    asked = story or Story(AGENT, **OPS).up().start()
    for number in rounds:
        asked.call(f"think@{number}", usage=50).call(f"act@{number}", "rejected")
    return asked


holds(
    "RTY-6",
    "three rounds, and stopped for a reason",
    turns(1, 2, 3).status("failed", reason="planned-failure: rejected").settled(),
    exercised=3,
)
holds("RTY-6", "the model had enough before", turns(1).status("failed", error="rejected").settled())
holds(
    "RTY-6",
    "asked again because its worker died",
    turns(1, 2, 3, story=Story(AGENT, **OPS).up().start().call("think@1", usage=50).crash())
    .status("failed", error="rejected")
    .settled(),
    exercised=3,
)
breaks("RTY-6", "the same round over and over", turns(1, 1, 1, 1), "overspend")
breaks("RTY-6", "over the bound in the last round", turns(1, 2, 3, 3), "overspend")
breaks("RTY-6", "stopped without a word", turns(1, 2, 3).status("failed", reason=None).settled(), "amnesia")
