"""The outside: services with published contracts, whose effects are seen and never reported.

    contracts   what each request means (ledger, registry, mailer, reader, flaky); no I/O
    passage     one request through the barriers received → applied → replied; faults, numbering, facts in exact order
    lines       the simulated wire: JSON lines on trio streams

There is one implementation of every contract; the hosted HTTP services of the process world are another transport.
"""

from simkit.services.contracts import (
    BODY_BYTES_MAX,
    CONTRACTS,
    KEY_LIFETIME_NS,
    SCRIPT_ENTRIES,
    BadRequestError,
    Contract,
    Kind,
    Reply,
    Request,
    Services,
    bad_request,
    load_json,
    parse_request,
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

__all__ = [
    "BODY_BYTES_MAX",
    "CONTRACTS",
    "KEY_LIFETIME_NS",
    "SCRIPT_ENTRIES",
    "SLOW_NS",
    "BadRequestError",
    "Barrier",
    "Channel",
    "Contract",
    "Delivery",
    "Fault",
    "FaultKind",
    "Gate",
    "Kind",
    "LineReader",
    "LineTooLongError",
    "Outside",
    "ProblemSink",
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
