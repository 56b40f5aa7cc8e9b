"""The command line against a server on real TCP, as the tests of it ask."""

from __future__ import annotations

import functools
import json

import pytest
import trio

from reference_runtime.__main__ import main
from reference_runtime.model import Json
from tests.runtime_rig import served


class Asking:
    """The command line, against a server on real TCP: exit code and lines of what it says."""

    def __init__(self, port: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.port = port
        self.capsys = capsys

    async def __call__(self, *argv: str) -> tuple[int, list[Json]]:
        self.capsys.readouterr()
        command = functools.partial(main, [*argv, "--server", f"127.0.0.1:{self.port}"])
        code = await trio.to_thread.run_sync(command)
        return code, [json.loads(line) for line in self.capsys.readouterr().out.splitlines()]

    async def lines(self, *argv: str) -> list[str]:
        """The lines of a command that is done, as they are."""
        self.capsys.readouterr()
        command = functools.partial(main, [*argv, "--server", f"127.0.0.1:{self.port}"])
        assert await trio.to_thread.run_sync(command) == 0
        return self.capsys.readouterr().out.splitlines()

    async def one(self, *argv: str) -> Json:
        """The one line of a command that is done."""
        code, (line,) = await self(*argv)
        assert code == 0
        return line

    async def refused(self, *argv: str) -> str:
        """What a command that is refused says on standard error."""
        code, err = await self._said(*argv)
        assert code == 1
        return err

    async def warned(self, *argv: str) -> str:
        """What a command that is done says there beside its answer."""
        code, err = await self._said(*argv)
        assert code == 0
        return err

    async def _said(self, *argv: str) -> tuple[int, str]:
        self.capsys.readouterr()
        command = functools.partial(main, [*argv, "--server", f"127.0.0.1:{self.port}"])
        return await trio.to_thread.run_sync(command), self.capsys.readouterr().err


def asking(path, capsys, program):
    """Run `program(ask, server)` beside a server."""

    async def run():
        async with served(path / "s.db") as (server, port):
            with trio.fail_after(20):
                await program(Asking(port, capsys), server)

    trio.run(run)
