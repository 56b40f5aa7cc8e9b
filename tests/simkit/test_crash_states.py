"""What a power loss may leave: all of it when it is little, else a sample; directory renames among it."""

from __future__ import annotations

import errno

import pytest

from simkit.disk import SECTOR_BYTES, CrashState, Disk, Tear
from simkit.world import World
from tests.simkit.disk_rig import made, new_disk
from tests.simkit.rig import simulate


def images(disk: Disk, bound: int = 1000) -> list[dict[str, bytes]]:
    found = disk.crash_states(bound)
    assert found.complete
    return [dict(state.files) for state in found]


def test_a_quiet_disk_has_one_state() -> None:
    """Everything is synced: a power loss changes nothing."""
    disk = new_disk()
    made(disk, "/f", b"data")
    assert images(disk) == [{"/f": b"data"}]


def test_every_legal_state_of_a_replacement_is_enumerated() -> None:
    """Write a new file, rename it over the old one, no sync: the classic four outcomes, and a lost create."""
    disk = new_disk()
    made(disk, "/f", b"old")
    made(disk, "/f.tmp", b"new", durable=False)
    disk.rename("/f.tmp", "/f")
    found = images(disk)
    for state in ({"/f": b"new"}, {"/f": b""}, {"/f": b"old"}, {"/f": b"old", "/f.tmp": b"new"}, {"/f": b"\0\0\0"}):
        assert state in found
    assert len(found) == len({str(state) for state in found})


def test_a_torn_write_has_each_of_its_tears() -> None:
    """Three sectors written over: old, new, and both sides of both cuts."""
    disk = new_disk()
    made(disk, "/f", b"o" * 3 * SECTOR_BYTES).write(b"n" * 3 * SECTOR_BYTES, 0)
    shapes = {"".join(chr(state["/f"][at * SECTOR_BYTES]) for at in range(3)) for state in images(disk)}
    assert shapes == {"ooo", "nnn", "noo", "onn", "nno", "oon"}


def test_enumerated_states_are_what_sampled_power_losses_leave() -> None:
    """Neither more nor less: over many seeds the sampled power loss leaves exactly the enumerated states."""

    def make(seed: int) -> Disk:
        disk = new_disk(seed)
        made(disk, "/a", b"o" * SECTOR_BYTES)
        file = disk.open("/a")
        file.write(b"n" * SECTOR_BYTES, 0)
        file.truncate(10)
        made(disk, "/b", b"b", durable=False)
        disk.unlink("/a")
        return disk

    enumerated = {str(state) for state in images(make(0))}
    sampled = set()
    for seed in range(1500):
        disk = make(seed)
        disk.crash()
        sampled.add(str({f"/{name}": disk.read_file(f"/{name}") for name in disk.listdir("/")}))
    assert sampled == enumerated


def test_crashing_into_a_state_leaves_its_files() -> None:
    """Each enumerated state, struck on a disk of the same history, leaves what it said; also through its code."""
    many = len(history().crash_states())
    assert many > 10
    for index in range(many):
        disk = history()
        state = disk.crash_states().states[index]
        disk.crash(CrashState.from_code(state.code))
        assert {path: disk.read_file(path) for path in state.files} == state.files
        assert disk.durable_files() == state.files


def history() -> Disk:
    disk = new_disk(2)
    file = made(disk, "/d/f", b"o" * 2 * SECTOR_BYTES)
    file.write(b"n" * 2 * SECTOR_BYTES, 0)
    made(disk, "/d/g", b"g", durable=False)
    disk.rename("/d/g", "/d/h")
    disk.rename("/d", "/e")
    return disk


def test_too_many_states_are_sampled_at_boundaries_first() -> None:
    """At most the bound, all different, among them: everything, nothing, and each prefix of the history."""
    disk = long_history()
    found = disk.crash_states(60)
    assert not found.complete
    assert len(found) == 60
    logs = [state.files["/log"] for state in found]
    assert len(set(logs)) == 60
    whole = disk.read_file("/log")
    for at in range(13):
        assert whole[: at * SECTOR_BYTES * 3] in logs
    assert [state.code for state in found] == [state.code for state in long_history().crash_states(60)]


def long_history() -> Disk:
    disk = new_disk()
    file = made(disk, "/log", b"")
    for at in range(12):
        file.write(bytes([65 + at]) * SECTOR_BYTES * 3, at * SECTOR_BYTES * 3)
    return disk


def test_a_misdirected_write_is_part_of_the_states() -> None:
    """The stray write arrived or not; what it was meant for is old in both."""
    disk = new_disk()
    made(disk, "/f", b"o" * SECTOR_BYTES)
    made(disk, "/g", b"o" * SECTOR_BYTES)
    disk.strike_next("misdirected-write")
    disk.open("/g").write(b"n" * SECTOR_BYTES, 0)
    found = images(disk)
    assert len(found) == 2
    assert all(b"n" not in state["/g"][:SECTOR_BYTES] for state in found)
    disk.crash("keep")
    assert disk.durable_files() in found


def test_a_state_can_be_loaded_into_another_world() -> None:
    """Recovery is tried on the files of each state."""
    for state in history().crash_states():
        disk = new_disk()
        disk.load(state.files)
        assert disk.durable_files() == state.files


def test_a_directory_is_renamed_with_all_that_is_in_it() -> None:
    """Visible at once under the new name, open files go on; atomic and lost or kept as a whole."""
    disk = new_disk()
    file = made(disk, "/a/sub/f", b"data")
    disk.sync_dir("/a/sub")
    disk.rename("/a", "/b")
    assert (disk.exists("/a/sub/f"), disk.read_file("/b/sub/f"), disk.listdir("/")) == (False, b"data", ["b"])
    file.write(b"DATA", 0)
    assert disk.read_file("/b/sub/f") == b"DATA"
    assert {frozenset(state) for state in images(disk)} == {frozenset({"/a/sub/f"}), frozenset({"/b/sub/f"})}


def test_what_is_synced_under_a_new_name_is_synced() -> None:
    """An entry made before the rename of its directory is covered by a sync of the directory under its new name."""
    disk = new_disk()
    made(disk, "/a/f", b"", durable=False)
    disk.rename("/a", "/b")
    disk.sync_dir("/b")
    assert {frozenset(state) for state in images(disk)} == {frozenset({"/a/f"}), frozenset({"/b/f"})}
    disk.sync_dir("/")
    disk.crash("lose")
    assert disk.durable_files() == {"/b/f": b""}


def test_renamed_directories_never_end_up_inside_each_other() -> None:
    """Moving a into b and b into a: what survives is a prefix of the moves, and nothing disappears."""
    disk = new_disk()
    for path in ("/x/a/f", "/x/g"):
        disk.open(path, create=True)
        disk.sync_dir(path.rpartition("/")[0])
    disk.rename("/x/a", "/a")
    disk.rename("/x", "/a/x")
    found = {tuple(sorted(state)) for state in images(disk)}
    assert found == {("/x/a/f", "/x/g"), ("/a/f", "/x/g"), ("/a/f", "/a/x/g")}


def test_impossible_renames_are_refused_as_posix_has_them() -> None:
    """A directory over a file or a full directory, into itself, a file over a directory."""
    disk = new_disk()
    made(disk, "/d/f", b"")
    made(disk, "/e/g", b"")
    disk.mkdir("/empty")
    for source, target, number in (
        ("/d", "/e/g", errno.ENOTDIR),
        ("/d", "/e", errno.ENOTEMPTY),
        ("/d", "/d/x", errno.EINVAL),
        ("/d/f", "/e", errno.EISDIR),
        ("/none", "/e", errno.ENOENT),
    ):
        with pytest.raises(OSError, match=r"\[Errno") as info:
            disk.rename(source, target)
        assert info.value.errno == number
    disk.rename("/d", "/empty")
    assert disk.listdir("/empty") == ["f"]


def test_an_action_at_a_boundary_can_tear_the_write_there() -> None:
    """Host.at_boundary: the first bytes are written, then the power goes; the process is dead."""

    async def main(world: World) -> tuple[bytes, str, bool]:
        host = world.host("db")

        async def program() -> None:
            file = host.disk.open("/log", create=True, owner=host.processes[0])
            file.write(b"abcdef", 0)
            raise AssertionError("the writer was to go down")

        process = host.start(program)
        host.at_boundary(2, lambda: Tear(3, lambda: host.power_loss("keep")))
        status = await process.wait()
        return host.disk.read_file("/log"), status.kind, bool(host.processes)

    assert simulate(main) == (b"abc", "killed", False)


def test_a_host_can_lose_power_into_one_state() -> None:
    """What a probe run found is struck in a second run, at the same boundary."""

    def run(code: str | None) -> tuple[list[str], dict[str, bytes]]:
        codes: list[str] = []

        async def main(world: World) -> dict[str, bytes]:
            host = world.host("db")

            def strike() -> None:
                codes.extend(state.code for state in host.disk.crash_states())
                host.power_loss(CrashState.from_code(code or ""))

            async def program() -> None:
                disk = host.disk
                file = disk.open("/log", create=True, owner=host.processes[0])
                disk.sync_dir("/")
                file.write(b"n" * 2 * SECTOR_BYTES, 0)
                file.fsync()

            host.at_boundary(4, strike)
            await host.start(program).wait()
            return host.disk.durable_files()

        return codes, simulate(main)

    codes, _ = run(None)
    left = {run(code)[1]["/log"] for code in codes}
    assert len(left) == len(codes) == 5
