"""What all tests share: hypothesis profiles, and folders that keep a test run away from the user's own.

Profiles: `ci` draws the same examples every time, so that a red run is red again; `dev` looks for new ones.
"""

from __future__ import annotations

import os

import hypothesis

hypothesis.settings.register_profile("ci", derandomize=True, database=None, deadline=None, print_blob=True)
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
