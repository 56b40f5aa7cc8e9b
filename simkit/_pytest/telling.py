"""What a report gets: the block and the page of a failure, and how far an exhaustive strategy came."""

from __future__ import annotations

import inspect
import os
import shlex
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import _pytest
import attrs
import pluggy
import pytest

from simkit._pytest import block, nodes, page
from simkit._pytest.inquest import Found
from simkit.blame import KIT, is_of_program
from simkit.errors import SimkitError, told
from simkit.settings import Settings
from simkit.trials import Explored

#: What the kit says of a whole run, after it.
_AFTERWARDS = ("never-awaited", "simulation-bound")
#: What is around every test.
_RUNNER = tuple(str(Path(inspect.getfile(module)).parent) + os.sep for module in (_pytest, pluggy))


def tell(
    item: pytest.Item,
    report: pytest.TestReport,
    found: Found,
    settings: Settings,
    profile: str | None,
    pages: Path | None,
) -> None:
    """Add the block to the report, and write the page if `pages` is its folder."""
    here = item.config.invocation_params.dir
    commands = block.commands(found, typed(item), profile)
    path = None
    if pages is not None:
        test = nodes.parsed(item.nodeid).base
        try:
            written = page.write(found, test, commands, report.longreprtext, pages)
        except OSError as problem:
            found = attrs.evolve(found, trouble=f"a page: it could not be written ({problem})")
        else:
            path = Path(written.path)
            vars(report)["simkit_page"] = {"path": written.path, "test": written.test, "title": written.title}
    report.sections.append(("simkit", block.of_failure(found, commands, here, settings.table_rows, path)))


def tell_explored(item: pytest.Item, report: pytest.TestReport, explored: Sequence[Explored]) -> None:
    """Whether an exhaustive strategy is through: a pass means more then."""
    for one in explored:
        if one.exhausted:
            told = f"nothing is left to explore after {one.runs} runs, and none fails"
        elif one.same_world:
            told = f"none of {one.runs} runs fails; more are left to explore than the test has seeds"
        else:
            continue
        vars(report)["simkit_answer"] = f"{typed(item)}: {one.strategy}: {told}"


def raisable(error: BaseException) -> BaseException:
    """The error as pytest should show it: one of the kit with no line of the program behind it, such as a deadlock, says all in
    its words, and what the kit raises for a call of the program ends at that call.
    """
    if isinstance(error, SimkitError) and not _own_lines(error):
        return in_words(error)
    for one in _leaves(error):
        if isinstance(one, SimkitError | OSError):
            one.__traceback__ = _of_the_program(one.__traceback__)
    if isinstance(error, SimkitError) and error.problem.code in _AFTERWARDS:
        return in_words(error)
    return error


def in_words(error: SimkitError) -> BaseException:
    """The error without a traceback; where it was caused by another one, such as a strategy's, with that one's own lines."""
    cause = error.__cause__
    caused = [] if cause is None else ["", *_own_lines(cause), told(cause)]
    return pytest.fail.Exception("\n".join([str(error), *caused]), pytrace=False)


def _own_lines(error: BaseException) -> list[str]:
    """The lines of the program, or of the test, in a traceback."""
    return [
        f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_qualname}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_of_program(frame.f_code) and not frame.f_code.co_filename.startswith(_RUNNER)
    ]


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _of_the_program(raised: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the kit at its end; all of it where there are no others."""
    frames = []
    while raised is not None:
        frames.append(raised)
        raised = raised.tb_next
    kept = list(frames)
    while kept and kept[-1].tb_frame.f_code.co_filename.startswith(KIT):
        kept.pop()
    shown = None
    for one in reversed(kept or frames):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown


def all_seeds(item: pytest.Item, count: int) -> str:
    """The command that runs so many seeds of the test."""
    return shlex.join(["pytest", typed(item), "--simkit-seeds", str(count)])


def typed(item: pytest.Item) -> str:
    """The test as one would type it in the folder where pytest was started."""
    path, sep, rest = nodes.parsed(item.nodeid).base.partition("::")
    here = os.path.relpath(item.config.rootpath / path, item.config.invocation_params.dir)
    return Path(here).as_posix() + sep + rest
