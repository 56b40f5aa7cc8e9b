"""The tables of what is told, spent, owned and kept beside the operations: SQL only, joined to the store by `schema`.

Numbers are counted for each task by itself and without gaps, in the transaction that commits what they count; keys begin
with the task, so that reading one task never scans another's rows.
"""

from __future__ import annotations

#: What an operation is that has not come to its end, as a condition that is the same wherever the index of these is to help.
PENDING = "(state = 'planned' OR state = 'dispatched' OR state = 'unknown')"

#: The kinds that wait for something from outside once they are open, as a condition; as above.
WAITS = "(kind = 'wait' OR kind = 'sleep' OR kind = 'approve')"

#: The journal's transitions, also read by the event cursors. `operation` is empty for the run itself.
TRANSITIONS_TABLE = """
CREATE TABLE transition (
    task TEXT NOT NULL, sequence INTEGER NOT NULL, attempt TEXT NOT NULL, operation TEXT NOT NULL,
    origin TEXT, state TEXT NOT NULL, move TEXT NOT NULL, reason TEXT, generation INTEGER,
    version INTEGER, at_ns INTEGER NOT NULL, PRIMARY KEY (task, sequence)
) STRICT, WITHOUT ROWID;

-- rejected words are shown by task, too
CREATE INDEX evidence_of ON evidence (attempt);

-- a result is prepared when its run ends, and delivered when somebody has been given it
CREATE TABLE delivery (
    task TEXT PRIMARY KEY, attempt TEXT NOT NULL, state TEXT NOT NULL, at_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

#: Who did what under which authority. The triggers are the promise; `Audit.forget_audit` alone lifts one for a moment.
FORBID_DELETE = """
CREATE TRIGGER audit_keeps BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END
"""
AUDIT_TABLE = f"""
CREATE TABLE audit (
    task TEXT NOT NULL, sequence INTEGER NOT NULL, actor TEXT NOT NULL, authority TEXT NOT NULL, action TEXT NOT NULL,
    target TEXT NOT NULL, at_ns INTEGER NOT NULL, detail TEXT NOT NULL, PRIMARY KEY (task, sequence)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END;
{FORBID_DELETE};
"""

#: A hold is what one operation's current invocation, or one child, has set aside; `unknown` ones add up.
BUDGET_TABLES = """
CREATE TABLE allowance (
    task TEXT NOT NULL, kind TEXT NOT NULL, allowance INTEGER NOT NULL, reserve INTEGER NOT NULL,
    consumed INTEGER NOT NULL, reserved INTEGER NOT NULL, unknown INTEGER NOT NULL, PRIMARY KEY (task, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE hold (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, account TEXT NOT NULL,
    amount INTEGER NOT NULL, PRIMARY KEY (attempt, operation, kind, state)
) STRICT, WITHOUT ROWID;
-- absolute, by the wall clock, so that neither a retry nor a restart renews it
CREATE TABLE deadline (task TEXT PRIMARY KEY, at_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- would be given out, were it not for what others hold of its account at the moment
CREATE TABLE parked (
    account TEXT NOT NULL, attempt TEXT NOT NULL, operation TEXT NOT NULL, PRIMARY KEY (account, attempt, operation)
) STRICT, WITHOUT ROWID;
"""

CHILD_TABLE = """
CREATE TABLE child (
    task TEXT PRIMARY KEY, parent TEXT NOT NULL, attempt TEXT NOT NULL, operation TEXT NOT NULL,
    owner TEXT NOT NULL, is_accepted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX child_of ON child (parent, task);
"""

#: `upload`: content that may be stored, known before its first byte leaves. `artifact`: accepted, and never changed.
ARTIFACT_TABLES = """
CREATE TABLE upload (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL,
    location TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (attempt, operation)
) STRICT, WITHOUT ROWID;
CREATE TABLE artifact (
    task TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
    operation TEXT NOT NULL, location TEXT NOT NULL, at_ns INTEGER NOT NULL, PRIMARY KEY (task, name, version)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER artifact_stays BEFORE UPDATE ON artifact BEGIN SELECT raise(ABORT, 'an accepted artifact stays'); END;
CREATE TRIGGER artifact_keeps BEFORE DELETE ON artifact BEGIN SELECT raise(ABORT, 'an accepted artifact stays'); END;
CREATE TABLE verdict (
    attempt TEXT NOT NULL, operation TEXT NOT NULL, generation INTEGER NOT NULL, checker TEXT NOT NULL,
    subject TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, outcome TEXT NOT NULL, at_ns INTEGER NOT NULL,
    PRIMARY KEY (attempt, operation, generation)
) STRICT, WITHOUT ROWID;
"""

#: `code`: by which the work of an attempt was written; `schema`: of the store it was admitted to; `stranded`: why nobody who is
#: there may go on with it. `execution.code` is what a worker said of itself, as JSON.
CODE_TABLES = """
ALTER TABLE attempt ADD COLUMN code TEXT;
ALTER TABLE attempt ADD COLUMN schema INTEGER;
ALTER TABLE attempt ADD COLUMN stranded TEXT;
CREATE INDEX attempt_code ON attempt (code) WHERE outcome IS NULL AND code IS NOT NULL;
CREATE INDEX attempt_stranded ON attempt (id) WHERE stranded IS NOT NULL;
CREATE INDEX attempt_open ON attempt (id) WHERE outcome IS NULL;
CREATE TABLE execution (id TEXT PRIMARY KEY, code TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

RECORDS = TRANSITIONS_TABLE + AUDIT_TABLE + BUDGET_TABLES + CHILD_TABLE + ARTIFACT_TABLES + CODE_TABLES
