"""Numbers with their units, as people read them.

Sizes count in steps of 1,024 everywhere: 1 KB is 2**10 bytes, 1 MB is 2**20, 1 GB is 2**30, as in `nvidia-smi` and
in PyTorch's own out-of-memory message, which write them MiB and GiB.
"""

from __future__ import annotations

import math

from torch_inspector.findings import size_text, three_digits
from torch_inspector.views.plain import one_line

Number = int | float

# Longer numbers are written with an exponent: nobody counts more digits, and Python refuses to print the longest.
_LONGEST = 10**15
_TEXT_LIMIT = 120
_THOUSAND, _LONG = 1_000, 999_999
# More bytes than this are no size of anything.
_LARGEST_SIZE = 10**18
_MINUTE_S = 60
_HOUR_S = 3600


def size(nbytes: Number) -> str:
    """Bytes to three digits: `512 B`, `12.3 MB`, `1.31 GB`."""
    if not -_LARGEST_SIZE < nbytes < _LARGEST_SIZE:
        return f"{count(nbytes)} B"
    return f"{'-' if nbytes < 0 else ''}{size_text(abs(nbytes))}"


def seconds(duration_s: Number) -> str:
    """A duration: `13.0 µs`, `1.20 ms`, `2.50 s`, `2 min 5 s`, `1 h 2 min`."""
    if not _is_ordinary(duration_s) or duration_s < 0:
        return f"{count(duration_s)} s"
    if duration_s < _MINUTE_S:
        return _short(float(duration_s))
    if duration_s < _HOUR_S:
        return f"{int(duration_s // _MINUTE_S)} min {int(duration_s % _MINUTE_S)} s"
    return f"{int(duration_s // _HOUR_S):,} h {int(duration_s % _HOUR_S // _MINUTE_S)} min"


def count(number: Number, *, complete: bool = True) -> str:
    """A number with commas; `complete=False` says that there may be more: `at least 1,024`."""
    return _figure(number) if complete else f"at least {_figure(number)}"


def several(number: int, noun: str) -> str:
    """A number and its noun, which takes an s: `1 finding`, `3 findings`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def shape(sizes: tuple[int, ...] | None) -> str:
    """A shape as PyTorch prints it: `(5, 1)`; empty if unknown."""
    if sizes is None:
        return ""
    inside = ", ".join(_figure(length).replace(",", "") for length in sizes)
    return f"({inside},)" if len(sizes) == 1 else f"({inside})"


def amount(value: str | Number, unit: str) -> str:
    """One measured value with its unit, which is a field of `Evidence`."""
    if isinstance(value, str):
        return one_line(
            f"{value[: _TEXT_LIMIT + 1]} {unit if unit not in ('count', 'bytes') else ''}".strip(), _TEXT_LIMIT
        )
    if unit == "bytes":
        return size(value)
    if unit == "s":
        return seconds(value)
    return count(value) if unit in ("", "count") else one_line(f"{count(value)} {unit}", _TEXT_LIMIT)


def _is_ordinary(number: Number) -> bool:
    return -_LONGEST < number < _LONGEST


def _figure(number: Number) -> str:
    if isinstance(number, int) and _is_ordinary(number):
        return f"{number:,d}"
    try:
        value = float(number)
    except OverflowError:
        return str(math.copysign(math.inf, number > 0 or -1))
    # Whole numbers and those of six digits are read faster without an exponent.
    is_plain = _THOUSAND <= abs(value) < _LONGEST and (value.is_integer() or abs(value) < _LONG)
    return f"{value:,.0f}" if is_plain else f"{value:.4g}"


def _short(duration_s: float) -> str:
    if duration_s == 0:
        return "0 s"
    for step, unit in ((1.0, "s"), (1e-3, "ms")):
        if duration_s >= step:
            return f"{three_digits(duration_s / step)} {unit}"
    return f"{three_digits(duration_s * 1e6)} µs"
