"""What the allocators of accelerators say: sums, blocks, free space. Starts no device and synchronises none."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_inspector.account import DeviceTotal

_FREE = "inactive"


@dataclass(frozen=True)
class Blocks:
    """The blocks of one device that are in use, by address, and the largest that is free.

    Args:
        starts: Addresses, ascending.
        sizes: Bytes of each, as the allocator rounds them.
        largest_free: Bytes of the largest free block in the cache.
    """

    starts: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    largest_free: int = 0

    def size_at(self, address: int) -> int | None:
        """Bytes of the block in use that an address lies in; None if there is none."""
        place = bisect_right(self.starts, address) - 1
        if place < 0 or address >= self.starts[place] + self.sizes[place]:
            return None
        return self.sizes[place]


def blocks_of(segments: Iterable[Mapping[str, Any]], device: int) -> Blocks:
    """The blocks of a device in what `torch.cuda.memory_snapshot()` gives.

    Args:
        segments: Each with `device`, `address` and `blocks`; a block has `size` and `state`.
        device: Its index.
    """
    used: list[tuple[int, int]] = []
    largest = 0
    for segment in segments:
        if segment.get("device") != device:
            continue
        address = int(segment["address"])
        for block in segment["blocks"]:
            size = int(block["size"])
            if block["state"] == _FREE:
                largest = max(largest, size)
            else:
                used.append((address, size))
            address += size
    used.sort()
    return Blocks(tuple(start for start, _ in used), tuple(size for _, size in used), largest)


def totals(torch: Any) -> tuple[tuple[DeviceTotal, ...], dict[str, Blocks]]:
    """Sums and blocks of every accelerator that the user has started."""
    found: list[DeviceTotal] = []
    blocks: dict[str, Blocks] = {}
    for name in ("cuda", "xpu"):
        backend = getattr(torch, name, None)
        if backend is None or not getattr(backend, "is_initialized", bool)():
            continue
        segments = _snapshot(backend)
        for index in range(backend.device_count()):
            device = f"{name}:{index}"
            blocks[device] = blocks_of(segments, index)
            found.append(_total(backend, device, index, blocks[device]))
    mps = getattr(torch, "mps", None)
    if mps is not None and torch.backends.mps.is_available():
        found.append(DeviceTotal("mps:0", int(mps.current_allocated_memory()), int(mps.driver_allocated_memory())))
    return tuple(total for total in found if total.allocated_nbytes or total.reserved_nbytes), blocks


def _total(backend: Any, device: str, index: int, blocks: Blocks) -> DeviceTotal:
    reserved = int(backend.memory_reserved(index))
    return DeviceTotal(
        device,
        int(backend.memory_allocated(index)),
        reserved,
        blocks.largest_free if blocks.starts or blocks.largest_free else None,
        _used_by_others(backend, index, reserved),
    )


def _used_by_others(backend: Any, index: int, reserved: int) -> int | None:
    """Bytes in use on the device beyond what torch has reserved: other processes, and this one's driver context."""
    ask = getattr(backend, "mem_get_info", None)
    if ask is None:
        return None
    free, whole = ask(index)
    return max(int(whole) - int(free) - reserved, 0)


def _snapshot(backend: Any) -> Sequence[Mapping[str, Any]]:
    ask = getattr(backend, "memory_snapshot", None)
    try:
        return ask() if ask is not None else ()
    except RuntimeError:  # allocators of other makers keep no blocks
        return ()
