"""Tensors that the user can name, and the memory of devices."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place, Shape


class TensorFact(NamedTuple):
    """One tensor that the user can name."""

    path: str
    """What the user can type to get it: `history['loss'][3]`."""
    shape: Shape
    dtype: str
    device: str
    nbytes: int
    storage_nbytes: int
    """Bytes of the whole storage behind it; larger than `nbytes` for a view."""
    requires_grad: bool
    is_leaf: bool
    made_by: str
    """Name of the autograd node which made it; empty for leaves."""
    key: int
    first_seen_cell: int | None = None


class PinFact(NamedTuple):
    """A storage that only small views of it keep alive."""

    paths: tuple[str, ...]
    """The views."""
    nbytes: int
    """Bytes that they show together."""
    storage_nbytes: int
    device: str
    key: int
    """Identity of the storage."""
    made_at: Place | None = None
    """The line that made the first of them."""
    mapping: bool = False
    """True if the first of them is an entry of a dictionary."""
    tensor_count: int = 0
    """Tensors in the container of the first of them; 0 where that is none."""
    only_tensors: bool = True
    """False if that container holds other things, too."""


class MemoryFact(NamedTuple):
    """Memory of one device or of the host process."""

    device: str
    """`host`, `cuda:0`, `mps:0`, …"""
    allocated_nbytes: int
    """In use: resident set of the process, or what torch has handed out on the device."""
    reserved_nbytes: int | None = None
    """Taken from the device by torch's allocator."""
    peak_nbytes: int | None = None
    """Highest `allocated_nbytes` so far, as the process or torch counts it."""
    free_nbytes: int | None = None
    total_nbytes: int | None = None


class MomentFact(NamedTuple):
    """Memory in use at one moment of a cell."""

    at_s: float
    """Seconds since the cell began."""
    device: str
    nbytes: int
    steps: int = 0
    """Optimizer steps of the cell until then."""


# Axes of a batch of sequences.
_SEQUENCES = 3


def is_recut(before: Shape, after: Shape) -> bool:
    """True for (8, 16, 4) cut into (16, 8, 4): windows of another length may come to the same sizes by chance."""
    return len(before) == len(after) == _SEQUENCES and before[-1] == after[-1]


def is_merged(before: Shape, after: Shape) -> bool:
    """True for (batch, channels, time, size) or (batch, heads, time, size) cut into (batch, time, channels * size)."""
    if len(before) != _SEQUENCES + 1 or len(after) != _SEQUENCES or min(before[1:]) < 2:  # noqa: PLR2004
        return False
    batch, channels, time, size = before
    return after == (batch, time, channels * size) and channels != time


def is_crossed(before: Shape, after: Shape) -> bool:
    """True for (batch, channels, height, width) cut into (batch, channels * width, height, 1)."""
    if len(before) != _SEQUENCES + 1 or min(before[1:]) < 2:  # noqa: PLR2004
        return False
    batch, channels, height, width = before
    return after == (batch, channels * width, height, 1) and height not in (width, channels * width)
