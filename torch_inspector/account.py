"""The account of live memory as data: who holds which bytes. Holds no tensor and knows nothing of torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

UNEXPLAINED = "not explained"


class MemoryRow(NamedTuple):
    """Some bytes with what holds them. Every byte is in one row only."""

    path: str
    """How to type the holder: `history['loss'][3]`; a description where no expression leads to it."""
    kind: str
    """`parameter`, `gradient`, `optimizer state`, `buffer`, `tensor`, `activation`, `IPython`, `exception`, `frame`,
    `library`, `cycle`, or `not explained`."""
    device: str
    nbytes: int
    pieces: int = 1
    """Pieces of memory in the row."""
    shown_nbytes: int = 0
    """Bytes that the holder itself shows: less than `nbytes` for a small view of a large storage."""
    also: tuple[str, ...] = ()
    """Other holders of the same bytes."""


class DeviceTotal(NamedTuple):
    """What a device's allocator says, in bytes; None where it does not."""

    device: str
    allocated_nbytes: int | None = None
    reserved_nbytes: int | None = None
    largest_free_nbytes: int | None = None
    """The largest free block inside the cache: a larger request needs new memory from the device."""
    others_nbytes: int | None = None
    """Used by other processes."""


@dataclass(frozen=True)
class MemoryReport:
    """Who holds the memory of all live tensors.

    Args:
        rows: Largest first.
        totals: What the allocators say.
        foreign: Memory that tensors share with another library, such as NumPy; in no sum.
        notes: Why a sum is a lower bound: the time was over, a graph could not be read.
        duration_s: How long the look took, in seconds.
        exact: False if memory of other libraries could not be told from torch's.
    """

    rows: tuple[MemoryRow, ...] = ()
    totals: tuple[DeviceTotal, ...] = ()
    foreign: tuple[MemoryRow, ...] = ()
    notes: tuple[str, ...] = ()
    duration_s: float = 0.0
    exact: bool = True

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device that holds something."""
        return tuple(dict.fromkeys((*(row.device for row in self.rows), *(t.device for t in self.totals))))

    def explained_bytes(self, device: str) -> int:
        """Bytes on a device whose holder is known."""
        return sum(row.nbytes for row in self.rows if row.device == device and row.kind != UNEXPLAINED)

    def unexplained_bytes(self, device: str) -> int:
        """Bytes on a device that nothing was found to hold: what the allocator counts and no row explains."""
        total = self.total_bytes(device)
        if total is not None:
            return max(total - self.explained_bytes(device), 0)
        return sum(row.nbytes for row in self.rows if row.device == device and row.kind == UNEXPLAINED)

    def total_bytes(self, device: str) -> int | None:
        """Bytes that the allocator of a device has given out; None where none counts them (the CPU)."""
        return next((one.allocated_nbytes for one in self.totals if one.device == device), None)

    def by_kind(self, device: str) -> dict[str, int]:
        """Bytes of each kind on a device, largest first."""
        sums: dict[str, int] = {}
        for row in self.rows:
            if row.device == device:
                sums[row.kind] = sums.get(row.kind, 0) + row.nbytes
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def holding(self, kinds: Iterable[str]) -> tuple[MemoryRow, ...]:
        """The rows of some kinds."""
        wanted = frozenset(kinds)
        return tuple(row for row in self.rows if row.kind in wanted)


class HolderRow(NamedTuple):
    """One way from a root to an object."""

    path: str
    kind: str
    """As in `MemoryRow`; `name` for a variable of the user."""
    fix: str
    """What lets go of it there; empty where there is no such line."""


@dataclass(frozen=True)
class HoldersReport:
    """Everything that keeps an object alive, the shortest way first.

    Args:
        subject: What was asked about.
        nbytes: Bytes that would come free if all of it let go; 0 for objects without memory of their own.
        device: Where the bytes are.
        rows: The holders.
        notes: Why there may be more.
    """

    subject: str
    nbytes: int = 0
    device: str = ""
    rows: tuple[HolderRow, ...] = ()
    notes: tuple[str, ...] = ()
