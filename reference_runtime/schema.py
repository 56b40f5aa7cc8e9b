"""The store's file: its tables, its settings, and opening it as the one owner.

`PRAGMAS` are promises: WAL with synchronous=FULL makes a committed transaction survive a power loss (the default,
DELETE with FULL, does not: the unlinked journal may come back). `locking_mode=EXCLUSIVE` keeps a second server out and
lets WAL work without shared memory. SQLite answers such a pragma with the mode it really took, and says nothing when it
falls back, so every answer is checked.

A sync that failed leaves pages behind that the system calls clean though they never reached the disk (Rebello and others,
"Can Applications Recover from fsync Failures?", USENIX ATC 2020). The server stops over it, but the next one would read them
as if they were durable, and commit on top: so whoever opens a used store makes it durable once more before anything else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import apsw

from reference_runtime.binding import RESERVED_BYTES
from reference_runtime.integrity import checked_vfs, is_log_left, log_damage
from reference_runtime.model import Refusal
from reference_runtime.records import PENDING, RECORDS, WAITS
from reference_runtime.turn_records import OUTCOME_TRIGGER, WORKFLOW_TABLES

#: The code of the error that refuses a store with damage in it.
DAMAGED = "store-damaged"
#: In this order: WAL is only possible without shared memory once the lock is exclusive.
PRAGMAS: Mapping[str, tuple[str, object]] = {
    "locking_mode": ("EXCLUSIVE", "exclusive"),
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),
    "foreign_keys": ("ON", 1),
}

TABLES = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE task (
    id TEXT PRIMARY KEY, plan TEXT NOT NULL, digest TEXT NOT NULL, attempt TEXT NOT NULL,
    version INTEGER NOT NULL, submitted_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    id TEXT PRIMARY KEY, task TEXT NOT NULL REFERENCES task(id), number INTEGER NOT NULL,
    condition TEXT NOT NULL, outcome TEXT, reason TEXT, execution TEXT, UNIQUE (task, number)
) STRICT, WITHOUT ROWID;

-- generation and version fence every change; opened_ns: dependencies accepted; due_ns: claimable from then, or NULL
CREATE TABLE operation (
    attempt TEXT NOT NULL REFERENCES attempt(id), id TEXT NOT NULL, position INTEGER NOT NULL,
    kind TEXT NOT NULL, tool TEXT NOT NULL, semantics TEXT, spec TEXT NOT NULL, signal TEXT NOT NULL,
    state TEXT NOT NULL, remedy TEXT, tries INTEGER NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL,
    key TEXT, request TEXT, answer TEXT, reason TEXT, opened_ns INTEGER, due_ns INTEGER,
    accepted INTEGER AS (state IN ('succeeded', 'reconciled')),
    PRIMARY KEY (attempt, id)
) STRICT;
CREATE INDEX operation_due ON operation (due_ns) WHERE due_ns IS NOT NULL;

CREATE TABLE dependency (
    attempt TEXT NOT NULL, needs TEXT NOT NULL, operation TEXT NOT NULL, PRIMARY KEY (attempt, needs, operation)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_of ON dependency (attempt, operation);

CREATE TABLE lease (
    generation INTEGER PRIMARY KEY, attempt TEXT NOT NULL, operation TEXT NOT NULL, execution TEXT NOT NULL,
    UNIQUE (attempt, operation)
) STRICT;

CREATE TABLE invocation (
    generation INTEGER PRIMARY KEY, attempt TEXT NOT NULL, operation TEXT NOT NULL, action TEXT NOT NULL,
    key TEXT, digest TEXT NOT NULL, execution TEXT NOT NULL, started_ns INTEGER NOT NULL,
    report TEXT, detail TEXT, ended_ns INTEGER
) STRICT;
CREATE INDEX invocation_of ON invocation (attempt, operation);

CREATE TABLE timer (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, due_ns INTEGER NOT NULL, fired_ns INTEGER,
    PRIMARY KEY (attempt, operation)
) STRICT, WITHOUT ROWID;
CREATE INDEX timer_due ON timer (due_ns) WHERE fired_ns IS NULL;

-- a signal: consumer is the one wait it released
CREATE TABLE event (
    sequence INTEGER PRIMARY KEY, task TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    received_ns INTEGER NOT NULL, consumer TEXT, UNIQUE (task, id)
) STRICT;
CREATE INDEX event_free ON event (task, name, sequence) WHERE consumer IS NULL;

-- what was refused; nothing decides by it
CREATE TABLE evidence (
    sequence INTEGER PRIMARY KEY, attempt TEXT NOT NULL, operation TEXT NOT NULL, generation INTEGER NOT NULL,
    report TEXT NOT NULL, detail TEXT NOT NULL, at_ns INTEGER NOT NULL
) STRICT;
"""

#: Decisions of the plan and of people. `missing`: dependencies not settled yet. `settled`: dependants may go on.
#: `void`: lost its race and counts for nothing. `subject`: what a compensation, an approval or a check is about.
DECISIONS = """
ALTER TABLE operation ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operation ADD COLUMN tolerate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operation ADD COLUMN void INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operation ADD COLUMN subject TEXT;
ALTER TABLE operation ADD COLUMN acceptance INTEGER;
ALTER TABLE operation ADD COLUMN settled INTEGER AS
    (state IN ('succeeded', 'reconciled', 'skipped') OR (state = 'failed' AND (tolerate OR void)));
UPDATE operation SET missing = (SELECT count(*) FROM dependency d JOIN operation o
    ON o.attempt = d.attempt AND o.id = d.needs
    WHERE d.attempt = operation.attempt AND d.operation = operation.id AND NOT o.settled);
CREATE INDEX operation_pending ON operation (attempt) WHERE state IN ('planned', 'dispatched', 'unknown');
CREATE INDEX operation_claimable ON operation (attempt) WHERE due_ns IS NOT NULL;
CREATE INDEX operation_open ON operation (attempt, kind, position) WHERE state = 'planned' AND opened_ns IS NOT NULL;
CREATE INDEX operation_bad ON operation (attempt, position) WHERE state IN ('failed', 'unresolved');
CREATE INDEX operation_about ON operation (attempt, subject) WHERE subject IS NOT NULL;

-- failing: why nothing new begins; halt: accepted, delivered or quiescent; grace_ns: until when a stop is patient
ALTER TABLE attempt ADD COLUMN failing TEXT;
ALTER TABLE attempt ADD COLUMN halt TEXT;
ALTER TABLE attempt ADD COLUMN grace_ns INTEGER;
ALTER TABLE attempt ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
UPDATE attempt SET failing = (SELECT 'refused: ' || o.id || ': ' || ifnull(o.reason, '') FROM operation o
    WHERE o.attempt = attempt.id AND o.state = 'failed' ORDER BY o.position LIMIT 1);
CREATE INDEX attempt_halt ON attempt (grace_ns) WHERE grace_ns IS NOT NULL;
ALTER TABLE event ADD COLUMN disposition TEXT;

-- an operation belongs to one arm of a gate (a branch or a race) and is skipped when another one is taken
CREATE TABLE guard (
    attempt TEXT NOT NULL, gate TEXT NOT NULL, arm TEXT NOT NULL, operation TEXT NOT NULL,
    PRIMARY KEY (attempt, gate, arm, operation)
) STRICT, WITHOUT ROWID;
-- the operations whose end is the end of one child of a race
CREATE TABLE finish (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, gate TEXT NOT NULL, arm TEXT NOT NULL,
    PRIMARY KEY (attempt, operation, gate, arm)
) STRICT, WITHOUT ROWID;
CREATE INDEX finish_of ON finish (attempt, gate, arm);

-- what somebody asked for under an id of their own: a repeat gets the first answer
CREATE TABLE command (
    task TEXT NOT NULL, id TEXT NOT NULL, verb TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT NOT NULL,
    at_ns INTEGER NOT NULL, PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
-- leases whose holder was told of a stop
CREATE TABLE told (generation INTEGER PRIMARY KEY) STRICT;

-- a decision is bound to one operation and its digest; expires_ns by the wall clock, NULL: never
CREATE TABLE approval (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, subject TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL,
    actor TEXT, expires_ns INTEGER, PRIMARY KEY (attempt, operation)
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_of ON approval (attempt, subject);
"""

#: How often something was tried. `tries` counts calls, `first_ns` is the first of them, `deaths` are leases that ran out with
#: a call on record; `in_doubt`: some call may have happened and nobody knows. `source`: the generation whose report was
#: answered with this lease, NULL when a claim was. A row of `reconcile` is one search for what became of an operation.
TRIES = """
ALTER TABLE operation ADD COLUMN first_ns INTEGER;
ALTER TABLE operation ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operation ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN source INTEGER;
ALTER TABLE invocation ADD COLUMN external TEXT;
UPDATE operation SET in_doubt = 1 WHERE state IN ('dispatched', 'unknown', 'unresolved');
CREATE INDEX lease_of ON lease (execution);

CREATE TABLE reconcile (
    id TEXT PRIMARY KEY, attempt TEXT NOT NULL, operation TEXT NOT NULL, tries INTEGER NOT NULL,
    opened_ns INTEGER NOT NULL, ended_ns INTEGER, result TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX reconcile_of ON reconcile (attempt, operation);
"""

#: States compared one by one: for a list of three SQLite makes a table, in each statement that changes an operation. An index
#: of what is open has what waits; what is to be called is due, and soon is not.
#: Leases are as many as calls are under way, so that those of one execution are found without an index. What is due is read
#: in the order in which it is given out. What version 1 has sent gets the time of that, or its key would be as good as new.
COMPARISONS = f"""
ALTER TABLE operation DROP COLUMN settled;
ALTER TABLE operation ADD COLUMN settled INTEGER AS
    (state = 'succeeded' OR state = 'reconciled' OR state = 'skipped' OR (state = 'failed' AND (tolerate OR void)));
DROP INDEX operation_pending;
CREATE INDEX operation_pending ON operation (attempt) WHERE {PENDING};
DROP INDEX operation_open;
CREATE INDEX operation_open ON operation (attempt, position)
    WHERE state = 'planned' AND opened_ns IS NOT NULL AND {WAITS};
DROP INDEX lease_of;
DROP INDEX operation_due;
CREATE INDEX operation_due ON operation (due_ns, attempt, position) WHERE due_ns IS NOT NULL;
UPDATE operation SET first_ns = (SELECT min(started_ns) FROM invocation i
    WHERE i.attempt = operation.attempt AND i.operation = operation.id AND i.action = 'call')
    WHERE first_ns IS NULL AND tries > 0;
{OUTCOME_TRIGGER}
"""

#: One step from each version to the next, each applied in a transaction of its own; a new file takes them all.
MIGRATIONS: Sequence[str] = (TABLES, DECISIONS + RECORDS + TRIES + WORKFLOW_TABLES, COMPARISONS)
SCHEMA_VERSION = len(MIGRATIONS)


def parts(version: int) -> Sequence[str]:
    """Every table, index and trigger of a store of a version."""
    found = dict[str, None]()
    for verb, name in re.findall(
        r"^(CREATE|DROP) (?:TABLE|INDEX|TRIGGER) (\w+)", "".join(MIGRATIONS[:version]), re.MULTILINE
    ):
        if verb == "CREATE":
            found[name] = None
        else:
            found.pop(name)
    return tuple(found)


PARTS: Sequence[str] = parts(SCHEMA_VERSION)


def _empty() -> apsw.Connection:
    """A store of this version without a task, in memory: a new file is a copy of it, page by page, in one transaction."""
    db = apsw.Connection(":memory:")
    db.reserve_bytes("main", RESERVED_BYTES)
    db.execute("".join(MIGRATIONS))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return db


EMPTY = _empty()


class StoreError(Refusal):
    """A store that cannot be opened: owned by another server, made by a newer version, damaged, or not ours at all."""


def open_database(path: str, known: int = SCHEMA_VERSION) -> apsw.Connection:
    """The file at `path`, made on first use, owned exclusively by the caller, who knows schemas up to `known`. Raises
    `StoreError`.
    """
    try:
        is_used = Path(path).is_file() and Path(path).stat().st_size > 0
        if Path(path).is_symlink():
            path = os.path.realpath(path)  # SQLite keeps the log beside the file itself, and so do we
    except (OSError, ValueError) as error:
        raise StoreError("store-missing", f"{path!r:.200} is no place for a store: {error!s:.200}") from error
    if not is_used and is_log_left(path):
        raise StoreError(
            DAMAGED,
            f"{path} is gone or empty, and its log holds a part of it; restore the folder from a copy",
        )
    db = None
    try:
        db = apsw.Connection(path, vfs=checked_vfs(), statementcachesize=512)
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # or joins are planned anew each time a value is bound
        if not is_used:
            db.reserve_bytes("main", RESERVED_BYTES)  # so that the file has room for its binding from its first byte on
        _settle_pragmas(db, path)
        if is_used:
            _check_log(db, path)
            check_version(path, db.pragma("user_version"), known)
            _make_durable(db, Path(f"{path}-wal"))
        _migrate(db, path, known)
    except (StoreError, apsw.Error) as error:
        leave(db)
        if (refusal := _refusal(error, path)) is not None:
            raise refusal from error
        raise
    return db


def leave(db: apsw.Connection | None) -> None:
    """Close a store that is refused, or of which nobody knows how it is, and leave its bytes as they are."""
    if db is not None:
        with suppress(apsw.Error):
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.close()


def _refusal(error: Exception, path: str) -> StoreError | None:
    """What an error of SQLite says about a store as it is opened; None where it says nothing that anybody could mend."""
    match error:
        case apsw.BusyError():
            return StoreError("store-owned", f"{path} is open in another server; stop that one first")
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreError(DAMAGED, f"{path} is not a whole SQLite database: {error}")
        case apsw.ReadOnlyError() | apsw.IOError() if _is_locked_up(path):
            return StoreError(
                "store-readonly", f"{path}: the file and its folder must be writable; nothing was changed"
            )
        case apsw.CantOpenError() if Path(path).is_dir():
            return StoreError(
                "store-missing", f"{path} is a folder; expected the name of a file, which is made on first use"
            )
        case apsw.CantOpenError() if (odd := _no_file_beside(path)) is not None:
            return StoreError(
                DAMAGED,
                f"{odd} is no file; what is beside {path} is the runtime's own: restore a copy, or move it away",
            )
        case apsw.CantOpenError():
            return StoreError("store-missing", f"{path} cannot be opened; its folder must exist and be writable")
    return None


def _no_file_beside(path: str) -> str | None:
    """What stands in the place of a file that belongs to the store, and is something else."""
    beside = (Path(f"{path}{end}") for end in ("-wal", "-mark"))
    return next((str(one) for one in beside if one.is_symlink() or (one.exists() and not one.is_file())), None)


def _is_locked_up(path: str) -> bool:
    places = [place for place in (Path(path), Path(path).absolute().parent) if place.exists()]
    return not all(os.access(place, os.W_OK) for place in places)


def _settle_pragmas(db: apsw.Connection, path: str) -> None:
    for name, (wanted, expected) in PRAGMAS.items():
        db.execute(f"PRAGMA {name} = {wanted}").fetchall()
        got = db.pragma(name)
        if got != expected:
            raise StoreError(
                "store-settings", f"{path}: {name} is {got!r} after asking for {wanted}; expected {expected!r}"
            )


def _check_log(db: apsw.Connection, path: str) -> None:
    """Compare what SQLite found in the log with what is known of it, before anything is copied out of it: a damaged one is left
    as it is, for who wants to look.
    """
    frames, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    if (damage := log_damage(path, frames)) is not None:
        raise StoreError(DAMAGED, f"{damage}; restore the folder from a copy")


def _make_durable(db: apsw.Connection, log: Path) -> None:
    """Write again what may be in the system's cache only: the log, byte by byte, then the first page and all that the log
    holds, by a checkpoint. The caller owns the store, and SQLite takes no locks on its log.
    """
    if log.is_file() and log.stat().st_size:
        with log.open("r+b") as file:
            content = file.read()
            file.seek(0)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    db.execute(f"PRAGMA user_version = {db.pragma('user_version')}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def check_version(path: str, version: int, known: int) -> None:
    """Refuse a store of a schema that is newer than what is known. Raises `StoreError`."""
    if version > known:
        raise StoreError(
            "store-newer", f"{path} has schema {version}, this program knows up to {known}; use the newer program"
        )


def _migrate(db: apsw.Connection, path: str, known: int) -> None:
    """Bring the file from its version to the one known, step by step. Raises `StoreError` where no step leads on."""
    version = db.pragma("user_version")
    check_version(path, version, known)
    if version == 0 and known == SCHEMA_VERSION and not db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        with db.backup("main", EMPTY, "main") as copy:
            copy.step()
        return
    if db.reserve_bytes("main") != RESERVED_BYTES:  # made before pages had checksums
        db.reserve_bytes("main", RESERVED_BYTES)
        db.execute("VACUUM")
    for reached, step in enumerate(MIGRATIONS[version:known], version + 1):
        try:
            with db:
                db.execute(f"{step}; PRAGMA user_version = {reached}")
        except apsw.SQLError as error:
            raise StoreError(DAMAGED, f"{path} does not have the tables of schema {version}: {error}") from error
    _check_tables(db, path, known)


def _check_tables(db: apsw.Connection, path: str, known: int) -> None:
    """Compare what the file holds with what a new one would. Raises `StoreError` naming what is missing."""
    found = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    missing = [name for name in parts(known) if name not in found]
    if missing:
        raise StoreError(DAMAGED, f"{path}: no {', '.join(missing)} in it, as schema {known} has; restore a copy")
