"""The tables of history replay: workflows, their commands and the outcomes of these. SQL only, joined to the store by `schema`.

A `workflow` row makes an attempt one: `length` commands and `outcomes` accepted so far in this `segment`. It `is_due` when
there are outcomes that no turn was given; `generation` is the lease of its turn, `code` who has or had it, `deaths` how
often in a row a holder went silent. `parked` says why no code so
far could go on, `refused` which versions could not. `command_history` is what the function asked for, in order;
`outcome_history` the order in which what it asked for was accepted, whoever accepted it: that is the trigger's promise.
"""

from __future__ import annotations

WORKFLOW_TABLES = """
CREATE TABLE workflow (
    attempt TEXT PRIMARY KEY, name TEXT NOT NULL, input TEXT NOT NULL, segment INTEGER NOT NULL,
    length INTEGER NOT NULL, outcomes INTEGER NOT NULL, is_due INTEGER NOT NULL,
    generation INTEGER, execution TEXT, code TEXT, deaths INTEGER NOT NULL DEFAULT 0,
    parked TEXT, refused TEXT NOT NULL, ended TEXT, value TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX workflow_due ON workflow (name, attempt) WHERE is_due AND generation IS NULL AND ended IS NULL;
CREATE UNIQUE INDEX workflow_leased ON workflow (generation) WHERE generation IS NOT NULL;

CREATE TABLE command_history (
    attempt TEXT NOT NULL, number INTEGER NOT NULL, branch TEXT NOT NULL, sequence INTEGER NOT NULL, kind TEXT NOT NULL,
    id TEXT NOT NULL, digest TEXT NOT NULL, spec TEXT NOT NULL, PRIMARY KEY (attempt, number), UNIQUE (attempt, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE outcome_history (
    attempt TEXT NOT NULL, number INTEGER NOT NULL, operation TEXT NOT NULL, PRIMARY KEY (attempt, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER operation_outcome AFTER UPDATE OF state ON operation
WHEN NEW.state IN ('succeeded', 'reconciled', 'failed') AND OLD.state NOT IN ('succeeded', 'reconciled', 'failed')
    AND EXISTS (SELECT 1 FROM command_history WHERE attempt = NEW.attempt AND id = NEW.id)
BEGIN
    INSERT INTO outcome_history SELECT attempt, outcomes + 1, NEW.id FROM workflow WHERE attempt = NEW.attempt;
    UPDATE workflow SET outcomes = outcomes + 1, is_due = 1 WHERE attempt = NEW.attempt;
END;
"""

#: The same trigger without lists: SQLite makes a table for each.
OUTCOME_TRIGGER = """
DROP TRIGGER operation_outcome;
CREATE TRIGGER operation_outcome AFTER UPDATE OF state ON operation
WHEN (NEW.state = 'succeeded' OR NEW.state = 'reconciled' OR NEW.state = 'failed')
    AND NOT (OLD.state = 'succeeded' OR OLD.state = 'reconciled' OR OLD.state = 'failed')
    AND EXISTS (SELECT 1 FROM command_history WHERE attempt = NEW.attempt AND id = NEW.id)
BEGIN
    INSERT INTO outcome_history SELECT attempt, outcomes + 1, NEW.id FROM workflow WHERE attempt = NEW.attempt;
    UPDATE workflow SET outcomes = outcomes + 1, is_due = 1 WHERE attempt = NEW.attempt;
END;
"""
