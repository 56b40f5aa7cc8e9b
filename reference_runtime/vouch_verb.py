"""The server's verb by which a person settles what became of an effect; who was refused is on the audit trail, too."""

from __future__ import annotations

from reference_runtime.ids import check_id
from reference_runtime.model import Json, Refusal
from reference_runtime.turn_verbs import TurnVerbs
from reference_runtime.vouching import WORDS


class VouchVerb(TurnVerbs):
    """What a server adds for those who know what the runtime could not find out."""

    async def vouch(self, task: str, id: str, operation: str, word: str, actor: str, nonce: str) -> Json:
        """Take somebody's word for what became of an unresolved effect, and let its task go on."""
        check_id("actor", actor)
        if word not in WORDS:
            raise Refusal("bad-request", f"vouch: word {word!r:.80}; there are {', '.join(WORDS)}")
        with self.store.auditing_refusal(task, actor, f"command {id}", operation):
            answer = self.store.vouch(task, id, operation, word, actor, nonce)
        self.notify()
        return answer
