"""The registry of faults: complete, honest about its checks, and the source of docs/faults.md."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import attrs
import pytest

from simkit._network.weather import STRIKES as NETWORK_STRIKES
from simkit._storage.faults import NEVER
from simkit._storage.faults import STRIKES as DISK_STRIKES
from simkit.disk import DiskFaults
from simkit.faults import FAULTS
from simkit.network import NetworkOptions

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def test_every_fault_that_can_be_drawn_or_struck_is_registered() -> None:
    """Each ratio of disk and network, and each fault that can be asked for by name, stands in the registry."""
    text = "\n".join(f"{fault.by_name} {fault.drawn}" for fault in FAULTS)
    ratios = [
        field.name for kind in (DiskFaults, NetworkOptions) for field in attrs.fields(kind) if field.default == NEVER
    ]
    assert len(ratios) > 15
    assert not [name for name in ratios if f"`{name}`" not in text and f".{name}`" not in text]
    assert not [name for name in (*NETWORK_STRIKES, *DISK_STRIKES) if f'"{name}"' not in text and name != "bit-rot"]


def test_every_check_that_is_claimed_exists() -> None:
    """`checked` names a test of this folder that runs on both stages; what is not checked says why."""
    tests = {
        f"{path.stem}.{node.name}"
        for path in sorted(HERE.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert not [fault.name for fault in FAULTS if fault.checked and fault.checked not in tests]
    assert all(fault.how and fault.what and (fault.by_name or fault.drawn) for fault in FAULTS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.repository
def test_the_page_of_faults_is_current() -> None:
    """docs/faults.md is what the registry says; `python docs/generate.py` writes it anew."""
    generate: dict[str, Any] = runpy.run_path(str(ROOT / "docs/generate.py"))
    assert generate["faults_page"]() == (ROOT / "docs/faults.md").read_text(encoding="utf-8")
