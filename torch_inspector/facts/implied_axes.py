"""The axis that `F.softmax(x)` takes where nobody names one."""

from __future__ import annotations

# The axis that torch picks is the first one of tensors with so many, else the second.
_FIRST = (0, 1, 3)


def implied_axis(rank: int) -> int:
    """The axis of a tensor with so many axes."""
    return 0 if rank in _FIRST else 1
