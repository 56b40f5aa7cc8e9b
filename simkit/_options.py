"""Validators of options: each raises an error that names the option, its value, and what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs

from simkit.errors import wrong

__all__ = [
    "at_least",
    "is_ratio",
    "is_seed",
    "is_whole",
    "need_program",
    "need_ratio",
    "need_seconds",
    "need_seed",
    "need_whole",
    "one_of",
    "ratio",
    "seconds",
]

Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def is_whole(value: object) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_ratio(value: object) -> bool:
    """Whether it is (numerator, denominator): whole numbers, the second at least 1, the first between 0 and it."""
    return isinstance(value, tuple) and len(value) == 2 and all(map(is_whole, value)) and 0 <= value[0] <= value[1] != 0


def need_whole(option: str, value: object, least: int | None = None) -> None:
    """Refuse an argument that is no whole number, or less than `least`."""
    if not is_whole(value) or (least is not None and value < least):  # type: ignore[operator]  # a whole number by then
        raise wrong(option, value, "a whole number" + ("" if least is None else f" from {least} on"))


def is_seed(value: object) -> bool:
    """Whether a tape can be made from it."""
    return is_whole(value) and 0 <= value < 1 << 256  # type: ignore[operator]  # a whole number by then


def need_seed(option: str, value: object) -> None:
    """Refuse what no tape can be made from."""
    if not is_seed(value):
        raise wrong(option, value, "a seed: a whole number from 0 to 2**256 - 1")


def need_program(option: str, value: object) -> None:
    """Refuse what cannot be called with a world."""
    if not callable(value):
        raise wrong(option, value, "an async function of one argument, the world")


def need_seconds(option: str, value: object) -> None:
    """Refuse what is no time on the wall, above zero; math.inf is for ever."""
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value) or value <= 0:
        raise wrong(option, value, "a number of seconds above 0")


def need_ratio(option: str, value: object) -> None:
    """Refuse an argument that says how often something happens, and does not."""
    if not is_ratio(value):
        raise wrong(option, value, _RATIO)


_RATIO = "(numerator, denominator): whole numbers, together between 0 and 1, such as (1, 100); never is (0, 1)"


def at_least(least: int, *, or_none: bool = False) -> Validator:
    """A whole number that is no less."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not ((or_none and value is None) or (is_whole(value) and value >= least)):
            raise wrong(_name(instance, attribute), value, f"a whole number from {least} on{' or None' * or_none}")

    return check


def ratio(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """How often something happens: (1, 100) is once in a hundred times."""
    need_ratio(_name(instance, attribute), value)


def seconds(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """A time on the wall, above zero; math.inf is for ever."""
    need_seconds(_name(instance, attribute), value)


def one_of(*values: str) -> Validator:
    """One of a few words."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in values:
            raise wrong(_name(instance, attribute), value, f"one of {', '.join(values)}")

    return check


def _name(instance: Any, attribute: attrs.Attribute[Any]) -> str:
    return f"{type(instance).__name__}.{attribute.name}"
