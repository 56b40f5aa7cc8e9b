"""Local time in a zone: a real process with `TZ` set, and a simulated host with that zone.

The wall clock itself is not set on the real machine: everything that runs there would notice.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import zoneinfo

import pytest

from simkit.world import World
from tests.simkit.network_rig import in_process
from tests.simkit.rig import simulate

PROGRAM = """
import datetime, time
def readings(at):
    return [
        list(time.localtime(at)), time.localtime(at).tm_gmtoff, list(time.gmtime(at)), time.ctime(at),
        time.mktime(time.localtime(at)), time.mktime((2026, 14, -3, 25, 61, 61, 0, 0, -1)),
        datetime.datetime.fromtimestamp(at).isoformat(), datetime.date.fromtimestamp(at).isoformat(),
        datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(),
        time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at)),
        datetime.datetime(2026, 7, 1, 12).timestamp(), datetime.datetime(2026, 1, 1, 12, fold=1).timestamp(),
        datetime.datetime(2026, 7, 1, 12).astimezone().isoformat(),
        datetime.datetime(2026, 7, 1, 12).astimezone().tzname(),
        datetime.datetime(2026, 7, 1, 12).astimezone(datetime.timezone.utc).isoformat(),
        datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.timezone.utc).astimezone().isoformat(),
        datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.timezone.utc).timestamp(),
        str(datetime.datetime.now(datetime.timezone.utc).astimezone().tzinfo),
    ]
"""


@pytest.mark.parametrize("minutes", [330, 0, -210])
@pytest.mark.parametrize("at", [0, 1_767_225_599, 1_785_000_000])
def test_local_time_is_that_of_the_zone(minutes: int, at: int) -> None:
    """localtime, ctime, mktime, strftime and datetime agree with the system's, to the field."""
    sign, size = "-" if minutes >= 0 else "+", abs(minutes)  # POSIX counts the other way round
    zone = f"XXX{sign}{size // 60:02}:{size % 60:02}"
    command = [sys.executable, "-c", f"{PROGRAM}\nimport json\nprint(json.dumps(readings({at})))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": zone})
    names: dict[str, object] = {}

    async def program() -> object:
        exec(PROGRAM, names)
        return names["readings"](at)  # type: ignore[operator]

    async def main(world: World) -> object:
        host = world.host("machine")
        host.clock.zone = datetime.timezone(datetime.timedelta(minutes=minutes), "XXX")
        return await in_process(host, program)

    assert json.loads(done.stdout) == json.loads(json.dumps(simulate(main)))


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/St_Johns"])
@pytest.mark.parametrize("moment", ["2026-03-29T02:30", "2026-07-01T12:00", "2026-10-25T02:30", "2026-11-01T01:30"])
def test_summer_time_is_that_of_the_zone(name: str, moment: str) -> None:
    """Moments without a zone, in hours that the clock skips or has twice, mean what they mean to the system."""
    code = (
        f"import datetime\nat = datetime.datetime.fromisoformat({moment!r})\n"
        "def readings(): return [(one.timestamp(), str(one.astimezone()), one.astimezone().tzname()) "
        "for one in (at, at.replace(fold=1))]"
    )
    command = [sys.executable, "-c", f"{code}\nimport json\nprint(json.dumps(readings()))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": name})
    names: dict[str, object] = {}

    async def program() -> object:
        exec(code, names)
        return names["readings"]()  # type: ignore[operator]

    async def main(world: World) -> object:
        world.host("machine").clock.zone = zoneinfo.ZoneInfo(name)
        return await in_process(world.host("machine"), program)

    assert json.loads(done.stdout) == json.loads(json.dumps(simulate(main)))
