"""What all tests share: hypothesis profiles, and folders that keep a test run away from the user's own.

Profiles: `ci` draws the same examples every time, so that a red run is red again; `dev` looks for new ones.
"""

from __future__ import annotations

import os

import hypothesis

# How long it takes to make examples is a matter of what else the machine does, and of no test.
_UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True)
hypothesis.settings.register_profile("ci", _UNTIMED, derandomize=True, database=None)
hypothesis.settings.register_profile("dev", _UNTIMED)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
