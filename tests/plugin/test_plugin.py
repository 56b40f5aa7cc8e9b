"""The pytest plugin, as its users see it: each test writes a small suite and runs pytest on it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.plugin.rig import cases, run, told

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

#: Fails for about a third of the seeds: an update is lost when two tasks meet.
LOST_UPDATE = """
import simkit
import trio

{decorator}
async def test_counter(world):
    value = 0
    print("counting")

    async def increment():
        nonlocal value
        seen = value
        if world.tape.stream("load").chance("slow", 1, 3):
            await trio.sleep(0.1)
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(increment)
        await trio.sleep(0.05)
        nursery.start_soon(increment)
    assert value == 2
"""
PASSES = """
@simkit.test(seeds=3)
async def test_sleeps(world):
    await trio.sleep(3600)
    assert world.now_ns == 3600 * 10**9
"""


def suite(pytester: pytest.Pytester, decorator: str = "@simkit.test(seeds=20)", more: str = "") -> None:
    pytester.makepyfile(test_counter=LOST_UPDATE.format(decorator=decorator) + more)


def failing_seed(result: pytest.RunResult) -> int:
    found = re.search(r"FAILED test_counter.py::test_counter\[seed=(\d+)\]", result.stdout.str())
    assert found, result.stdout.str()
    return int(found[1])


# ------------------------------------------------------------------------------------------------------ running seeds


def test_seeds_pass_as_one_test(pytester: pytest.Pytester) -> None:
    """A test whose seeds all pass is one passed test, in virtual time."""
    pytester.makepyfile("import simkit, trio\n" + PASSES)
    run(pytester).assert_outcomes(passed=1)


def test_a_failing_seed_is_reported_under_its_own_id(pytester: pytest.Pytester) -> None:
    """One failure, with the failing line of the test and not the machinery around it."""
    suite(pytester, more=PASSES)
    result = run(pytester)
    result.assert_outcomes(failed=1, passed=1)
    failing_seed(result)
    result.stdout.fnmatch_lines(["*assert value == 2", "E*assert 1 == 2", "test_counter.py:*: AssertionError"])
    assert "simkit/_kernel" not in result.stdout.str()


def test_last_failed_runs_the_failing_seed_only(pytester: pytest.Pytester) -> None:
    """--lf selects the seed's own item; once mended, a plain run forgets it."""
    suite(pytester, more=PASSES)
    seed = failing_seed(run(pytester))
    again = run(pytester, "--lf", "-v")
    again.assert_outcomes(failed=1)
    assert failing_seed(again) == seed
    again.stdout.fnmatch_lines([f"test_counter.py::test_counter[[]seed={seed}[]] FAILED*"])
    source = (pytester.path / "test_counter.py").read_text(encoding="utf-8")
    (pytester.path / "test_counter.py").write_text(source.replace("seen + 1", "value + 1"), encoding="utf-8")
    run(pytester).assert_outcomes(passed=2)
    assert json.loads((pytester.path / ".pytest_cache/v/cache/lastfailed").read_text(encoding="utf-8") or "{}") == {}


def test_a_seed_that_failed_is_tried_first(pytester: pytest.Pytester) -> None:
    """A plain run begins with the seeds that failed last time."""
    suite(pytester)
    run(pytester, "--simkit-seeds", "0-400", "--deselect", "nothing")
    config = pytester.path / ".pytest_cache/v/cache/lastfailed"
    config.write_text(json.dumps({"test_counter.py::test_counter[seed=4000]": True}), encoding="utf-8")
    more = "\n@simkit.test(seeds=2)\nasync def test_order(world):\n    assert world.tape.entropy != 4000\n"
    suite(pytester, more=more)
    config.write_text(json.dumps({"test_counter.py::test_order[seed=4000]": True}), encoding="utf-8")
    result = run(pytester, "-k", "test_order")
    result.stdout.fnmatch_lines(["FAILED test_counter.py::test_order[[]seed=4000[]]*"])


def test_a_seed_can_be_named_on_the_command_line(pytester: pytest.Pytester) -> None:
    """As an id or by the option, for one seed and no other."""
    suite(pytester)
    seed = failing_seed(run(pytester))
    for args in ([f"test_counter.py::test_counter[seed={seed}]"], ["--simkit-seed", str(seed)]):
        result = run(pytester, *args)
        result.assert_outcomes(failed=1)
        assert failing_seed(result) == seed


def test_seeds_of_the_command_line_win(pytester: pytest.Pytester) -> None:
    """--simkit-seeds overrides what the decorator says, as a number or as a range."""
    more = "\nran = []\n@simkit.test(seeds=2)\nasync def test_seen(world):\n    ran.append(world.tape.entropy)\n"
    more += "def test_ran():\n    assert ran == list(range(100, 105))\n"
    pytester.makepyfile("import simkit\n" + more)
    run(pytester, "--simkit-seeds", "100-104").assert_outcomes(passed=2)
    run(pytester, "--simkit-seeds", "5").assert_outcomes(passed=1, failed=1)


def test_fixtures_parameters_and_classes_work(pytester: pytest.Pytester) -> None:
    """`world` is no fixture; every other argument is, and parametrize and classes are as ever."""
    pytester.makepyfile(
        """
        import pytest
        from simkit import test

        @pytest.fixture
        def seven():
            return 7

        class TestAll:
            @pytest.mark.parametrize("n", [1, 2])
            @test(seeds=2)
            async def test_n(self, seven, world, n, tmp_path):
                assert seven == 7 and world.tape.entropy < 2 and tmp_path
                assert n == 1
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::TestAll::test_n[[]2-seed=0[]]*", "*1 failed, 1 passed*"])
    run(pytester, "--lf").assert_outcomes(failed=1)


def test_a_process_that_fails_fails_the_test(pytester: pytest.Pytester) -> None:
    """An exception that ends a process is not lost, unless the test says that processes may fail."""
    pytester.makepyfile(
        """
        import simkit, trio

        async def crashing():
            raise ValueError("in the process")

        @simkit.test(seeds=1)
        async def test_strict(world):
            await world.host("h").start(crashing).wait()

        @simkit.test(seeds=1, processes_may_fail=True)
        async def test_lenient(world):
            await world.host("h").start(crashing).wait()
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["E*ValueError: in the process"])


def test_a_bound_is_inconclusive_and_no_pass(pytester: pytest.Pytester) -> None:
    """A run that runs away fails its test, and says that this is no verdict."""
    pytester.makepyfile(
        """
        import simkit, trio

        @simkit.test(seeds=1)
        async def test_endless(world):
            while True:
                await trio.lowlevel.checkpoint()
        """
    )
    pytester.makepyprojecttoml("[tool.simkit]\nsteps_max = 500\n")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*inconclusive: the run met its bound on steps after 500 steps*", "*main at *.py:6 in *"]
    )


def test_failing_and_skipping_by_hand_work(pytester: pytest.Pytester) -> None:
    """pytest.fail is a failure like any other, with its block; pytest.skip and pytest.xfail are what they are elsewhere."""
    pytester.makepyfile(
        """
        import pytest, simkit

        @simkit.test(seeds=3)
        async def test_fails(world):
            if world.tape.stream("s").chance("bad", 1, 2):
                pytest.fail("by hand")

        @simkit.test
        async def test_skips(world):
            pytest.skip("not here")

        @simkit.test
        async def test_xfails(world):
            pytest.xfail("known")
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["E*Failed: by hand", "why: It fails only with s/bad#0 = 1."])
    assert len(cases(pytester)) == 1


def test_a_strategy_is_chosen_by_name_or_made(pytester: pytest.Pytester) -> None:
    """First come, first served never loses the update of a race that needs a pre-emption; an unknown name is told."""
    pytester.makepyfile(
        """
        import pytest, simkit
        from simkit.strategy import RandomWalk

        made = []

        def walk(stream):
            made.append(stream.label)
            return RandomWalk(stream)

        @simkit.test(seeds=3, strategy=walk)
        async def test_walk(world):
            pass

        def test_made():
            assert made == ["schedule"] * 3

        def test_unknown():
            with pytest.raises(simkit.SimkitError, match="no strategy 'lucky'"):
                simkit.test(strategy="lucky")(test_walk.simkit_spec.function)()
        """
    )
    run(pytester).assert_outcomes(passed=3)


# ------------------------------------------------------------------------------------------------- the block, the case


def test_the_block_tells_what_why_and_how_to_replay(pytester: pytest.Pytester) -> None:
    """Seed, needed faults, the deciding one; then the two replay lines, whole and last."""
    suite(pytester)
    result = run(pytester)
    seed = failing_seed(result)
    lines = result.outlines
    begin = next(n for n, line in enumerate(lines) if re.fullmatch("-+ simkit -+", line))
    end = next(n for n, line in enumerate(lines) if "short test summary" in line)
    (case,) = cases(pytester)
    block = lines[begin + 1 : end]
    assert block[0].startswith(f"seed {seed} fails: AssertionError at test_counter.py:")
    assert any(re.fullmatch(r"faults and choices: \d+ drawn, 1 needed", line) for line in block)
    assert "  load/slow#0 = 1" in block
    assert "why: It fails only with load/slow#0 = 1." in block
    assert block[-2:] == [
        f"pytest test_counter.py::test_counter --simkit-replay {case.stem}",
        f"pytest test_counter.py::test_counter --simkit-seed {seed}",
    ]


def test_what_passing_seeds_print_is_dropped(pytester: pytest.Pytester) -> None:
    """Only the words of the shrunk failing run are shown, once."""
    suite(pytester)
    assert run(pytester).stdout.str().count("\ncounting") == 1


def test_a_case_replays_with_the_same_digest(pytester: pytest.Pytester) -> None:
    """By id, by the beginning of the id and by file; the case is of the shrunk run."""
    suite(pytester, more=PASSES)
    run(pytester)
    (case,) = cases(pytester)
    data = json.loads(case.read_text(encoding="utf-8"))
    assert data["departures"] == [["load", "slow", 0, 1]]
    for name in (case.stem, case.stem[:5], ".simkit/cases/" + case.name):
        result = run(pytester, "--simkit-replay", name)
        result.assert_outcomes(failed=1, deselected=1)
        told(case, result, f"reproduced, AssertionError at *, with the same digest {data['digest']}")


def test_a_mended_program_is_told_fixed(pytester: pytest.Pytester) -> None:
    """A replay whose steps still fit and that no longer fails passes, and says so."""
    suite(pytester)
    run(pytester)
    (case,) = cases(pytester)
    source = (pytester.path / "test_counter.py").read_text(encoding="utf-8")
    (pytester.path / "test_counter.py").write_text(source.replace("seen + 1", "value + 1"), encoding="utf-8")
    result = run(pytester, "--simkit-replay", case.stem)
    result.assert_outcomes(passed=1)
    told(case, result, "fixed")


def test_another_failure_and_a_divergence_are_told(pytester: pytest.Pytester) -> None:
    """A replay that fails elsewhere is a different failure; one that takes another way diverged, and at which event."""
    suite(pytester)
    run(pytester)
    (case,) = cases(pytester)
    path = pytester.path / "test_counter.py"
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace("assert value == 2", "assert value == 2 or 1 / 0"), encoding="utf-8")
    result = run(pytester, "--simkit-replay", case.stem)
    told(case, result, "different failure: ZeroDivisionError at test_counter.py:test_counter")
    path.write_text(source.replace("    value = 0\n", "    value = 0\n    await trio.sleep(1)\n"), encoding="utf-8")
    result = run(pytester, "--simkit-replay", case.stem)
    result.assert_outcomes(failed=1)
    told(
        case, result, "diverged at event *; followed as far as it fits: AssertionError at test_counter.py:test_counter*"
    )


def test_a_replay_tells_why_and_draws_the_run(pytester: pytest.Pytester) -> None:
    """With the numbers that its events have; what became of the case is said once."""
    suite(pytester)
    run(pytester)
    (case,) = cases(pytester)
    result = run(pytester, "--simkit-replay", case.stem)
    result.stdout.fnmatch_lines(
        ["why: It fails only with load/slow#0 = 1*", "  event *time *", ">*AssertionError at *"]
    )
    assert result.stdout.str().count("reproduced") == 1


def test_a_replay_in_which_nothing_fails_any_more_says_so_in_a_line(pytester: pytest.Pytester) -> None:
    """With what to run instead, and without a line of the plugin's own code."""
    suite(pytester)
    run(pytester)
    (case,) = cases(pytester)
    path = pytester.path / "test_counter.py"
    source = path.read_text(encoding="utf-8")
    mended = source.replace("seen + 1", "value + 1").replace(
        "    value = 0\n", "    value = 0\n    await trio.sleep(1)\n"
    )
    path.write_text(mended, encoding="utf-8")
    result = run(pytester, "--simkit-replay", case.stem)
    result.assert_outcomes(failed=1)
    command = "pytest test_counter.py::test_counter --simkit-seeds 20"
    words = "and nothing fails any more: the program has changed"
    result.stdout.fnmatch_lines([f"case {case.stem}: diverged *, {words}; run `{command}`"])
    assert "pytest_plugin.py" not in result.stdout.str()
    run(pytester, *command.split()[1:]).assert_outcomes(passed=1)


def test_a_case_is_of_the_only_test_of_its_name_wherever_pytest_was_started(pytester: pytest.Pytester) -> None:
    """A file outside moves pytest's root folder, and with it every id; with two such tests the near ones are told."""
    inner = pytester.mkdir("inner")
    suite(pytester)
    (pytester.path / "test_counter.py").rename(inner / "test_counter.py")
    os.chdir(inner)
    run(pytester, "--rootdir", str(inner))
    (case,) = (inner / ".simkit/cases").iterdir()
    other = case.rename(pytester.path / "else.json")
    result = run(pytester, "--simkit-replay", "../else.json", "--rootdir", str(pytester.path))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"simkit: case {case.stem}: reproduced, *"])
    for name in ("one", "two"):
        twin = pytester.path / name / "test_counter.py"
        twin.parent.mkdir()
        twin.write_text((inner / "test_counter.py").read_text(encoding="utf-8"), encoding="utf-8")
    (inner / "test_counter.py").unlink()
    os.chdir(pytester.path)
    result = run(pytester, "--simkit-replay", str(other), "--import-mode=importlib")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*near it are one/test_counter.py::test_counter, two/test_counter.py::test_counter"])


def test_a_case_that_cannot_be_found_is_told(pytester: pytest.Pytester) -> None:
    """An unknown id, and the case of a test that is not there."""
    suite(pytester)
    run(pytester)
    result = run(pytester, "--simkit-replay", "feed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no such case: 'feed'*", "*the first ones there are: *"])
    (case,) = cases(pytester)
    pytester.makepyfile(test_counter="import simkit\n" + PASSES)
    result = run(pytester, "--simkit-replay", case.stem)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is of the test test_counter.py::test_counter, which is not among*"])


# ----------------------------------------------------------------------------------------------------- configuration


def test_profiles_hold_settings(pytester: pytest.Pytester) -> None:
    """The table's own values, a profile that the table names, and one that the command line names."""
    pytester.makepyprojecttoml(
        '[tool.simkit]\nseeds = 2\n[tool.simkit.profiles.nightly]\nseeds = "10-13"\nstrategy = "fifo"\n'
    )
    pytester.makepyfile(
        "import simkit\nran = []\n@simkit.test\nasync def test_seen(world):\n    ran.append(world.tape.entropy)\n"
        "def test_ran():\n    print('ran', ran)\n"
    )
    run(pytester, "-s").stdout.fnmatch_lines(["*ran [[]0, 1]*"])
    run(pytester, "-s", "--simkit-profile", "nightly").stdout.fnmatch_lines(["*ran [[]10, 11, 12, 13]*"])


def test_wrong_settings_are_told_all_at_once(pytester: pytest.Pytester) -> None:
    """File, key and nearest match of every unknown key, and what is wrong with every value."""
    pytester.makepyprojecttoml(
        "[tool.simkit]\nseed = 2\nstrategy = 'lucky'\nprofile = 'nigthly'\n[tool.simkit.profiles.nightly]\nshrink_run = 1\n"
    )
    result = run(pytester, "--simkit-seeds", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    assert "tool.simkit.seed: unknown key; did you mean 'seeds'?" in text
    assert "tool.simkit.strategy: expected one of random, fifo, trio, pos, surw," in text
    assert "got 'lucky'" in text
    assert "tool.simkit.profiles.nightly.shrink_run: unknown key; did you mean 'shrink_runs'?" in text
    assert "there is no profile 'nigthly'; did you mean 'nightly'?" in text
    assert str(pytester.path / "pyproject.toml") in text
    assert "4 settings are wrong\n    tool.simkit.seed: " in text
    assert len([line for line in text.splitlines() if line.startswith("    tool.simkit.")]) == 4


def test_a_profile_without_a_file_of_settings_is_told(pytester: pytest.Pytester) -> None:
    """The folder is named, and that no such file is there."""
    result = run(pytester, "--simkit-profile", "nightly")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    assert "--simkit-profile: there is no profile 'nightly'; there are none" in text
    assert f"where:    {pytester.path}, which has no pyproject.toml" in text


@pytest.mark.parametrize("seeds", ["", "x", "5-2", "0", f"{1 << 256}-{1 << 256}"])
def test_seeds_that_are_none_are_told(pytester: pytest.Pytester, seeds: str) -> None:
    """A range that is empty or unreadable is a usage error."""
    result = run(pytester, f"--simkit-seeds={seeds}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--simkit-seeds: *"])


@pytest.mark.parametrize("seed", ["-4", "x", "", "1.5", str(1 << 256)])
def test_a_seed_that_is_none_is_told_once(pytester: pytest.Pytester, seed: str) -> None:
    """It is no failure of every test."""
    suite(pytester, more=PASSES)
    result = run(pytester, "--simkit-seed", seed)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --simkit-seed: expected a seed: a whole number from 0 to 2[*][*]256 - 1; got *"]
    )
    assert "FAILED" not in result.stdout.str()


# ------------------------------------------------------------------------------------------------------ side by side


HYPOTHESIS = """
import simkit
import trio
from hypothesis import given, settings, strategies as st

@settings(max_examples=30, database=None, derandomize=True, deadline=None)
@given(amounts=st.lists(st.integers(0, 9), max_size=4))
@simkit.test(seeds=3)
async def test_transfers(world, amounts, offset):
    total = 0

    async def add(amount):
        nonlocal total
        seen = total
        await trio.sleep(world.tape.stream("load").choose("latency", 3))
        total = seen + amount

    async with trio.open_nursery() as nursery:
        for amount in amounts:
            nursery.start_soon(add, amount)
    assert total == sum(amounts) + offset
"""


def test_a_simulated_run_inside_hypothesis_replays_as_a_case(pytester: pytest.Pytester) -> None:
    """Hypothesis shrinks the example, the kit the run; the case holds both, and replays without hypothesis."""
    pytester.makeconftest("import pytest\n@pytest.fixture(scope='module')\ndef offset():\n    return 0\n")
    pytester.makepyfile(test_transfers=HYPOTHESIS)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "amounts=[" in result.stdout.str()
    assert "_kernel" not in result.stdout.str().split("Explanation:")[0]
    (case,) = cases(pytester)
    data = json.loads(case.read_text(encoding="utf-8"))
    assert max(data["scenario"]["arguments"]["amounts"]) >= 1
    assert list(data["scenario"]["arguments"]) == ["amounts"]
    again = run(pytester, "--simkit-replay", case.stem)
    again.assert_outcomes(failed=1)
    told(case, again, f"reproduced, AssertionError at *, with the same digest {data['digest']}")
    assert "amounts=[" not in again.stdout.str()
    run(pytester, "--simkit-seed", str(data["seed"])).assert_outcomes(failed=1)


def test_workers_of_xdist_report_and_rerun_as_one_process_does(pytester: pytest.Pytester) -> None:
    """Under xdist the failing seed has its id, its block and its case, and --lf finds it."""
    suite(pytester, more=PASSES)
    result = pytester.runpytest_inprocess("-n", "2")
    result.assert_outcomes(failed=1, passed=1)
    seed = failing_seed(result)
    assert len(cases(pytester)) == 1
    result.stdout.fnmatch_lines([f"pytest test_counter.py::test_counter --simkit-seed {seed}"])
    again = pytester.runpytest_inprocess("-n", "2", "--lf")
    again.assert_outcomes(failed=1)
    assert failing_seed(again) == seed


def test_junit_names_the_failing_seed(pytester: pytest.Pytester) -> None:
    """Other reports see the seed's own id as well."""
    suite(pytester)
    seed = failing_seed(run(pytester, "--junitxml=report.xml"))
    assert f'name="test_counter[seed={seed}]"' in (pytester.path / "report.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["simkit.pytest_plugin", "simkit.testing"])
def test_importing_the_plugin_loads_nothing_heavy(module: str) -> None:
    """Neither trio nor hypothesis, apsw or networkx: whoever does not simulate does not wait."""
    heavy = "trio", "hypothesis", "apsw", "networkx", "simkit.world"
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_coroutine_that_is_never_awaited_is_a_failure(pytester: pytest.Pytester) -> None:
    """As any other: with a case that replays; and told in the kit's words alone."""
    pytester.makepyfile(
        test_forgets="import simkit, trio\n@simkit.test(seeds=3)\nasync def test_it(world):\n    trio.sleep(1)\n"
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*coroutine 'sleep' was never awaited*", "*where: *test_forgets.py:4 in test_it"])
    assert "_kernel" not in result.stdout.str()
    assert "pytest_plugin.py" not in result.stdout.str()
    (case,) = cases(pytester)
    told(case, run(pytester, "--simkit-replay", case.stem), "reproduced, NeverAwaitedError *")
