"""How a secret may be written: as it is, quoted, escaped, or encoded, alone or in the midst of something else.

Receivers echo what they were sent in many ways: an error quotes a header as Python or JSON do, a body repeats an URL, a token
comes back in Base64 together with a user's name. `replaced` finds all of these; what somebody encodes twice it does not find.
"""

from __future__ import annotations

import base64
import functools
import html
import re

#: The fewest characters of Base64 by which a secret is known; fewer would be found where it never was.
BASE64_MIN = 5
#: How often a backslash may be there before a character: JSON in JSON in JSON.
_ESCAPES_MAX = 7
_BASE64 = "[A-Za-z0-9+/_-]"


def replaced(text: str, secret: str, name: str) -> str:
    """A text with a secret, printable ASCII that is not empty, replaced by a name wherever it is."""
    plain, escaped, marks = _patterns(secret)
    text = plain.sub(lambda _: name, text)
    return escaped.sub(lambda _: name, text) if any(mark in text for mark in marks) else text


@functools.lru_cache(maxsize=256)
def _patterns(secret: str) -> tuple[re.Pattern[str], re.Pattern[str], str]:
    """What matches a secret as it is or encoded, what matches one that is escaped, and by which characters that is seen."""
    coded = [_hexadecimal(secret), *filter(None, (_base64(secret, skipped) for skipped in range(3)))]
    pieces = re.findall(r"\\+|.", secret)
    marks = "\\%&+" if " " in secret else "\\%&"
    return re.compile("|".join([re.escape(secret), *coded])), re.compile("".join(map(_piece, pieces))), marks


def _piece(piece: str) -> str:
    """One character, or a run of backslashes, in all its forms.

    Runs are taken whole, and never given back (`}+`): there is one way only to read a text, however it is made.
    """
    one = piece[0]
    number = _either_case(f"{ord(one):02x}")
    escapes = f"\\\\{{0,{_ESCAPES_MAX}}}+"
    coded = [f"{escapes}(?:u00|x){number}", f"%(?:25)?{number}", f"&#0{{0,5}}{ord(one)};", f"&#[xX]0{{0,5}}{number};"]
    if (named := html.escape(one)) != one:
        coded.append(named)
    if one == " ":
        coded.append(r"\+")
    if one == "\\":
        many = f"\\\\{{{len(piece)},{len(piece) * (_ESCAPES_MAX + 1)}}}+"
        return f"(?:(?:{'|'.join(coded)}){{{len(piece)}}}|{many})"
    return f"(?:{escapes}{re.escape(one)}|{'|'.join(coded)})"


def _hexadecimal(secret: str) -> str:
    return _either_case(secret.encode("ascii").hex())


def _either_case(digits: str) -> str:
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in digits)


def _base64(secret: str, skipped: int) -> str:
    """What is always there of a secret in Base64, with either alphabet, when so many bytes of a group of three come before it.

    The characters at its ends that have bits of others as well go with it. Empty where nothing would be certain enough.
    """
    first, last = -(-8 * skipped // 6), 8 * (skipped + len(secret)) // 6
    if last - first < BASE64_MIN:
        return ""
    encoded = base64.b64encode(bytes(skipped) + secret.encode("ascii")).decode("ascii")[first:last]
    certain = "".join({"+": "[+-]", "/": "[/_]"}.get(one, one) for one in encoded)
    before = f"{_BASE64}?" if 8 * skipped % 6 else ""
    after = f"(?:{_BASE64}|=)?" if 8 * (skipped + len(secret)) % 6 else ""
    return f"{before}{certain}{after}"
