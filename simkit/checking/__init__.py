"""Checking histories: is there one order of all operations in which every answer is right? A linearizability judge.

The map: `History` records what clients called and got (`history`), a `Model` says what one client alone would see
(`model`; ready ones in `models`), `check` looks for an order (`judge`) and gives a `Verdict` with its evidence (`verdict`).
`timeline` puts one part of a history in order, `search` tries the orders; both know nothing of models or printing.

A history is linearizable when every operation can be thought to happen at one moment between its call and its return
(Herlihy and Wing: Linearizability: A Correctness Condition for Concurrent Objects, TOPLAS 1990).
"""

from __future__ import annotations

from simkit.checking import models
from simkit.checking.history import Call, History, Operation
from simkit.checking.judge import Bounds, check
from simkit.checking.model import REFUSED, UNKNOWN, WHOLE, Model
from simkit.checking.verdict import Evidence, NotLinearizableError, Verdict

__all__ = [
    "REFUSED",
    "UNKNOWN",
    "WHOLE",
    "Bounds",
    "Call",
    "Evidence",
    "History",
    "Model",
    "NotLinearizableError",
    "Operation",
    "Verdict",
    "check",
    "models",
]
