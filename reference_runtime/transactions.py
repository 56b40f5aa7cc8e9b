"""Transactions: all or nothing, durable at their end; and one that requests which are ready at once share.

What a step waits for longest is the sync of its commit. While a transaction is shared, every other one is a part of it, undone
alone when it fails. What is read meanwhile may not be durable yet, so nobody may be told of anything before the commit
(`is_shared`, `afterwards`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import apsw

#: What a transaction inside another one adds to it: nothing.
_PART: AbstractContextManager[None] = nullcontext()


class Transactions(ABC):
    """Beginning, sharing, committing and undoing."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self._touched: dict[str, None] = {}  # attempts of which the transaction under way makes a new version
        self._is_shared = self._is_inside = False
        self._afterwards: list[Callable[[], object]] = []

    @abstractmethod
    def _make_version(self, attempt: str) -> None:
        """Count one version more of an attempt's task, as the last thing that a transaction does."""

    @abstractmethod
    def _begin_anew(self) -> None:
        """Forget what was read in a transaction that is over."""

    @abstractmethod
    def _forget_all(self) -> None:
        """Read everything anew: a part of this transaction was undone, or all of it."""

    def _transaction(self) -> AbstractContextManager[None]:
        """All or nothing, durable at its end; inside another one it is a part of that, and so it is of one that is shared."""
        if self._is_inside or (self.db.in_transaction and not self._is_shared):
            return _PART
        return self.sharing() if self._is_shared else self._outermost()

    def is_shared(self) -> bool:
        """Whether something was done that is not durable yet."""
        return self._is_shared

    def together(self) -> AbstractContextManager[None]:
        """One transaction for whatever is done inside: all or nothing, durable at its end."""
        return self._transaction()

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """All or nothing of what is done inside, as a part of a transaction that others join, until `commit_shared`. What is
        read after it is as if it were a transaction of its own, but for the sync.
        """
        if not self._is_shared:
            self._open_transaction()
            self._is_shared = True
        self._begin_anew()  # what looked on since the last part remembers what it read, as it was inside a transaction
        self._is_inside = True
        try:
            with self._part():
                yield
                self._make_versions()
        finally:
            self._is_inside = False
            self._begin_anew()
            self._touched.clear()

    def afterwards(self, then: Callable[[], object]) -> None:
        """Do something once what was done so far is durable: at once where nothing is shared."""
        if self._is_shared:
            self._afterwards.append(then)
        else:
            then()

    def commit_shared(self) -> None:
        """Make what is shared durable, and tell those who wait for that; nothing where nothing is.

        Where it fails, or SQLite has undone it all by itself, nobody is told of it: whoever met the error ends the server.
        """
        if self._is_shared and self.db.in_transaction:
            self._commit_transaction()
            self._is_shared = False
            done, self._afterwards = self._afterwards, []
            for then in done:
                then()

    def abandon_shared(self) -> None:
        """Undo what is shared: nobody was told of it yet."""
        if self._is_shared:
            self._is_shared = False
            self._afterwards.clear()
            self._undo_transaction()

    @contextmanager
    def _part(self) -> Iterator[None]:
        """All or nothing of what is done inside, within a transaction that goes on."""
        self.db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self._forget_all()
            if self.db.in_transaction:  # as in `_undo_transaction`: what it raises then would hide why
                self.db.execute("ROLLBACK TO part")
                self.db.execute("RELEASE part")
            raise
        self.db.execute("RELEASE part")

    @contextmanager
    def _outermost(self) -> Iterator[None]:
        self._open_transaction()
        try:
            yield
            self._make_versions()
            self._begin_anew()
            self._touched.clear()
            self._commit_transaction()
        except BaseException:  # of the commit, too: what came after would be a part of this, and told
            self._undo_transaction()
            raise

    def _open_transaction(self) -> None:
        self._begin_anew()
        self._touched.clear()
        self.db.execute("BEGIN IMMEDIATE", can_cache=False)  # quickly read; what is kept in its place is not

    def _make_versions(self) -> None:
        for attempt in self._touched:
            self._make_version(attempt)

    def _commit_transaction(self) -> None:
        try:
            self.db.execute("COMMIT", can_cache=False)
        except BaseException:
            self._forget_all()
            raise

    def _undo_transaction(self) -> None:
        self._forget_all()
        self._touched.clear()
        if self.db.in_transaction:  # SQLite has undone it itself where there was no room
            self.db.execute("ROLLBACK")
