"""The outside: services with published contracts, whose effects are seen and never reported.

    contracts   what is asked and answered, and what each service promises; no I/O
    requests    a request from its wire form; names the field that is off
    state       what each request means, given everything asked before: all services together
    keys, model, store, desk, operation, checker      parts of that state, one concern each
    queue       at-least-once delivery, as its callers may rely on it
    passage     one request through the barriers received → applied → replied; faults, numbering, facts in exact order
    lines       the simulated wire: JSON lines on trio streams

There is one implementation of every contract; the hosted HTTP services of the process world are another transport.
"""

from simkit.services.contracts import (
    BODY_BYTES_MAX,
    CHECK_OUTCOMES,
    CONTRACTS,
    KEY_LIFETIME_NS,
    LOOKUP_ENTRIES,
    SCRIPT_ENTRIES,
    BadRequestError,
    Contract,
    Kind,
    Reply,
    Request,
    bad_request,
    unreadable,
)
from simkit.services.lines import (
    LineReader,
    LineTooLongError,
    ProblemSink,
    abort,
    encode,
    serve_connection,
    serve_lines,
    swallow,
)
from simkit.services.passage import (
    SLOW_NS,
    Barrier,
    Channel,
    Delivery,
    Fault,
    FaultKind,
    Gate,
    Outside,
    Recorder,
    open_gate,
)
from simkit.services.queue import Handout, Queue
from simkit.services.requests import load_json, parse_request
from simkit.services.state import Services
from simkit.services.store import Artifact

__all__ = [
    "BODY_BYTES_MAX",
    "CHECK_OUTCOMES",
    "CONTRACTS",
    "KEY_LIFETIME_NS",
    "LOOKUP_ENTRIES",
    "SCRIPT_ENTRIES",
    "SLOW_NS",
    "Artifact",
    "BadRequestError",
    "Barrier",
    "Channel",
    "Contract",
    "Delivery",
    "Fault",
    "FaultKind",
    "Gate",
    "Handout",
    "Kind",
    "LineReader",
    "LineTooLongError",
    "Outside",
    "ProblemSink",
    "Queue",
    "Recorder",
    "Reply",
    "Request",
    "Services",
    "abort",
    "bad_request",
    "encode",
    "load_json",
    "open_gate",
    "parse_request",
    "serve_connection",
    "serve_lines",
    "swallow",
    "unreadable",
]
