"""The tape: independent streams, sparse departures, replay without the seed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkit.errors import SimkitError
from simkit.tape import Asked, Journal, Tape, rows

SITES = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", "z"]), st.integers(2, 9)), max_size=40)


def draws(tape: Tape, sites: list[tuple[str, str, int]]) -> list[int]:
    """Choose at every site in order."""
    return [tape.stream(label).choose(key, n) for label, key, n in sites]


@given(seed=st.integers(0, 2**64), sites=SITES)
def test_departures_alone_repeat_every_choice(seed: int, sites: list[tuple[str, str, int]]) -> None:
    """A tape made of the departures of another, through JSON and without its seed, chooses the same."""
    first = Tape.from_seed(seed)
    chosen = draws(first, sites)
    second = Tape.from_departures(json.loads(json.dumps(rows(first.departures()))))
    assert draws(second, sites) == chosen
    assert second.departures() == first.departures()
    assert second.unused() == {}


@given(seed=st.integers(0, 2**64), sites=SITES, gone=st.sampled_from([("a", "x"), ("b", "y")]))
def test_a_site_less_shifts_no_other(seed: int, sites: list[tuple[str, str, int]], gone: tuple[str, str]) -> None:
    """Choices are named: leaving out all draws at one site leaves every other draw as it was."""
    full = dict(zip(range(len(sites)), draws(Tape.from_seed(seed), sites), strict=True))
    left = [(index, site) for index, site in enumerate(sites) if site[:2] != gone]
    assert draws(Tape.from_seed(seed), [site for _, site in left]) == [full[index] for index, _ in left]


@given(
    seed=st.integers(0, 2**64), weights=st.lists(st.integers(0, 5), min_size=1, max_size=5), first=st.integers(0, 20)
)
def test_a_chooser_chooses_as_its_stream(seed: int, weights: list[int], first: int) -> None:
    """Drawn, replayed, and in turn with the stream itself: the same values, departures and counts."""
    given_weights = (*weights, 1)

    def chosen(tape: Tape, *, chooser: bool) -> tuple[list[int], Asked]:
        stream = tape.stream("s")
        before = [stream.choose("k", len(given_weights), given_weights) for _ in range(first)]
        if chooser:
            choose = stream.chooser("k", given_weights)
            return [*before, *(choose() for _ in range(20))], tape.asked()
        return [*before, *(stream.choose("k", len(given_weights), given_weights) for _ in range(20))], tape.asked()

    one, other = Tape.from_seed(seed), Tape.from_seed(seed)
    assert chosen(one, chooser=True) == chosen(other, chooser=False)
    assert one.departures() == other.departures()
    assert chosen(Tape.from_departures(one.departures()), chooser=True) == chosen(Tape.from_seed(seed), chooser=True)


def test_only_departures_are_recorded() -> None:
    """A choice of 0 leaves nothing on the tape."""
    tape = Tape.from_seed(7)
    chosen = [tape.stream("s").choose("k", 3) for _ in range(60)]
    assert tape.departures() == {("s", "k", index): value for index, value in enumerate(chosen) if value}
    assert 0 < len(tape.departures()) < 60


def test_weights_are_integer_ratios() -> None:
    """A weight of 0 is never drawn, and the others come about as often as they say."""
    stream = Tape.from_seed(1).stream("s")
    drawn = [stream.choose("k", 3, (8, 0, 2)) for _ in range(2000)]
    assert drawn.count(1) == 0
    assert 300 < drawn.count(2) < 500


def test_chance_is_certain_at_its_ends() -> None:
    """0 in n never, n in n always, without a record."""
    tape = Tape.from_seed(1)
    assert not any(tape.stream("s").chance("never", 0, 5) for _ in range(50))
    assert all(tape.stream("s").chance("always", 5, 5) for _ in range(50))
    assert tape.departures() == {}


@pytest.mark.parametrize("weights", [(1,), (0, 0), (1, -1)])
def test_impossible_weights_are_refused(weights: tuple[int, ...]) -> None:
    """Weights that cannot be drawn from are a programming error that says so."""
    with pytest.raises(ValueError, match="weights"):
        Tape.from_seed(1).stream("s").choose("k", 2, weights)


def test_bytes_follow_the_entropy_and_are_not_recorded() -> None:
    """Meaningless bytes are the same for the same entropy, others for another, and no departure."""
    tape, same, other = Tape.from_seed(5), Tape.from_departures({}, entropy=5), Tape.from_seed(6)
    first = [tape.stream("s").randbytes("nonce", 16) for _ in range(3)]
    assert [same.stream("s").randbytes("nonce", 16) for _ in range(3)] == first
    assert other.stream("s").randbytes("nonce", 16) not in first
    assert len(set(first)) == 3
    assert tape.departures() == {}


def test_a_recorded_choice_out_of_range_counts_as_nothing_special() -> None:
    """When the code has fewer choices than the tape, the default is taken and the departure shows as unused."""
    tape = Tape.from_departures({("s", "k", 0): 5, ("s", "k", 1): 1, ("gone", "k", 0): 2})
    assert [tape.stream("s").choose("k", 3) for _ in range(3)] == [0, 1, 0]
    assert tape.unused() == {("s", "k", 0): 5, ("gone", "k", 0): 2}


@pytest.mark.parametrize("row", [["s", "k", 0], ["s", "k", -1, 1], ["s", "k", 0, 0], [1, "k", 0, 1], "skx1"])
def test_a_malformed_departure_is_told(row: object) -> None:
    """A row that is no departure names itself and what one looks like."""
    with pytest.raises(SimkitError, match="bad-departure"):
        Tape.from_departures([row])  # type: ignore[list-item]


def test_draws_do_not_depend_on_the_hash_seed() -> None:
    """The same numbers in three processes with different string hashes."""
    code = "from simkit.tape import Tape; s = Tape.from_seed(9).stream('s'); print([s.choose(k, 99) for k in 'abcabc'])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


def strikes(tape: Tape) -> list[int]:
    """Two kinds of faults that no option asks for, between ordinary choices."""
    stream = tape.stream("s")
    return [
        value
        for _ in range(20)
        for value in (stream.fault("crash", (1, 3)), stream.choose("k", 3), int(stream.chance("lost", 0, 5)))
    ]


def test_only_an_open_tape_is_struck_and_its_ordinary_choices_are_the_same() -> None:
    """A closed tape never strikes; an open one without departures gives what the closed one gives."""
    closed, opened = Tape.from_departures({("s", "k", 3): 2}), Tape.opened({("s", "k", 3): 2})
    assert strikes(closed) == strikes(opened)
    assert closed.departures() == opened.departures() == {("s", "k", 3): 2}
    struck = Tape.from_departures({("s", "!crash", 1): 3, ("s", "!lost", 0): 1, ("s", "!crash", 2): 2})
    assert struck.open
    assert [index for index, value in enumerate(strikes(struck)) if value] == [2, 3]
    assert struck.unused() == {("s", "!crash", 2): 2}  # not one of its values


def test_a_journal_lists_every_site_in_order() -> None:
    """With what it could have given, however much that is."""
    journal = Journal()
    stream = Tape.opened(journal=journal).stream("s")
    stream.choose("wide", 1 << 40)
    stream.fault("crash", (1, 3))
    stream.choose("one", 1)
    stream.fault("crash", (1,))
    assert [(visit.site, list(visit.values[:2])) for visit in journal.sites] == [
        (("s", "wide", 0), [1, 2]),
        (("s", "!crash", 0), [1, 3]),
        (("s", "!crash", 1), [1]),
    ]


def test_faults_are_drawn_by_a_mask_and_replay_without_it() -> None:
    """What the mask allows is drawn and recorded; a tape of the departures repeats it, by itself an open one."""

    class Half:
        count = 0

        def ratio(self, label: str, site_key: str) -> tuple[int, int]:
            return (1, 2) if site_key == "!crash" else (0, 1)

        def allows(self, label: str, site_key: str, value: int) -> bool:
            self.count += 1
            return self.count < 5

    mask = Half()
    drawn = Tape.opened(entropy=3, draws=True, mask=mask)
    first = strikes(drawn)
    assert mask.count > 5
    assert sum(map(bool, first[::3])) == 4
    assert set(first[::3]) == {0, 1, 3}
    assert set(first[2::3]) == {0}
    assert first[1::3] == strikes(Tape.from_seed(3))[1::3]
    assert strikes(Tape.from_departures(rows(drawn.departures()))) == first
