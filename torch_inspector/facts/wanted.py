"""What an error of torch's asks of a tensor: a type of numbers, or a device."""

from __future__ import annotations

import re

_NAMES = {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
    "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "boolean": "bool",
    "float64": "float64", "float32": "float32", "float16": "float16", "int64": "int64", "int32": "int32",
    "uint8": "uint8",
}  # fmt: skip
_WORDS = re.compile(rf"(?:\b|c10::)({'|'.join(_NAMES)})(?:tensor)?s?\b", re.IGNORECASE)
_FLOATS = frozenset(["float16", "bfloat16", "float32", "float64"])
# Types that some operations do not have, and others are asked for instead.
_SHORT = frozenset(["float16", "bfloat16"])


def asks_for_dtype(message: str, wanted: str, present: str) -> bool:
    """True if a message names a type as one that it would take, or refuses another kind than that.

    Args:
        message: What torch says.
        wanted: The type that is in question.
        present: That of the tensor.
    """
    named = {_NAMES[word.lower()] for word in _WORDS.findall(message)} - {present}
    if named:
        return wanted in named
    return present in _SHORT or (wanted in _FLOATS) != (present in _FLOATS)


def asks_for_device(message: str, wanted: str) -> bool:
    """True if a message about devices names one, or names others where the CPU is meant."""
    said, device = message.lower(), wanted.partition(":")[0]
    return device in said or (device == "cpu" and re.search(r"cuda|mps|xpu", said) is not None)
