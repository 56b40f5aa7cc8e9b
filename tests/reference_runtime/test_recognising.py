"""A secret is found however it is written, and nothing else is taken for one."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_runtime.credentials import Credentials

PRINTABLE = [chr(code) for code in range(32, 127)]
SECRETS = st.text(PRINTABLE, min_size=6, max_size=60)
TOKEN = "sk-live/8fJ+2&q\"x\\y'z 0?"

WRITTEN = {
    "as it is": lambda secret: secret,
    "Python": repr,
    "bytes in Python": lambda secret: repr(secret.encode()),
    "JSON": json.dumps,
    "JSON in JSON": lambda secret: json.dumps(json.dumps({"said": secret})),
    "JSON, all escaped": lambda secret: "".join(f"\\u{ord(one):04X}" for one in secret),
    "JSON, slashes escaped": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "URL": lambda secret: quote(secret, safe=""),
    "URL, small": lambda secret: "".join(f"%{ord(one):02x}" for one in secret),
    "URL, path": quote,
    "URL, form": quote_plus,
    "URL, twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "HTML": html.escape,
    "HTML, numbers": lambda secret: "".join(f"&#{ord(one)};" for one in secret),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "hexadecimal, large": lambda secret: secret.encode().hex().upper(),
    "Base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "Base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN.keys())
@settings(max_examples=20, deadline=None)
@given(secret=SECRETS)
def test_a_secret_is_found_however_it_is_written(write, secret):
    """Alone, and within a text that goes on around it; what is around it stays."""
    said = write(secret)
    hidden = Credentials({"S": secret}).hide(f"<<{said}>>")
    assert said.strip("\"'b") not in hidden
    assert "[S]" in hidden
    assert (hidden[:2], hidden[-2:]) == ("<<", ">>")


@given(secret=SECRETS, before=st.binary(max_size=5), after=st.binary(max_size=5), is_for_urls=st.booleans())
def test_a_secret_is_found_within_base64(secret, before, after, is_for_urls):
    """Whatever stands before and after it, as a user's name and a colon do; of the secret at most two bits a side are left."""
    encode = base64.urlsafe_b64encode if is_for_urls else base64.b64encode
    said = encode(before + secret.encode() + after).decode()
    hidden = Credentials({"S": secret}).hide(said)
    assert "[S]" in hidden
    left = hidden.split("[S]")
    for piece in (left[0], left[-1]):
        assert len(piece) <= 12


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN.keys())
def test_the_hardest_one(write):
    """A token with everything that is ever quoted in it."""
    assert TOKEN not in (hidden := Credentials({"S": TOKEN}).hide(write(TOKEN)))
    assert "[S]" in hidden


def test_one_secret_within_another():
    """The longer one goes first, so that nothing of it is left."""
    hide = Credentials({"short": "abcdef", "long": "abcdef-0123456"}).hide
    assert hide("x abcdef-0123456 abcdef") == "x [long] [short]"


def test_a_number_that_is_a_secret():
    """A receiver may answer a token of digits as a number."""
    assert Credentials({"pin": "48151623"}).hide({"code": 48151623, "n": 481516, "yes": True}) == {
        "code": "[pin]",
        "n": 481516,
        "yes": True,
    }


@given(text=st.text(max_size=200))
def test_nothing_else_is_taken_for_one(text):
    """What does not have it stays as it is."""
    assert Credentials({"S": "\x7e-9f3b1c7e5a-never"}).hide(text) == text


def test_a_short_secret_is_not_guessed_in_base64():
    """Three characters of Base64 are in every long text; they say nothing."""
    text = base64.b64encode(bytes(range(256)) * 40).decode()
    assert Credentials({"S": "ab"}).hide(text.replace("ab", "")) == text.replace("ab", "")
