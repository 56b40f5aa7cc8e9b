"""The checker: comes to a verdict on one version of one artifact, as its script says. No I/O."""

from __future__ import annotations

from simkit.services.contracts import CHECK_OUTCOMES, Effect, Reply, Request, Settled


def check(request: Request, entry: str, effect: Effect) -> Settled:
    """The verdict on the subject, version and digest that the request names; the answer repeats all three."""
    outcome = entry if entry in CHECK_OUTCOMES else CHECK_OUTCOMES[0]
    body = {
        "nonce": effect.nonce,
        "outcome": outcome,
        "subject": request.subject,
        "version": request.version,
        "digest": request.digest,
    }
    return Settled(Reply(200, body, "executed", effect.nonce, outcome=outcome), effect, executed=True)
