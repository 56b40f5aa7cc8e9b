"""The model: answers chosen by the transcript that it is shown, each of them metered. No I/O.

One conversation gets the same words and the same tool call again, under a fresh nonce: what differs between two answers
is their identity and that both were paid for. Two entries of a script make the tool calls bad while their form stays right,
and one leaves the price out:

    duplicate   two tool calls under one id
    wrong       arguments of the right type that nobody asked for: a negative amount
    unmetered   nothing is said of the tokens that it has cost
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simkit.services.contracts import Effect, Reply, Request, Settled

_CHARACTERS_PER_TOKEN = 4


def complete(request: Request, entry: str, effect: Effect) -> Settled:
    """The completion of the prompt in `params`, with the carried nonces as the rest of the transcript."""
    tokens = None if entry == "unmetered" else tokens_used(request)
    body = {
        "nonce": effect.nonce,
        **({} if tokens is None else {"usage": {"tokens": tokens}}),
        "content": f"answer to {_transcript(request)[:8]}",
        "calls": _tool_calls(request, entry),
    }
    return Settled(Reply(200, body, "executed", effect.nonce, usage=tokens), effect, executed=True)


def tokens_used(request: Request) -> int:
    """What an answer costs: `params.uses`, else half of what `params.tokens` allows, else by the prompt's length."""
    params = request.params
    if params.get("uses") is not None:
        return int(params["uses"])
    if params.get("tokens") is not None:
        return int(params["tokens"]) // 2
    return len(params.get("prompt", "")) // _CHARACTERS_PER_TOKEN + 1


def _tool_calls(request: Request, entry: str) -> list[Mapping[str, Any]]:
    transcript = _transcript(request)
    amount = int(transcript[:4], 16) + 1
    call = {
        "id": f"call-{transcript[:12]}",
        "name": "transfer",
        "arguments": {"amount": -amount if entry == "wrong" else amount},
    }
    again = {**call, "arguments": {"amount": amount + 1}}
    return [call, again] if entry == "duplicate" else [call]


def _transcript(request: Request) -> str:
    return request.fingerprint()
