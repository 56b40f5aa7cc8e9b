"""The pure parts of the explorer: names of departures, fair samples, single strikes, pairs, cones, masks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkit.exploring.cones import cone
from simkit.exploring.kinds import CALM, PATIENCE, Without, class_of, kind_of, strikes_of
from simkit.exploring.masks import SwarmMask
from simkit.exploring.pairs import after_first, chosen, count_within, tiers, within
from simkit.exploring.plan import VALUES_MAX, Strike, later, singles
from simkit.exploring.sampling import fair, spread, spread_indices
from simkit.striking import AFTER, KILL, LOSE, STATE, TORN
from simkit.tape import Site, Visit
from simkit.trace import Entry

NOTHING = Without()


@pytest.mark.parametrize(
    ("site", "value", "class_", "kind"),
    [
        (("crash/a", "!write:/f", 3), KILL, "crash", "crash.kill"),
        (("crash/a", "!fsync:/f", 0), STATE, "crash", "crash.power-state"),
        (("crash/a", "!state", 0), 1, "crash", "crash.power-state"),
        (("disk/a", "!read_eio:/a:b", 0), 1, "fault", "disk.read_eio"),
        (("network", "latency:a>b", 0), 4, "choice", "network.latency"),
        (("points", "!maybe:rare", 0), 1, "fault", "points.maybe"),
        (("digits", "digit 1", 0), 7, "choice", "digits.digit 1"),
    ],
)
def test_departures_have_names(site: Site, value: int, class_: str, kind: str) -> None:
    """Neither host nor file nor link is in the name of a kind."""
    assert (class_of(site), kind_of(site, value)) == (class_, kind)


def test_kinds_are_left_out_by_pattern() -> None:
    """A star stands for anything."""
    without = Without(["disk.*", "crash.kill"])
    strikes = {("crash/a", "!write:/f", 0): KILL, ("crash/a", "!write:/f", 1): LOSE, ("disk/a", "!slow:/f", 0): 1}
    assert without.kept(strikes.items()) == {("crash/a", "!write:/f", 1): LOSE}
    assert "network.break" not in without


def test_what_struck_is_told_with_where() -> None:
    """Crashes by host and boundary, faults by host or link, choices by their number; not how patient a healed run is."""
    departures = {
        ("crash/a", "!rename:/new", 2): LOSE,
        ("crash/a", "!state", 0): 3,
        ("clock/b", "!skew", 0): 4,
        ("network", "!break:a>b", 0): 1,
        ("network", "latency:a>b", 0): 2,
        ("network", "latency:a>b", 5): 4,
        CALM: 1_500_000_000,
        PATIENCE: 2,
    }
    assert strikes_of(departures) == (
        "crash.power a at rename /new, no. 3",
        "crash.power-state a, no. 1 (3)",
        "clock.skew b, no. 1 (4)",
        "network.break a>b, no. 1",
        "all faults end after 1.500 s",
        "2 ordinary choices",
    )


# ---- samples


@given(count=st.integers(0, 300), most=st.integers(0, 50))
def test_a_spread_sample_keeps_both_ends(count: int, most: int) -> None:
    """No more than asked for, all when they fit, ascending, and gaps that differ by one at most."""
    found = spread_indices(count, most)
    assert len(found) == min(count, most)
    assert spread(range(count), most) == found
    if len(found) > 1:
        assert (found[0], found[-1]) == (0, count - 1)
        gaps = [later - before for before, later in itertools.pairwise(found)]
        assert max(gaps) - min(gaps) <= 1


@given(kinds=st.lists(st.sampled_from("abcd"), max_size=80), most=st.integers(0, 90))
def test_every_kind_gets_its_share(kinds: list[str], most: int) -> None:
    """In order; a kind that has more left than another has got no less than that one."""
    items = list(enumerate(kinds))
    found = fair(items, lambda item: item[1], most)
    assert found == sorted(found)
    assert len(found) == min(len(items), most)
    got = {kind: sum(one == kind for _, one in found) for kind in set(kinds)}
    for one, other in itertools.permutations(got, 2):
        if got[one] < kinds.count(one):
            assert got[other] <= got[one] + 1


# ---- single strikes


def visit(label: str, key: str, occurrence: int, values: tuple[int, ...], moment: int = 0) -> Visit:
    """A site that was come by."""
    return Visit((label, key, occurrence), values, moment)


def test_single_strikes_are_all_values_of_all_sites_crashes_first() -> None:
    """Crashes, faults, ordinary choices; what is left out is not among them."""
    visits = [
        visit("network", "latency:a>b", 0, (1, 2)),
        visit("disk/a", "!slow:/f", 0, (1,)),
        visit("disk/a", "!stuck:/f", 0, (1,)),
        visit("crash/a", "!write:/f", 0, (KILL, TORN)),
    ]
    found = singles(visits, [], Without(["disk.stuck"]))
    assert [(one.kind, one.value) for one in found] == [
        ("crash.kill", KILL),
        ("crash.torn", TORN),
        ("disk.slow", 1),
        ("network.latency", 1),
        ("network.latency", 2),
    ]


def test_a_site_with_many_values_is_sampled() -> None:
    """Both ends, and so many in all."""
    found = singles([Visit(("s", "wide", 0), range(1, 1 << 40), 0)], [], NOTHING)
    assert len(found) == VALUES_MAX
    assert (found[0].value, found[-1].value) == (1, (1 << 40) - 1)


def test_a_crash_after_a_boundary_is_the_crash_before_the_next_one_in_the_same_step() -> None:
    """So it is left out there, and kept where another step, or a boundary of another host, comes in between."""
    kills = (KILL, AFTER)
    visits = [
        visit("crash/a", "!create:/f", 0, kills, 2),
        visit("crash/b", "!create:/f", 0, kills, 3),
        visit("crash/a", "!write:/f", 0, kills, 3),
        visit("crash/a", "!deliver:b", 0, (KILL,), 4),
        visit("crash/a", "!fsync:/f", 0, kills, 7),
    ]
    found = singles(visits, [1, 5, 6], NOTHING)
    assert [one.site[1] for one in found if one.value == AFTER and one.site[0] == "crash/a"] == [
        "!write:/f",
        "!fsync:/f",
    ]
    assert [one.site[1] for one in found if one.value == AFTER and one.site[0] == "crash/b"] == ["!create:/f"]


def test_the_second_of_a_pair_is_a_plain_crash_or_a_fault() -> None:
    """No state of a disk, no crash after, no ordinary choice; in order, bounded."""
    visits = [
        visit("crash/a", "!write:/f", 0, (KILL, AFTER, TORN, LOSE, STATE)),
        visit("crash/a", "!state", 0, (1, 2)),
        visit("network", "latency:a>b", 0, (1, 2)),
        visit("network", "!break:a>b", 0, (1,)),
    ]
    kinds = [one.kind for one in later(visits, 0, NOTHING, 10)]
    assert kinds == ["crash.kill", "crash.torn", "crash.power", "network.break"]
    assert [one.kind for one in later(visits, 1, NOTHING, 10)] == ["network.break"]
    assert len(later(visits, 0, NOTHING, 2)) == 2


# ---- pairs


def strike(number: int, label: str = "crash/a") -> Strike:
    """A strike."""
    return Strike((label, "!write:/f", number), KILL)


def test_seconds_come_soonest_first_and_new_sites_before_known_ones() -> None:
    """The next of every first strike, then the one after that."""
    firsts = [(strike(1), [strike(2), strike(9)]), (strike(3), [strike(4)])]
    found = after_first(firsts, frozenset([("crash/a", "!write:/f", 2)]))
    assert found == [(strike(1), strike(9)), (strike(3), strike(4)), (strike(1), strike(2))]


@given(count=st.integers(0, 30))
def test_pairs_within_a_list_are_all_pairs(count: int) -> None:
    """Each once, the earlier first; by number, so that a sample needs no list of all."""
    strikes = [strike(number) for number in range(count)]
    assert within(strikes, 1000) == list(itertools.combinations(strikes, 2))
    assert count_within(strikes) == len(within(strikes, 1000))
    assert len(within(strikes, 7)) == min(7, count_within(strikes))


def test_two_strikes_at_one_site_are_no_pair() -> None:
    """A site gives one value."""
    one, other = Strike(("crash/a", "!write:/f", 0), KILL), Strike(("crash/a", "!write:/f", 0), LOSE)
    assert within([one, other], 10) == []


def test_pairs_are_chosen_by_tiers() -> None:
    """Half of them from the first, the rest by halves; what a tier does not need goes to others."""
    pairs = [[(strike(tier), strike(number)) for number in range(20)] for tier in range(3)]
    assert [sum(pair[0] == strike(tier) for pair in chosen(pairs, 20)) for tier in range(3)] == [10, 5, 5]
    assert [sum(pair[0] == strike(tier) for pair in chosen([pairs[0][:2], pairs[1], []], 20)) for tier in range(2)] == [
        2,
        18,
    ]
    crashes, faults = tiers([(strike(1), strike(2)), (strike(3, "disk/a"), strike(4))])
    assert (len(crashes), len(faults)) == (1, 1)


# ---- cones

#: a tells b, then b accepts; c tells b too late; d tells nobody; main starts a, and hears of the end of c.
ENTRIES: list[Entry] = [
    ("start", "a/main#101"),
    ("start", "c/main#103"),
    0,
    ("net", "send", 1, "a", "b", 5),
    -1000,
    ("net", "deliver", 1, "a", "b", 5),
    1,
    ("net", "send", 2, "c", "b", 5),
    ("exited", "c/main#103", ""),
]


def test_a_cone_holds_what_may_have_led_to_a_point() -> None:
    """Of the place itself before the point, of others up to what they said; latencies count by link."""
    before = [visit(f"crash/{host}", "!write:/f", 0, (KILL,), 2) for host in "abcd"]
    late = [visit(f"crash/{host}", "!write:/f", 1, (KILL,), 4) for host in "abcd"]
    links = [visit("network", f"!stall:{link}", 0, (1,), 4) for link in ("a>b", "c>d")]
    points = [visit("points", "!maybe:rare", 0, (1,), 5)]
    found = cone([*before, *late, *links, *points], ENTRIES, "b", 6)
    assert [one.site[:2] for one in found] == [
        ("crash/a", "!write:/f"),
        ("crash/b", "!write:/f"),
        ("crash/b", "!write:/f"),
        ("network", "!stall:a>b"),
        ("points", "!maybe:rare"),
    ]


def test_the_outside_knows_of_ends_and_hosts_of_starts() -> None:
    """Main hears of the end of c, and so of all that c did."""
    visits = [visit("crash/c", "!write:/f", 0, (KILL,), 2), visit("crash/d", "!write:/f", 0, (KILL,), 2)]
    assert [one.site[0] for one in cone(visits, ENTRIES, "", len(ENTRIES))] == ["crash/c"]


# ---- masks


def test_a_mask_is_the_same_for_its_number_whatever_is_asked_first() -> None:
    """Hosts may appear in any order."""
    sites = [(f"disk/{host}", f"!{what}:/f") for host in "ab" for what in ("slow", "stuck", "read_eio")]
    for number in range(20):
        one, other = SwarmMask(number, NOTHING), SwarmMask(number, NOTHING)
        ratios = {site: one.ratio(*site) for site in sites}
        assert {site: other.ratio(*site) for site in reversed(sites)} == ratios


def test_masks_differ_and_most_faults_are_off() -> None:
    """Some run is quiet, some has a fault often; a kind is off more often than on."""
    masks = [SwarmMask(number, NOTHING) for number in range(200)]
    ratios = [mask.ratio("disk/a", "!slow:/f") for mask in masks]
    assert set(ratios) == {(0, 1), (1, 1000), (1, 100), (1, 10)}
    assert 100 < ratios.count((0, 1)) < 180


def test_a_mask_bounds_crashes_and_standstills_and_leaves_out_what_it_must() -> None:
    """So that a run comes to its end; a state is a part of a crash that was counted."""
    for number in range(20):
        mask = SwarmMask(number, Without(["crash.torn"]))
        assert not mask.allows("crash/a", "!write:/f", TORN)
        assert sum(mask.allows("crash/a", "!write:/f", KILL) for _ in range(50)) <= 5
        assert mask.allows("crash/a", "!state", 3)
        assert sum(mask.allows("network", "!clog:a>b", 1) for _ in range(50)) <= 3
        assert sum(mask.allows("disk/a", "!short_read:/f", 1) for _ in range(500)) == 100
