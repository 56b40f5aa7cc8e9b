"""Durations on the command line: as people write them, beside the options in nanoseconds that there were."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from reference_runtime.__main__ import COMMANDS, main
from reference_runtime.cli_options import COUNT_MAX, parser
from reference_runtime.durations import nanoseconds, spelled

S = 10**9
WORKER = ("worker", "--services", "http://x:1")
SERVE = ("serve", "--store", "s.db")
#: Each option, and the command that has it.
OPTIONS = {
    "--lease": SERVE,
    "--backoff-max": SERVE,
    "--call-timeout": WORKER,
    "--turn": WORKER,
    "--grace": WORKER,
}


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5", 5 * S),
        ("0.25", S // 4),
        ("5s", 5 * S),
        ("250ms", S // 4),
        ("1.5us", 1500),
        ("7ns", 7),
        ("1.5m", 90 * S),
        ("2h", 7200 * S),
        ("0", 0),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, ns):
    """Seconds where no unit stands."""
    assert nanoseconds(text) == ns


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 s", "1e3", "5 sec", "5S", ".5", "٣s", "1.5ns", "5s5", "1d", "inf"])
def test_what_is_no_duration_is_named(text):
    """With what was expected; half a nanosecond is none either."""
    with pytest.raises(ValueError, match=r"is no duration; expected a number and ns, us|is no whole number"):
        nanoseconds(text)


@given(st.integers(0, COUNT_MAX))
def test_a_duration_that_is_shown_can_be_given(ns):
    """As it is shown."""
    assert nanoseconds(spelled(ns)) == ns


def test_a_commit_delay_is_none_unless_given():
    """It may be short, and in either unit."""
    read = parser(COMMANDS).parse_args
    given = [[], ["--commit-delay", "0"], ["--commit-delay", "2.5ms"], ["--commit-delay-ns", "100000000"]]
    assert [read([*SERVE, *more]).commit_delay_ns for more in given] == [0, 0, 2_500_000, S // 10]


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_takes_a_duration_or_nanoseconds(option):
    """Both mean the same, and its default is what it was."""
    read, argv = parser(COMMANDS).parse_args, OPTIONS[option]
    name = f"{option[2:].replace('-', '_')}_ns"
    default = {
        "lease_ns": 10 * S,
        "backoff_max_ns": 60 * S,
        "call_timeout_ns": 10 * S,
        "turn_ns": 5 * S,
        "grace_ns": 10 * S,
    }
    given = [[], [option, "1.5s"], [option, "250ms"], [f"{option}-ns", "7"]]
    found = [getattr(read([*argv, *more]), name) for more in given]
    assert found == [default[name], 3 * S // 2, S // 4, 7]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}", "soon"], "argument {}: 'soon' is no duration; expected a number and ns, us, ms, s, m, h"),
        (["{}", "2000000000"], "argument {}: '2000000000' is not from"),
        (["{}", "1s", "{}-ns", "5"], "argument {}-ns: not allowed with argument {}"),
    ],
)
def test_a_duration_that_cannot_be_is_a_usage_error(option, words, said, capsys):
    """What was meant as nanoseconds would be decades; of two that are given nobody knows which is meant."""
    with pytest.raises(SystemExit) as left:
        main([*OPTIONS[option], *(word.format(option) for word in words)])
    assert left.value.code == 2
    assert said.format(option, option) in capsys.readouterr().err
