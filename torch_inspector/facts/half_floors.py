"""The small numbers of fixes, as large as float16 needs them."""

from __future__ import annotations

import re

# In float16 what is below 6e-8 is 0, 1 - 1e-6 is 1, and the slope of a logarithm at less than 1.6e-5 is infinite.
_SMALL = re.compile(r"\b1e-(8|12)\b")
_NEAR_ONE = re.compile(r"\b1e-6\b")
# Its own small number is 1e-12.
_NORMALIZE = re.compile(r"(F\.normalize\([^()=]*dim=-1)\)")


def in_half(text: str, *, half: bool = True) -> str:
    """A fix with numbers that are not lost in float16; the same fix where `half` is false."""
    if not half:
        return text
    return _NORMALIZE.sub(r"\1, eps=1e-4)", _NEAR_ONE.sub("1e-3", _SMALL.sub("1e-4", text)))
