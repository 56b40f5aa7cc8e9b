"""What a step asks of SQLite: no statement of it makes a table of its own, and there are no more of them than it needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import apsw
import pytest

from reference_runtime import Store, views
from reference_runtime.model import Ticket
from reference_runtime.schema import SCHEMA_VERSION
from tests.runtime_rig import call, finish, in_hand, par, plan, run_out, seq, states, under, wait

T = TypeVar("T")
#: What SQLite makes for a list of values, for RETURNING, for an order it has no index for, or for what is read of the table
#: that is written to.
MADE = {"OpenEphemeral", "OpenAutoindex", "SorterOpen"}
#: Between BEGIN and COMMIT, as a report of a chain settles one call and leases the next.
STATEMENTS_MAX = 22


@pytest.fixture
def store(tmp_path):
    opened = Store.open(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def turn(store: Store, ticket: Ticket) -> list[str]:
    """Report a call, as a worker does; the statements of that, as they came."""
    said: list[str] = []
    store.db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda traced: said.append(traced["sql"]))
    rejected, _ = store.turn(under(ticket), "succeeded", {"nonce": "n"}, "", execution="w", limit=1)
    store.db.trace_v2(0, None)
    assert rejected is None
    return said


def made_by(store: Store, sql: str) -> list[str]:
    """What a statement would make beside the store's tables. A list that may be missing is made when it is there only."""
    numbered = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    bindings = [None] * (max(numbered, default=0) + len(re.findall(r"\?(?!\d)", sql)))
    found = [row[1] for row in store.db.execute(f"EXPLAIN {sql}", bindings) if row[1] in MADE]
    return found[sql.count("json_each") :]


def is_asked(sql: str) -> bool:
    """Whether it is a statement of the store's own, and not one of a trigger (told as a comment) or the transaction's."""
    return not sql.startswith(("--", "TRIGGER", "BEGIN", "COMMIT", "INSERT INTO outcome_history", "UPDATE workflow"))


def undo(store: Store, doing: Callable[[], T]) -> T:
    """Do something in a transaction that is undone; what it came to."""
    done = list[T]()

    def undone() -> None:
        with store.together():
            done.append(doing())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    return done[0]


@pytest.mark.parametrize("shape", [seq, par])
def test_no_statement_of_a_step_makes_a_table(store, shape):
    """A table of a statement is a file of pages that is made, filled and thrown away, each time: dearer than the statement."""
    store.submit("t", plan(shape(*(call(f"s{number}") for number in range(4)))))
    tickets: dict[str, Ticket] = in_hand(store)
    first, *_ = tickets.values()
    said = [sql for sql in turn(store, first) if is_asked(sql)]
    assert len(said) > STATEMENTS_MAX // 3
    assert {sql: found for sql in said if (found := made_by(store, sql))} == {}


def test_a_step_of_a_chain_has_few_statements(store):
    """Once its task is under way, and beside the two that make it one transaction."""
    store.submit("t", plan(*(call(f"s{number}") for number in range(4))))
    (first,) = in_hand(store).values()
    turn(store, first)
    said = turn(store, store._ticket(store._operation("t.1", "s1")))
    assert len([sql for sql in said if is_asked(sql)]) <= STATEMENTS_MAX


def test_generations_that_were_taken_and_not_given_are_given_to_nobody(store, tmp_path):
    """They are taken by the handful: the next server begins behind them, and one that undoes a transaction never goes back."""
    store.submit("t", plan(call("a"), call("b"), call("c")))
    finish(store)
    given = [generation for (generation,) in store._rows("SELECT generation FROM invocation")]
    undone = undo(store, lambda: [lease.generation for lease in store.claim("w", [], 1)])
    finish(store)
    store.close()
    again = Store.open(str(tmp_path / "s.db"))
    finish(again)
    all_given = [generation for (generation,) in again._rows("SELECT generation FROM invocation ORDER BY started_ns")]
    assert (len(all_given), all_given, given) == (3, sorted(set(all_given)), all_given[:1])
    assert all_given[-1] > max(undone)
    assert all_given[-1] > all_given[-2] + 1, "it did not begin behind what was taken"
    again.close()


def test_lines_are_numbered_on_after_what_was_undone(store):
    """Numbers of the log that a transaction gave out and did not keep are given out again: readers find no gap."""
    store.submit("t", plan(call("a"), call("b")))
    undo(store, lambda: finish(store))
    run_out(store)
    numbers = [number for (number,) in store._rows("SELECT sequence FROM transition ORDER BY sequence")]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("known", range(2, SCHEMA_VERSION))
def test_a_store_of_an_earlier_version_goes_on_where_it_stood(tmp_path, known):
    """Its indexes are made anew, and what they show is what they showed."""
    path = str(tmp_path / "s.db")
    before = Store.open(path, known=known)
    before.submit("t", plan(call("a"), call("b"), wait("w", "go")))
    finish(before)
    before.signal("t", "s1", "go", {"nonce": "n-w"})
    assert before.db.pragma("user_version") == known
    before.close()
    store = Store.open(path)
    assert (store.db.pragma("user_version"), store.db.execute("PRAGMA integrity_check").fetchall()) == (
        SCHEMA_VERSION,
        [("ok",)],
    )
    assert states(views.status(store, "t")) == {"a": "succeeded", "b": "planned", "w": "planned"}
    assert finish(store) is None
    status = views.status(store, "t")
    assert (status["state"], status["result"]) == ("done", {"a": "n-a", "b": "n-b", "w": "n-w"})
    store.close()
