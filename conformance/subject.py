"""From a manifest to what the driver must know of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.world import Bounds, Subject

if TYPE_CHECKING:
    from conformance.manifest import Manifest

_MS = 1_000_000
#: A stale worker that was let go gets this much time, or two leases if that is more.
_GRACE_MS_MIN = 200


def subject_of(manifest: Manifest) -> Subject:
    limits = manifest.limits
    return Subject(
        name=manifest.harness.name,
        declared=manifest.declared(),
        units=manifest.launch_order(),
        resumes_on_request=manifest.harness.recovery == "on_request",
        bounds=Bounds(
            settle_ns=limits.settle_ms * _MS,
            poll_ns=limits.poll_ms * _MS,
            ask_ns=max(limits.boot_ms, 2_000) * _MS,
            grace_ns=max(_GRACE_MS_MIN, 2 * limits.lease_ms) * _MS,
        ),
    )
