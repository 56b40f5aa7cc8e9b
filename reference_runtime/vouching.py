"""Vouching: a person settles by hand what became of an effect that nobody could establish.

An effect is *unresolved* once the runtime has given it up: its receiver can neither be asked nor be sent the same again. Who
has looked into it elsewhere (the receiver's own books, a telephone) says which it was. *Happened* is what a receiver's late
word would have said; *never happened* is a definite no, as the receiver might have given. The task goes on from either.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from reference_runtime.control import TOLD
from reference_runtime.model import Json, Refusal
from reference_runtime.rows import Operation
from reference_runtime.unparking import Unparking

Word: TypeAlias = Literal["happened", "never-happened"]
WORDS: tuple[Word, ...] = get_args(Word)


class Vouching(Unparking):
    """Taking a person's word for what became of an effect."""

    def vouch(self, task: str, id_: str, operation: str, word: Word, actor: str, nonce: str) -> Json:
        """Settle an unresolved effect by the word of `actor`; `nonce` is what it is known by, where it happened.

        A repeat has its first answer. Raises `Refusal`: `not-unresolved` where nothing is unknown, or the runtime is still
        finding out; `cannot-settle` where this word says nothing that could be gone on from; `unknown-task`, `conflict`.
        """
        said = {"operation": operation, "word": word, "actor": actor, "nonce": nonce}
        with self._transaction():
            known = self.known_command(task, id_, "settle", said)
            if known is not None:
                return known
            op = self._unresolved_operation(task, operation, word)
            if word == "happened":
                self.take_notice(op, nonce, f"vouched: {actor} says that it happened")
            else:
                self._disown(op, f"vouched: {actor} says that it never happened")
            self._conclude(op.attempt)
            return self.keep_command(task, id_, "settle", said, {"disposition": "settled", "word": word})

    def _disown(self, op: Operation, reason: str) -> None:
        """Take an effect for one that never happened, as if its receiver had refused it."""
        self._move(op, "disown", op.generation, op.version, None, reason)
        self._refused(op, reason)

    def _unresolved_operation(self, task: str, operation: str, word: Word) -> Operation:
        """The operation that a word is about. Raises `Refusal` where the word cannot count."""
        attempt = self._current_attempt(task)
        unresolved = self._operations("WHERE o.attempt = ? AND o.state = 'unresolved' ORDER BY o.position", attempt)
        found = next((op for op in unresolved if op.id == operation), None)
        if found is None:
            there = ", ".join(op.id for op in unresolved) or "none"
            raise Refusal("not-unresolved", f"{self._stands(attempt, operation)}; unresolved: {there}")
        if found.kind not in (*TOLD, "child"):
            raise Refusal(
                "cannot-settle", f"{operation!r} is a {found.kind}, which is found by looking and not by anybody's word"
            )
        if found.kind == "compensate" and word == "never-happened":
            raise Refusal(
                "cannot-settle",
                f"{operation!r} undoes {found.subject!r}, which would stand as it is; make up for it by hand, and say happened",
            )
        return found

    def _stands(self, attempt: str, operation: str) -> str:
        """How an operation stands that is not unresolved, in words."""
        state = self._value("SELECT state FROM operation WHERE attempt = ? AND id = ?", attempt, operation)
        if state is None:
            return f"there is no operation {operation!r:.80}"
        more = ", and the runtime is still finding out" if state in ("dispatched", "unknown") else ""
        return f"operation {operation!r} is {state}{more}"
