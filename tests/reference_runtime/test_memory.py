"""Memory that was freed stays with the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Page faults of taking and freeing 8 MB, more than is free from before, twenty times, before and after.
COUNTING = """
import resource
from reference_runtime.memory import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        taken = [b"x" * 20_000 for _ in range(400)]
        del taken
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before, said, warm, after = faults(), keep_freed(), faults(), faults()
print(before, int(said), after)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides by itself what it keeps")
def test_what_was_freed_is_taken_again_without_a_page_fault() -> None:
    """Nothing is handed back to the system that is asked for again at once."""
    shown = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True).stdout
    before, said, after = map(int, shown.split())
    assert said == 1
    assert before > 1000, "nothing was handed back to begin with, so this shows nothing"
    assert after < 20
