"""What to see on the way of a simulated replay."""

from __future__ import annotations

import attrs

from simkit.trace import Sink


@attrs.frozen
class Look:
    """Stop before event `until`, open the debugger before event `debug_at`, write every event to `trace`."""

    until: int | None = None
    debug_at: int | None = None
    trace: Sink | None = attrs.field(default=None, repr=False)

    @property
    def asks(self) -> str:
        """The option that asks for something a run on real processes cannot give; empty for none."""
        asked = {"--until": self.until, "--break": self.debug_at, "--trace": self.trace}
        return next((option for option, given in asked.items() if given is not None), "")


NOTHING = Look()
