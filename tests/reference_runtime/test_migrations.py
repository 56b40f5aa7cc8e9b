"""Files of earlier versions: opened, brought up to date, and nothing in them lost."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest

from reference_runtime import Policy, Store, StoreError, views
from reference_runtime.integrity import checked_vfs
from reference_runtime.schema import MIGRATIONS, PARTS, SCHEMA_VERSION
from tests.runtime_rig import finish, states

#: The tables of version 1, as its program made them.
VERSION_1 = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE task (
    id TEXT PRIMARY KEY, plan TEXT NOT NULL, digest TEXT NOT NULL, attempt TEXT NOT NULL,
    version INTEGER NOT NULL, submitted_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE attempt (
    id TEXT PRIMARY KEY, task TEXT NOT NULL REFERENCES task(id), number INTEGER NOT NULL,
    condition TEXT NOT NULL, outcome TEXT, reason TEXT, execution TEXT, UNIQUE (task, number)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE event (
    sequence INTEGER PRIMARY KEY, task TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
    received_ns INTEGER NOT NULL, consumer TEXT, UNIQUE (task, id)
) STRICT;
CREATE INDEX event_free ON event (task, name, sequence) WHERE consumer IS NULL;
CREATE TABLE evidence (
    sequence INTEGER PRIMARY KEY, attempt TEXT NOT NULL, operation TEXT NOT NULL, generation INTEGER NOT NULL,
    report TEXT NOT NULL, detail TEXT NOT NULL, at_ns INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
"""
#: A task of version 1 in the middle: `a` accepted, `b` claimable, `w` not open yet and its signal there already.
IN_THE_MIDDLE = """
INSERT INTO counter VALUES ('generation', 1), ('execution', 1);
INSERT INTO task VALUES ('t', '{}', 'd', 't.1', 3, 5);
INSERT INTO attempt VALUES ('t.1', 't', 1, 'runnable', NULL, NULL, 'w#1');
INSERT INTO operation (attempt, id, position, kind, tool, semantics, spec, signal, state, tries, generation, version,
    key, request, answer, opened_ns, due_ns) VALUES
    ('t.1', 'a', 0, 'call', 'ledger', 'keyed', '{"params":{},"carries":[],"script":[],"signal":"","ns":0}', '', 'succeeded',
     1, 1, 3, 't.1:a', '{"params":{},"carries":{},"script":[]}', '{"nonce":"n-a"}', 5, NULL),
    ('t.1', 'b', 1, 'call', 'ledger', 'keyed', '{"params":{},"carries":["a"],"script":[],"signal":"","ns":0}', '', 'planned',
     0, 0, 0, NULL, NULL, NULL, 6, 6),
    ('t.1', 'w', 2, 'wait', '', NULL, '{"params":{},"carries":[],"script":[],"signal":"go","ns":0}', 'go', 'planned',
     0, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO dependency VALUES ('t.1', 'a', 'b'), ('t.1', 'b', 'w');
INSERT INTO invocation VALUES (1, 't.1', 'a', 'call', 't.1:a', 'x', 'w#1', 5, 'succeeded', '{"nonce":"n-a"}', 6);
INSERT INTO event VALUES (1, 't', 's1', 'go', '{"nonce":"n-w"}', 5, NULL);
"""


def made(path: Path | str, script: str) -> str:
    """A file made by running `script`."""
    db = apsw.Connection(str(path), vfs=checked_vfs())
    db.execute(script)
    db.close()
    return str(path)


def test_a_store_of_version_1_goes_on_where_it_stood(tmp_path):
    """What was accepted stays, what was claimable is claimed, and what waited for it opens after it."""
    store = Store.open(made(tmp_path / "s.db", VERSION_1 + IN_THE_MIDDLE))
    assert store.db.pragma("user_version") == SCHEMA_VERSION
    assert states(views.status(store, "t")) == {"a": "succeeded", "b": "planned", "w": "planned"}
    assert finish(store) is None
    status = views.status(store, "t")
    assert (status["state"], status["result"]) == ("done", {"a": "n-a", "b": "n-b", "w": "n-w"})
    assert store._value("SELECT max(generation) FROM invocation") == 2


def test_what_was_sent_by_version_1_is_as_old_as_it_is(tmp_path):
    """When it was sent first was no column then: a receiver that has forgotten its key is not sent it again."""
    days_ago_ns = time.time_ns() - 2 * Policy().key_lifetime_ns
    sent = f"""
        UPDATE operation SET state = 'unknown', remedy = 'repeat', tries = 1, generation = 2, version = 3, key = 't.1:b',
            request = '{{"params":{{}},"carries":{{}},"script":[]}}' WHERE id = 'b';
        UPDATE counter SET value = 2 WHERE name = 'generation';
        INSERT INTO invocation VALUES (2, 't.1', 'b', 'call', 't.1:b', 'x', 'w#1', {days_ago_ns}, 'unknown', '', 5);
    """
    store = Store.open(made(tmp_path / "s.db", VERSION_1 + IN_THE_MIDDLE + sent))
    assert store.claim("w", [], 1) == []
    (told,) = (one for one in views.status(store, "t")["operations"] if one["id"] == "b")
    assert (told["state"], told["detail"]) == ("unresolved", "key-expired: before try 2")


def test_the_first_step_makes_what_version_1_was():
    """The list begins with the version-1 tables themselves, so that a new file and an old one have one history."""
    old, new = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    old.execute(VERSION_1)
    new.execute(MIGRATIONS[0])
    columns = "SELECT m.name, c.name, c.type FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c ORDER BY 1, c.cid"
    assert old.execute(columns).fetchall() == new.execute(columns).fetchall()


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path):
    """A store of version 1 that lacks a table is refused by name, and nothing of it was changed."""
    path = made(tmp_path / "s.db", f"{MIGRATIONS[0]}; DROP TABLE event; PRAGMA user_version = 1")
    db = apsw.Connection(path)
    before = db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    db.close()
    with pytest.raises(StoreError, match=r"store-damaged: .*schema 1"):
        Store.open(path)
    db = apsw.Connection(path)
    assert db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall() == before
    assert db.pragma("user_version") == 1


def test_a_newer_file_is_refused_with_both_versions(tmp_path):
    """Nobody guesses what a later program meant."""
    path = made(tmp_path / "s.db", f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match=rf"store-newer: .*schema {SCHEMA_VERSION + 1}.* {SCHEMA_VERSION}"):
        Store.open(path)


@pytest.mark.parametrize("lost", ["guard", "approval", "dependency"])
def test_a_lost_table_is_named(tmp_path, lost):
    """A store without one of its tables is refused, and the refusal says which."""
    path = str(tmp_path / "s.db")
    Store.open(path).close()
    made(path, f"DROP TABLE {lost}")
    with pytest.raises(StoreError, match=rf"store-damaged: .*no {lost}"):
        Store.open(path)


def test_every_part_has_a_name_of_its_own():
    """Tables, indexes and triggers are found by name, so no two share one."""
    assert len(PARTS) == len(set(PARTS)) > 20
