"""What goes wrong between hosts, apart from cut links: clogged ones, little bandwidth, lost segments, slow readers, names
that do not resolve. Drawn from the tape by the ratios of `NetworkOptions`, or asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from simkit._storage.faults import NEVER, Ratio
from simkit.errors import wrong

if TYPE_CHECKING:
    from simkit._network.ether import Ether, NetworkOptions
    from simkit.tape import Stream

Strike = Literal["break", "stall", "syn-loss", "dns", "datagram-loss", "datagram-duplicate"]
#: The option that says how often each is drawn.
STRIKES: dict[Strike, str] = {
    "break": "breaks",
    "stall": "stalls",
    "syn-loss": "syn_losses",
    "dns": "dns_failures",
    "datagram-loss": "datagram_losses",
    "datagram-duplicate": "datagram_duplicates",
}
_NS = 1_000_000_000


@attrs.define
class _Asked:
    strike: Strike
    source: str | None
    target: str | None
    times: int


class Weather:
    """The faults of one network that are due, and where."""

    def __init__(self, network: Ether, stream: Stream) -> None:
        #: Whether an open tape may strike.
        self.open = stream.open
        #: Whether anything here may happen; nothing is asked for while it is fair.
        self.foul = stream.open
        #: Whether a segment may arrive later than its latency says.
        self.delays = stream.open
        #: Whether messages meet nothing but latency, and loss and doubling as drawn (see `roads`).
        self.plain = not stream.open
        #: Places whose programs read slowly: at most so many bytes, after a pause of so long.
        self.slow_readers: dict[str, tuple[int, int]] = {}
        #: Places on whose links no drawn fault strikes.
        self.spared: set[str] = set()
        #: Links that let nothing through until a time.
        self.clogged: dict[tuple[str, str], int] = {}
        self._network = network
        self._stream = stream
        self._asked: list[_Asked] = []
        self._ratios: dict[Strike, Ratio] = dict.fromkeys(STRIKES, NEVER)
        self._free_ns: dict[tuple[str, str], int] = {}

    def ask(self, strike: Strike, source: str | None, target: str | None, times: int) -> None:
        """Let `strike` happen the next `times` that it can on this link."""
        if strike not in STRIKES:
            raise wrong("Network.strike_next: what", strike, f"one of {', '.join(STRIKES)}")
        self._asked.append(_Asked(strike, source, target, times))
        self.foul = self.delays = True
        self.plain = False

    def judge(self, options: NetworkOptions) -> None:
        """Find out whether anything may happen."""
        self._ratios = {strike: getattr(options, name) for strike, name in STRIKES.items()}
        asked = bool(self.open or self._asked)
        late = options.clogs[0] > 0 or options.stalls[0] > 0 or options.bytes_per_s is not None
        self.delays = asked or late
        self.plain = not self.delays
        self.foul = asked or late or any(num > 0 for num, _ in self._ratios.values())

    def calm(self) -> None:
        """Forget what was asked for, and let everybody read as fast as they like."""
        self.open = False
        self._asked.clear()
        self.slow_readers.clear()

    def strikes(self, strike: Strike, source: str, target: str) -> bool:
        """Whether `strike` is due on this link; counted."""
        num, den = self._ratios[strike]
        if num <= 0 and not self.open and not self._asked:
            return False
        for asked in self._asked:
            if asked.strike == strike and asked.source in {None, source} and asked.target in {None, target}:
                asked.times -= 1
                if not asked.times:
                    self._asked.remove(asked)
                self._network.count(strike, source, target)
                return True
        if self.spares(source, target):
            return False
        if (num > 0 or self.open) and self._stream.chance(f"{strike}:{source}>{target}", num, den):
            self._network.count(strike, source, target)
            return True
        return False

    def spares(self, source: str, target: str) -> bool:
        """Whether drawn faults leave this link alone."""
        return bool(self.spared) and (source in self.spared or target in self.spared)

    def delay_ns(self, source: str, target: str, size: int) -> int:
        """By how much a segment of `size` bytes arrives later; may clog the link besides."""
        options = self._network.options
        num, den = options.clogs
        if (
            (num > 0 or self.open)
            and not self.spares(source, target)
            and self._stream.chance(f"clog:{source}>{target}", num, den)
        ):
            self._network.clog(source, target, options.clog_ns, one_way=True)
        delay_ns = options.stall_ns if size and self.strikes("stall", source, target) else 0
        if options.bytes_per_s is not None and size:
            now_ns = self._network.now_ns
            begun_ns = max(now_ns, self._free_ns.get((source, target), 0))
            free_ns = self._free_ns[source, target] = begun_ns + size * _NS // options.bytes_per_s
            delay_ns += free_ns - now_ns
        return delay_ns
