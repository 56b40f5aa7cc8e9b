"""What counts as a secret that can be read, and what does not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.canaries import PIECE, STEP, canary, is_found

HEX = "0123456789abcdef"
CANARY = canary("9a4ca01b4780c7e15f02d836")
BODY = CANARY.removeprefix("canary-")
canaries = st.text(HEX, min_size=24, max_size=24).map(canary)


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _in_urlsafe_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _every_byte(mark: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{mark}{byte:02x}" for byte in text.encode())


ENCODINGS = {
    "plain": str,
    "upper case": str.upper,
    "JSON": json.dumps,
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal, upper case": lambda text: text.encode().hex().upper(),
    "Base64": _in_base64,
    "Base64, URL-safe": _in_urlsafe_base64,
    "Base64 in a URL": lambda text: quote(_in_base64(text), safe=""),
    "percent signs": _every_byte("%"),
    "percent signs twice": _every_byte("%25"),
    "JSON escapes": _every_byte(r"\u00"),
    "JSON escapes in JSON": _every_byte(r"\\u00"),
    "escapes of Python": _every_byte(r"\x"),
}


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@given(value=canaries, before=st.text(max_size=4), after=st.text(max_size=4))
def test_a_secret_is_found_in_every_encoding(
    encoding: Callable[[str], str], value: str, before: str, after: str
) -> None:
    """Whatever comes before and after it goes through the same encoding."""
    assert is_found(value, encoding(f"{before}{value}{after}").encode())


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("kept", [slice(None, -8), slice(8, None), slice(3, 3 + PIECE + STEP - 1)])
def test_a_large_part_of_a_secret_is_found(encoding: Callable[[str], str], kept: slice) -> None:
    """Whichever part of it was masked, and however the rest is written."""
    assert is_found(CANARY, encoding(f"token={BODY[kept]}********").encode())


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_what_is_not_the_secret_is_not_found(encoding: Callable[[str], str]) -> None:
    """Its beginning as it is shown by who masks well, its prefix, and another secret."""
    other = canary(BODY[::-1])
    for text in (f"{CANARY[:11]}…{CANARY[-4:]}", "canary-", other):
        assert not is_found(CANARY, encoding(text).encode())


def test_a_secret_has_enough_characters() -> None:
    """One that is found by accident is refused where it is made up."""
    with pytest.raises(AssertionError, match="by accident"):
        canary("abc")
