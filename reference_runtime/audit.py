"""The audit trail: who did what, under which authority, to what, and when. For people; nothing here decides by it.

The journal says what a task should do next and keeps the state of every effect; the audit trail says who is answerable.
One event may leave a line in both, but neither is made from the other, and the store works the same without this one.
The file itself refuses to change or to delete a line (triggers); only `forget_audit` can, and it takes all lines at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from reference_runtime.model import Grant, Refusal
from reference_runtime.records import FORBID_DELETE
from reference_runtime.rows import Parts

#: A setting of the engine's environment that asks for the trail to be deleted before anything else is done.
FORGET = "SIMKIT_FORGET"


class Audit(Parts):
    """Appending to the trail, in the transaction of what it tells about."""

    def audit(self, task: str, actor: str, authority: str, action: str, target: str, detail: str = "") -> None:
        """One line: `actor` did `action` to `target` (an operation, or the task itself) of `task` under `authority`.

        Actions are the verbs submit, signal, decide, cancel, pause, unpause, retry, claim and settle, and refuse for what was
        not done; an authority is the id or the lease under which it was asked for.
        """
        self.db.execute(
            "INSERT INTO audit VALUES"
            " (?1, (SELECT ifnull(max(sequence), 0) + 1 FROM audit WHERE task = ?1), ?2, ?3, ?4, ?5, ?6, ?7)",
            (task, actor, authority, action, target, time.time_ns(), detail),
        )

    def _audit_holder(self, task: str, grant: Grant, action: str, detail: str) -> None:
        """One line about what the holder of a lease did, or was refused."""
        made = self._invocation(grant.generation)
        actor = made.execution if made else f"holder of lease {grant.generation}"  # named where it was claimed
        self.audit(task, actor, f"lease {grant.generation}", action, grant.operation, detail)

    @contextmanager
    def auditing_refusal(self, task: str, actor: str, authority: str, target: str) -> Iterator[None]:
        """One line about what is asked for in this block and refused, in a transaction of its own: the one it was asked in is
        undone. None where nobody knows the task.
        """
        try:
            yield
        except Refusal as no:
            if no.code != "unknown-task":
                with self._transaction():
                    self.audit(task, actor, authority, "refuse", target, no.code)
            raise

    def forget_audit(self) -> int:
        """Delete the whole trail, on the order of whoever runs the engine; how many lines there were."""
        with self._transaction():
            lines = int(self._value("SELECT count(*) FROM audit"))
            self.db.execute("DROP TRIGGER audit_keeps; DELETE FROM audit")
            self.db.execute(FORBID_DELETE)
        return lines

    def forget_when_told(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment asked for the trail to be forgotten, and it was."""
        if "audit" not in environ.get(FORGET, "").split(","):
            return False
        self.forget_audit()
        return True
