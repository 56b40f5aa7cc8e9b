"""The first eight stories: orders, receipts, receivers, timers, outages, branches."""

from __future__ import annotations

from scenarios.plan import Call, Par, Seq, Sleep, Wait
from scenarios.story import NAP_NS, Story, in_order, ledger

STORIES = (
    Story(
        "tour",
        "An order: reserve, pay two equal instalments side by side, wait for the go-ahead, let it settle, ship.",
        in_order(
            ledger("reserve"),
            Par("pay", (ledger("first", "reserve", amount=7), ledger("second", "reserve", amount=7))),
            Wait("release", "go"),
            Sleep("settle", NAP_NS),
            ledger("ship", "first", "second", "release"),
        ),
    ),
    Story(
        "chain",
        "Each step pays with the receipt of the one before; a recomputed step would fork the receipts.",
        in_order(
            Call("quote", "reader", {"item": 1}),
            ledger("buy", "quote"),
            ledger("book", "buy"),
            ledger("bill", "book"),
        ),
    ),
    Story(
        "receivers",
        "Read a price, register a shipment that can be looked up, send a mail that can be neither looked up nor repeated.",
        in_order(
            Call("price", "reader", {"item": 2}),
            Call("shipment", "registry", {"box": 1}, ("price",)),
            Call("mail", "mailer", {"to": 1}, ("shipment",)),
        ),
    ),
    Story(
        "twice",
        "Two approvals of one name, one after the other: a repeated approval must not open the second gate.",
        in_order(
            ledger("draft"),
            Wait("review", "go"),
            ledger("publish", "review"),
            Wait("announce", "go"),
            ledger("post", "announce"),
        ),
    ),
    Story(
        "timer",
        "A payment, a cooling-off period, a second payment: the timer neither fires early nor is forgotten.",
        in_order(ledger("hold"), Sleep("cool", 2 * NAP_NS), ledger("capture", "hold")),
    ),
    Story(
        "outage",
        "A receiver that applies the order and then answers 503; the same order again must not ship twice.",
        in_order(
            Call("order", "flaky", {"sku": 1}, (), ("error-after",)),
            Call("confirm", "flaky", {"sku": 2}, ("order",), ("reset-after", "error-before")),
            ledger("close", "order", "confirm"),
        ),
    ),
    Story(
        "survey",
        "Three sources are read side by side, never answering the same twice; the order quotes what was accepted.",
        in_order(
            Par("sources", tuple(Call(name, "reader", {"source": name}) for name in ("north", "south", "west"))),
            Call("note", "reader", {"source": "all"}, ("north", "south", "west")),
            ledger("order", "north", "note"),
        ),
    ),
    Story(
        "branches",
        "Two branches of two steps: finished siblings stay finished when one of them dies.",
        in_order(
            Par(
                "both",
                (
                    Seq("left", (ledger("l1"), ledger("l2", "l1"))),
                    Seq("right", (ledger("r1"), Wait("gate", "go"), ledger("r2", "r1", "gate"))),
                ),
            ),
            ledger("join", "l2", "r2"),
        ),
    ),
)
