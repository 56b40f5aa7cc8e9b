"""Requests of the services from the wire: what is read, and what is refused by the name of its field."""

from __future__ import annotations

import contextlib
import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkit.services import CONTRACTS, BadRequestError, Request, encode, load_json, parse_request
from tests.service_rig import Counter

PUT = {"action": "put", "location": "x", "parts": 2, "data": "aGk="}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], "body"),
        ({"run": "r", "op": "a"}, "service"),
        ({"service": "bank", "run": "r", "op": "a"}, "service"),
        ({"service": ["ledger"], "run": "r", "op": "a"}, "service"),
        ({"service": "ledger", "op": "a"}, "run"),
        ({"service": "ledger", "run": "r", "op": 1}, "op"),
        ({"service": "ledger", "run": "r", "op": "a", "key": ""}, "key"),
        ({"service": "ledger", "run": "r", "op": "a", "params": []}, "params"),
        ({"service": "ledger", "run": "r", "op": "a", "params": {"x": float("inf")}}, "params"),
        ({"service": "ledger", "run": "r", "op": "a", "carries": {"z": 1}}, "carries.z"),
        ({"service": "ledger", "run": "r", "op": "a", "script": ["explode"]}, "script"),
        ({"service": "ledger", "run": "r", "op": "a", "script": "ok"}, "script"),
        ({"service": "ledger", "run": "r", "op": "a", "lookup": 1}, "lookup"),
        ({"service": "ledger", "run": "r", "op": "a", "lookup": True}, "lookup"),
        ({"service": "ledger", "run": "r", "op": "a", "colour": "red"}, "colour"),
        ({"service": "fenced", "run": "r", "op": "a", "token": -1}, "token"),
        ({"service": "fenced", "run": "r", "op": "a", "token": True}, "token"),
        ({"service": "ledger", "run": "r", "op": "a", "remaining_ns": "1 s"}, "remaining_ns"),
        ({"service": "ledger", "run": "r", "op": "a", "secret": 7}, "secret"),
        ({"service": "ledger", "run": "r", "op": "a", "actor": ""}, "actor"),
        ({"service": "ledger", "run": "r", "op": "a", "part": 0}, "part"),
        ({"service": "ledger", "run": "r", "op": "a", "version": 0}, "version"),
        ({"service": "ledger", "run": "r", "op": "a", "params": {"answer_bytes": -1}}, "params.answer_bytes"),
        ({"service": "ledger", "run": "r", "op": "a", "params": {"answer_bytes": 1 << 30}}, "params.answer_bytes"),
        ({"service": "ledger", "run": "r", "op": "a", "script": ["duplicate"]}, "script"),
        ({"service": "ledger", "run": "r", "op": "a", "script": ["passed"]}, "script"),
        ({"service": "registry", "run": "r", "op": "a", "script": ["down"]}, "script"),
        ({"service": "model", "run": "r", "op": "a", "params": {"prompt": 1}}, "params.prompt"),
        ({"service": "model", "run": "r", "op": "a", "params": {"tokens": 1.5}}, "params.tokens"),
        ({"service": "model", "run": "r", "op": "a", "params": {"uses": "all"}}, "params.uses"),
        ({"service": "store", "run": "r", "op": "a"}, "params.action"),
        ({"service": "store", "run": "r", "op": "a", "params": {"action": "get"}}, "params.action"),
        ({"service": "store", "run": "r", "op": "a", "params": {"action": "abort"}}, "params.location"),
        ({"service": "store", "run": "r", "op": "a", "params": {"action": "put", "location": "x"}}, "params.parts"),
        ({"service": "store", "run": "r", "op": "a", "params": {**PUT, "parts": 0}}, "params.parts"),
        ({"service": "store", "run": "r", "op": "a", "params": PUT}, "part"),
        ({"service": "store", "run": "r", "op": "a", "params": PUT, "part": 3}, "part"),
        ({"service": "store", "run": "r", "op": "a", "params": {**PUT, "data": "?"}, "part": 1}, "params.data"),
        ({"service": "store", "run": "r", "op": "a", "params": {**PUT, "data": 1}, "part": 1}, "params.data"),
        ({"service": "store", "run": "r", "op": "a", "params": {**PUT, "action": "commit"}}, "digest"),
        ({"service": "store", "run": "r", "op": "a", "params": PUT, "part": 1, "lookup": True}, "params.action"),
        ({"service": "desk", "run": "r", "op": "a", "actor": "alice"}, "lookup"),
        ({"service": "desk", "run": "r", "op": "a", "lookup": True}, "params.actor"),
        ({"service": "operation", "run": "r", "op": "a", "params": {"action": "stop"}}, "params.action"),
        ({"service": "operation", "run": "r", "op": "a", "params": {"action": "cancel"}}, "params.name"),
        ({"service": "operation", "run": "r", "op": "a", "params": {"ns": -1}}, "params.ns"),
        ({"service": "operation", "run": "r", "op": "a", "params": {"stubborn": "very"}}, "params.stubborn"),
        ({"service": "operation", "run": "r", "op": "a", "params": {"name": 1}, "lookup": True}, "params.name"),
        ({"service": "checker", "run": "r", "op": "a", "version": 1, "digest": "d"}, "subject"),
        ({"service": "checker", "run": "r", "op": "a", "subject": "s", "digest": "d"}, "version"),
        ({"service": "checker", "run": "r", "op": "a", "subject": "s", "version": 1}, "digest"),
    ],
)
def test_a_request_that_cannot_be_read_names_the_field(data: object, field: str) -> None:
    """Every way a request can be off is refused by the name of the field."""
    with pytest.raises(BadRequestError) as caught:
        parse_request(data)
    assert caught.value.field == field
    assert str(caught.value).startswith(field)


@pytest.mark.parametrize("text", [b"{", b"\xff", b"NaN", b'{"a": Infinity}', b"[" * 100_000, b"1" * 5_000])
def test_json_is_read_strictly(text: bytes) -> None:
    """Broken, non-finite, endless and absurdly deep JSON is refused, never a crash of the service."""
    with pytest.raises(BadRequestError, match="body"):
        load_json(text, field="body")


NUMBERS = st.none() | st.integers(1, 1 << 70)
TEXTS = st.none() | st.text(min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
#: Requests to services that ask for nothing of their own in `params`.
REQUESTS = st.builds(
    Request,
    service=st.sampled_from(["ledger", "registry", "mailer", "reader", "flaky", "fenced"]),
    run=st.text(min_size=1, max_size=9),
    op=st.text(min_size=1, max_size=9),
    key=TEXTS,
    params=st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    carries=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    script=st.lists(st.sampled_from(["ok", "slow", "429", "cut"]), max_size=3).map(tuple),
    token=NUMBERS,
    remaining_ns=st.none() | st.integers(),
    secret=TEXTS,
    part=NUMBERS,
    subject=TEXTS,
    version=NUMBERS,
    digest=TEXTS,
    actor=TEXTS,
)


@given(REQUESTS)
def test_what_is_written_is_read_again(request: Request) -> None:
    """A request comes off the simulated wire as it went on."""
    assert parse_request(load_json(encode(request), field="line")) == request


@given(REQUESTS)
def test_a_fingerprint_is_of_what_is_asked_and_not_of_who_asks(request: Request) -> None:
    """Token, time left, secret, actor, script and key change nothing; params, carries and the subject do."""
    again = attrs.evolve(request, token=7, remaining_ns=1, secret="s", actor="a", script=(), key="other")
    assert again.fingerprint() == request.fingerprint()
    for change in ({"params": {"other": True}}, {"carries": {"other": "n"}}, {"version": 1 << 71}, {"part": 1 << 71}):
        assert attrs.evolve(request, **change).fingerprint() != request.fingerprint()


ANY = st.dictionaries(
    st.sampled_from([field.name for field in attrs.fields(Request)]) | st.text(max_size=5), VALUES, max_size=8
)


@given(st.sampled_from(list(CONTRACTS)), ANY, ANY)
def test_whatever_is_sent_it_is_a_request_or_a_bad_one(service: str, fields: dict, params: dict) -> None:
    """Reading never fails in any other way, whatever the fields hold, and what was read is answered."""
    with contextlib.suppress(BadRequestError):
        request = parse_request({"run": "r", "op": "a", "params": params, **fields, "service": service})
        assert Counter().ask(request).status in {200, 400, 404}


def test_a_secret_is_told_by_no_message_and_no_representation() -> None:
    """What cannot be read is repeated in messages, but never a credential; a request does not show it either."""
    request = {"service": "ledger", "run": "r", "op": "a"}
    with pytest.raises(BadRequestError) as caught:
        parse_request({**request, "secret": ["hush"]})
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(parse_request({**request, "secret": "hush"}))
    assert json.loads(encode(parse_request({**request, "secret": "hush"})))["secret"] == "hush"
