"""Strings from strangers made harmless: cut to a length, with nothing in them that moves the cursor or the eye.

Markup is not this file's subject: each view escapes what its own language would read.
"""

from __future__ import annotations

import re

ELLIPSIS = "…"
# C0 and C1 controls; soft hyphen; everything that turns or hides text (bidi marks, embeddings and isolates, zero-width
# space, word joiner, byte order mark, tags); line and paragraph separators; half surrogates, which UTF-8 cannot hold.
# The joiners U+200C and U+200D stay: Persian, Hindi and emoji need them.
_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f"
)
_LINE = re.compile(f"[{_UNSEEN}]")
_BLOCK = re.compile(f"(?!\n)[{_UNSEEN}]")
_NEWLINE = re.compile(r"\r\n?")


def clip(text: str, limit: int) -> str:
    """The text itself, or its first characters and an ellipsis: `limit` characters at most."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + ELLIPSIS


def plain(text: str) -> str:
    r"""The text on one line, with every unseen character written out as Python would: `\n`, `\x1b`, `\u202e`."""
    return _LINE.sub(_escape, text)


def one_line(text: str, limit: int) -> str:
    """`plain` and `clip` together, for strings of any length."""
    return clip(plain(text[: limit + 1]), limit)


def block(text: str, limit: int, line_limit: int = 40) -> str:
    """The same for text of several lines: newlines stay, tabs become spaces, blank ends go."""
    shown = _NEWLINE.sub("\n", text[: limit + 1]).expandtabs(4)
    lines = clip(_BLOCK.sub(_escape, shown), limit).strip("\n").split("\n")
    return "\n".join([*lines[:line_limit], *([ELLIPSIS] if len(lines) > line_limit else [])])


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape", "backslashreplace").decode("ascii")
