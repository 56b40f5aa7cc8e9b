"""A corpus of tapes: what is kept, drawn, saved and read again; and the changes that make one tape from another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkit.coverage import Corpus, CorpusDamagedWarning, Entry, mutate, schedules, tapes
from simkit.coverage.corpus import UNIT
from simkit.coverage.entry import TAKEN_MAX
from simkit.coverage.schedules import Run
from simkit.coverage.tapes import Ground
from simkit.errors import SimkitError
from simkit.shrinking.search import merged
from simkit.tape import Site

ASKED = {
    ("disk/a", "torn:/wal"): (3, 2),
    ("disk/b", "torn:/wal"): (2, 2),
    ("network", "latency:a>b"): (10, 5),
    ("client", "byte"): (6, 256),
}
TAKEN = ((0, 1), (1, 1), (2, 4), (3, 5), (2, 3), (4, 2), (1, 1))


def departures(**values: int) -> dict[Site, int]:
    return {("client", name, 0): value for name, value in values.items()}


def some_corpus() -> Corpus:
    """Three tapes, each of which shows something."""
    corpus = Corpus()
    corpus.offer({}, (), {"start"}, asked=ASKED, taken=TAKEN)
    corpus.offer({("disk/a", "torn:/wal", 1): 1}, ((2, 4), (3, 1)), {"start", "torn"}, asked=ASKED, taken=TAKEN)
    corpus.offer({("network", "latency:a>b", 7): 3}, (), {"start", "late"}, asked=ASKED, taken=TAKEN)
    return corpus


# ------------------------------------------------------------------------------------------------------ what is kept
def test_a_tape_is_kept_for_what_it_is_the_first_to_show() -> None:
    """`offer` says how many features are new; a tape that shows none is not kept."""
    corpus = Corpus()
    assert corpus.offer({}, (), {"a", "b"}) == 2
    assert corpus.offer(departures(x=1), (), {"a", "c"}) == 1
    assert corpus.offer(departures(x=2), (), {"a", "b", "c"}) == 0
    assert [dict(entry.departures) for entry in corpus] == [{}, departures(x=1)]
    assert corpus.hits == {"a": 3, "b": 2, "c": 2}


def test_a_smaller_tape_replaces_larger_ones_that_show_no_more() -> None:
    """It needs to show all that they show; fewer decisions are smaller, then smaller values."""
    corpus = Corpus()
    corpus.offer(departures(x=5, y=5), ((1, 3),), {"a", "b"})
    corpus.offer(departures(x=5, z=9), (), {"c"})
    assert corpus.offer(departures(x=5), (), {"a", "b"}) == 0
    assert [dict(entry.departures) for entry in corpus] == [departures(x=5, z=9), departures(x=5)]
    corpus.offer(departures(x=4), (), {"a"})  # smaller, but it shows less
    assert len(corpus) == 2
    corpus.offer(departures(x=4), (), {"a", "b", "c"})
    assert [dict(entry.departures) for entry in corpus] == [departures(x=4)]
    assert corpus.energy(next(iter(corpus))) > UNIT // 2  # what the others were the first to show is its own now


def test_a_corpus_is_bounded() -> None:
    """When there are too many tapes, those go whose features many runs show; what was seen stays known."""
    corpus = Corpus(entries_max=3)
    for number in range(10):
        corpus.offer(departures(x=number + 1), (), {f"f{number}"})
        for _ in range(number):
            corpus.offer(departures(x=100), (), {f"f{number}"})
    assert [entry.departures["client", "x", 0] for entry in corpus] == [1, 2, 10]
    assert corpus.offer(departures(y=1), (), {"f5"}) == 0
    with pytest.raises(ValueError, match="at least one"):
        Corpus(entries_max=0)


def test_rare_features_give_energy() -> None:
    """A tape whose features few runs show is drawn more often; one that is chosen in vain is less."""
    corpus = Corpus()
    corpus.offer({}, (), {"common"})
    corpus.offer(departures(x=1), (), {"common", "rare"})
    for _ in range(50):
        corpus.offer(departures(x=2), (), {"common"})
    random = Random(1)
    drawn = [len(corpus.pick(random).entry.departures) for _ in range(500)]
    assert sum(drawn) > 450
    rare = next(kept for kept in iter(lambda: corpus.pick(random), None) if kept.entry.departures)
    before = corpus.energy(rare.entry)
    rare.chosen += 1
    assert corpus.energy(rare.entry) == before // 2 + 1


def test_an_edge_is_rare_whatever_its_count() -> None:
    """Another count of an edge that every run takes gives little energy; the count of a rare edge gives much."""
    corpus = Corpus()
    for _ in range(50):
        corpus.offer({}, (), {"edge a.py:1>2 x1"})
    corpus.offer(departures(x=1), (), {"edge a.py:1>2 x8"})
    corpus.offer(departures(x=2), (), {"edge a.py:1>3 x1"})
    _, counted, rare = corpus
    assert corpus.energy(rare) > 20 * corpus.energy(counted)


def test_two_corpora_are_merged() -> None:
    """Merging keeps what is new, and adds up how often features were shown."""
    one, other = some_corpus(), Corpus()
    other.offer(departures(x=1), (), {"start", "other"}, asked=ASKED)
    other.offer(departures(x=2), (), {"start"})
    assert one.merge(other) == 1
    assert len(one) == 4
    assert one.hits == {"start": 5, "torn": 1, "late": 1, "other": 1}


# ----------------------------------------------------------------------------------------------------------- on disk
def test_a_corpus_is_saved_and_read_again(tmp_path: Path) -> None:
    """Each tape is a file named by its digest; what is read again is what was saved; replaced tapes leave no file."""
    corpus = some_corpus()
    corpus.save(tmp_path)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(entry.id for entry in corpus)
    again = Corpus.load(tmp_path)
    assert {entry.id: entry for entry in again} == {entry.id: entry for entry in corpus}
    assert [entry.size for entry in again] == sorted(entry.size for entry in again)
    corpus.offer(departures(x=1), (), {"start", "torn", "late"})
    corpus.save(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {entry.id for entry in corpus}
    assert len(corpus) == 2
    assert not len(Corpus.load(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"torn:/wal", 1, 1', '"torn:/wal", 1, "1"'),
        lambda text: text.replace('"torn:/wal", 1, 1', '"torn:/wal", 2, 1'),
        lambda text: text.replace('"features"', '"feature"'),
        lambda text: "[" * 100_000,
        lambda text: text.encode()[:-1].decode() + "\x00",
    ],
)
def test_a_damaged_file_is_set_aside(tmp_path: Path, damage: Callable[[str], str]) -> None:
    """A file cut short or changed by hand is renamed with a warning that names it; all others are read."""
    corpus = some_corpus()
    corpus.save(tmp_path)
    torn = list(corpus)[1]
    path = tmp_path / f"{torn.id}.json"
    path.write_text(damage(path.read_text()))
    with pytest.warns(CorpusDamagedWarning, match=str(path)):
        again = Corpus.load(tmp_path)
    assert {entry.id for entry in again} == {entry.id for entry in corpus if entry is not torn}
    assert path.with_suffix(".damaged").exists()
    assert {entry.id for entry in Corpus.load(tmp_path)} == {entry.id for entry in again}


def test_another_version_is_refused_and_more_fields_are_not(tmp_path: Path) -> None:
    """A file of another schema is an error that names it; a field that this version does not know is passed over."""
    some_corpus().save(tmp_path)
    path = next(iter(sorted(tmp_path.glob("*.json"))))
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "weather": "fine"}))
    assert len(Corpus.load(tmp_path)) == 3
    path.write_text(json.dumps({**data, "schema": "simkit/corpus/2"}))
    with pytest.raises(SimkitError, match="simkit/corpus/2") as caught:
        Corpus.load(tmp_path)
    assert str(path) in str(caught.value)
    assert path.exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Saving into what is no folder is an error that names it, and nothing is forgotten."""
    (tmp_path / "file").write_text("")
    corpus = some_corpus()
    with pytest.raises(SimkitError, match="cannot be written") as caught:
        corpus.save(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)
    corpus.save(tmp_path / "folder")
    assert len(Corpus.load(tmp_path / "folder")) == 3


def test_two_processes_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each adds its tapes to the folder; one that another process replaces while the folder is read is passed over."""
    one, other = some_corpus(), Corpus()
    other.offer(departures(x=1), (), {"other"})
    one.save(tmp_path)
    other.save(tmp_path)
    assert len(Corpus.load(tmp_path)) == 4
    gone = min(tmp_path.glob("*.json"))
    listed = [*sorted(tmp_path.glob("*.json"))]
    monkeypatch.setattr(Path, "glob", lambda _self, _pattern: listed)
    gone.unlink()
    assert len(Corpus.load(tmp_path)) == 3


def test_what_a_run_took_is_kept_in_bounds() -> None:
    """Of a long run's schedule only the beginning is kept."""
    corpus = Corpus()
    corpus.offer({}, (), {"a"}, taken=tuple((number % 3, 1) for number in range(10 * TAKEN_MAX)))
    assert len(next(iter(corpus)).taken) == TAKEN_MAX


# ---------------------------------------------------------------------------------------------------------- mutation
def test_mutation_is_the_random_alone() -> None:
    """The same random gives the same mutants, another gives others; a mutant is not returned twice."""
    one, other, third = some_corpus(), some_corpus(), some_corpus()
    mutants = [mutate(one, random, {}) for random in [Random(1)] for _ in range(200)]
    assert mutants == [mutate(other, random, {}) for random in [Random(1)] for _ in range(200)]
    assert mutants != [mutate(third, random, {}) for random in [Random(2)] for _ in range(200)]
    assert len({repr(mutant) for mutant in mutants}) == 200


def test_an_empty_corpus_gives_the_default_run() -> None:
    """There is nothing to change yet."""
    assert mutate(Corpus(), Random(0), ASKED) == ({}, ())


def test_a_tape_that_does_not_say_is_departed_at_the_sites_given() -> None:
    """`sites` says where an entry may depart whose run was not asked about."""
    corpus = Corpus()
    corpus.offer({}, (), {"a"})
    random = Random(3)
    found = {site[:2] for _ in range(100) for site in mutate(corpus, random, ASKED)[0]}
    assert found == set(ASKED)


@given(st.integers(0, 1 << 32))
def test_mutants_stay_on_the_ground(seed: int) -> None:
    """Every departure is at a place that was asked, with a value that it can have; schedules have no empty segment."""
    corpus, random = some_corpus(), Random(seed)
    for _ in range(30):
        found, schedule = mutate(corpus, random, {})
        for (label, key, occurrence), value in found.items():
            times, n = ASKED[label, key]
            assert 0 <= occurrence < times or label == "disk/b"  # transplanted: it may be asked as often as a was
            assert 0 < value < n
        assert all(steps > 0 for _, steps in schedule)
        assert {task for task, _ in schedule} <= {0, 1, 2, 3, 4}


def test_what_an_entry_opened_is_tried_first() -> None:
    """Every value at a place that only this tape was asked at is among its next mutants."""
    corpus = Corpus()
    corpus.offer({}, (), {"a"}, asked={("client", "one"): (1, 16)})
    corpus.offer(departures(one=7), (), {"a", "b"}, asked={("client", "one"): (1, 16), ("client", "two"): (2, 8)})
    random = Random(0)
    found = [mutate(corpus, random, {})[0] for _ in range(120)]
    tried = {(occurrence, value) for mutant in found for (_, key, occurrence), value in mutant.items() if key == "two"}
    assert tried == {(occurrence, value) for occurrence in (0, 1) for value in range(1, 8)}


def test_what_is_due_is_handed_on_to_a_smaller_tape() -> None:
    """A tape that takes the place of a larger one takes over what was still to be tried with it."""
    corpus = Corpus()
    corpus.offer(departures(one=7, other=3), (), {"a"}, asked={("client", "two"): (1, 40)})
    corpus.offer(departures(one=7), (), {"a"}, asked={("client", "two"): (1, 40)})
    (entry,) = corpus
    assert dict(entry.departures) == departures(one=7)
    random = Random(0)
    found = [mutate(corpus, random, {})[0] for _ in range(100)]
    assert {mutant.get(("client", "two", 0)) for mutant in found} >= set(range(1, 40))


def test_a_switch_is_tried_where_something_new_was_done() -> None:
    """After the step at which a run did something new, every task that went on later is tried."""
    corpus = Corpus()
    corpus.offer({}, (), {"edge a.py:1>2 x1"}, taken=TAKEN, moments={"edge a.py:1>2": 6})
    random = Random(0)
    found = [mutate(corpus, random, {})[1] for _ in range(60)]
    assert {((0, 1), (1, 1), (2, 4), (task, 1)) for task in (2, 4, 1)} <= set(found)


# ------------------------------------------------------------------------------------------------------- each change
SICK = {("disk/a", "torn:/wal", 1): 1, ("network", "latency:a>b", 7): 3}
GROUND = Ground(ASKED)


def test_faults_are_transplanted_from_host_to_host() -> None:
    """What happened to host a happens to host b, instead or as well; other streams stay as they are."""
    found = {tuple(sorted(tapes.transplant(dict(SICK), GROUND, Random(seed)))) for seed in range(20)}
    moved = ("disk/b", "torn:/wal", 1)
    late = ("network", "latency:a>b", 7)
    assert found == {(moved, late), (("disk/a", "torn:/wal", 1), moved, late)}
    alone = Ground({place: found for place, found in ASKED.items() if place[0] != "disk/b"})
    assert tapes.transplant(dict(SICK), alone, Random(0)) == SICK


def test_two_tapes_are_spliced_by_stream() -> None:
    """Of each stream one tape's departures are taken, all of them or none."""
    donor = {("network", "latency:a>b", 1): 2, ("network", "latency:a>b", 2): 2, ("client", "byte", 0): 9}
    for seed in range(20):
        found = tapes.splice(SICK, donor, Random(seed))
        for label in ("network", "client", "disk/a"):
            of_stream = {site: value for site, value in found.items() if site[0] == label}
            assert of_stream in [{site: v for site, v in tape.items() if site[0] == label} for tape in (SICK, donor)]


def test_each_change_to_departures_does_what_it_says() -> None:
    """One more, one less, another value, another occurrence, a whole stream less, many of one place."""
    for seed in range(50):
        random = Random(seed)
        assert len(tapes.drop(dict(SICK), GROUND, random)) == 1
        assert set(tapes.revalue(dict(SICK), GROUND, random)) == set(SICK)
        assert sorted(tapes.move(dict(SICK), GROUND, random).values()) == sorted(SICK.values())
        assert {site[0] for site in tapes.drop_stream(dict(SICK), GROUND, random)} < {"disk/a", "network"}
        added = tapes.add(dict(SICK), GROUND, random)
        assert len(added.keys() - SICK.keys()) <= 1
        sprinkled = tapes.sprinkle(dict(SICK), GROUND, random)
        assert len({site[:2] for site in sprinkled if sprinkled.get(site) != SICK.get(site)}) <= 1
    assert {tapes.value(256, Random(seed)) for seed in range(5000)} >= {1, 2, 64, 127, 128, 255}


def test_each_change_to_a_schedule_does_what_it_says() -> None:
    """A pre-emption more keeps what was before it; one less, one moved, two exchanged; splices keep the beginning."""
    run = Run(TAKEN, 6)
    for seed in range(50):
        random = Random(seed)
        preempted = merged(schedules.preempt((), run, random))
        assert preempted == () or (preempted != TAKEN and preempted[0] == TAKEN[0] and len(preempted) > 1)
        assert schedules.extend((), run, random)[:3] == TAKEN[:3]
        assert len(schedules.undo(TAKEN, run, random)) == len(TAKEN) - 1
        assert [task for task, _ in schedules.shift(TAKEN, run, random)] == [task for task, _ in TAKEN]
        assert sorted(schedules.exchange(TAKEN, run, random)) == sorted(TAKEN)
        spliced = schedules.splice(TAKEN, ((4, 30),), random)
        assert spliced[0] == TAKEN[0]


def test_an_entry_says_how_large_it_is() -> None:
    """Fewer decisions are smaller than more, whatever their values."""
    one = Entry(departures(x=200), (), frozenset())
    two = Entry(departures(x=1, y=1), (), frozenset())
    assert one.size < two.size
    assert one.id != two.id
