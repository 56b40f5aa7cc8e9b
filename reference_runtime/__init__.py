"""A small durable runtime for agents: plain trio and SQLite, and every promise kept on purpose.

The map, from the bottom up; each module imports only what stands above it:

- model: states, the table of legal transitions, and the values that travel;
- promises: what tools promise, also those of one's own; leaves, plan, spelling, documents: a plan's JSON in, steps out;
- integrity, records, schema: the store's file with its checksums, its tables and settings, and owning it;
- transactions: all or nothing, and shared by who is ready at once; rows: the one way a row changes, fenced by state, generation
  and version;
- audit, delivery, budget, artifacts, checks, children: what is told, spent, published, checked and owned; particulars: where
  the general flow asks for these; contents: the bytes of artifacts;
- waits, branching, progress and what stands beside them: what follows from something having been accepted;
- retries: whether something is tried again, as a pure decision; reconcile: the search for what became of a call;
- evolution: versions of code, and who goes on with what; presence: who is there;
- acceptance: reports taken; intents: what is sent, on record; ownership: leases; store: admission, and all of this as one;
- views, listing, events: what the store shows; fleet: who is there; tables: the same for
  people; missing, remedies: why nobody takes a task up, and what to do about one that is blocked;
- rpc: one JSON object a line; clock: whether somebody has set it; holding: until when leases run; gathering: what is ready at
  once, in one commit; looking: shows what there
  is; server: owns the store, keeps time, takes work back; handle: what it can be asked; client: asks over the network;
  embedded: asks in one process;
- credentials, tools, wire: the outside, its secrets, and what its answers mean; performing: operations that are many
  requests; worker: intent, call, report;
- commands, naming, replay, workflow, interpreter: the other style, async functions driven by their history; misuse, endings,
  whereabouts: what is wrong with them, and on which line; bounding: how long they may compute; turns, turn_verbs and
  runner: how these move in the store, the server and a worker;
- unparking: another chance for what was put aside; vouching, vouch_verb: a person's word for what nobody could establish; ids:
  what may be one; connections: how many, and for how long; recognising: a secret however it is written; binding: which log
  belongs to the file;
- log: events and ids, one JSON object a line; memory: what was freed is kept; durations: as people write them; reading,
  guessing, importing: a command line, what was probably meant, and the modules it names;
- __main__: `python -m reference_runtime serve | worker | submit | status | tasks | signal | decide | events | … | doctor`.

It imports nothing of this project, runs on a real machine as it is, and under the simulated one unchanged.
"""

from reference_runtime.allocation import IS_SETTLED as IS_SETTLED  # first of all, see there
from reference_runtime.client import Client
from reference_runtime.embedded import Embedded, embedded
from reference_runtime.evolution import Code
from reference_runtime.handle import Handle, Patience, Unreachable
from reference_runtime.model import Policy, Receipt, Refusal
from reference_runtime.plan import PlanError
from reference_runtime.promises import Promise
from reference_runtime.schema import StoreError
from reference_runtime.server import Server
from reference_runtime.store import Store
from reference_runtime.tools import Busy, Rejected, Request, Tools, Unknown, Unsent, connect
from reference_runtime.worker import Worker

__all__ = [
    "Busy",
    "Client",
    "Code",
    "Embedded",
    "Handle",
    "Patience",
    "PlanError",
    "Policy",
    "Promise",
    "Receipt",
    "Refusal",
    "Rejected",
    "Request",
    "Server",
    "Store",
    "StoreError",
    "Tools",
    "Unknown",
    "Unreachable",
    "Unsent",
    "Worker",
    "connect",
    "embedded",
]
