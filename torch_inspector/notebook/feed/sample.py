"""One look at memory: the process and the devices that the user has started. A few counters, no object of the user."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from torch_inspector.facts import MemoryFact
from torch_inspector.observe.memory import host_memory, memory_facts

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Sample(NamedTuple):
    """Memory at one moment."""

    at_ms: int
    """Milliseconds since 1970."""
    memory: tuple[MemoryFact, ...]
    gap: bool = False
    """True if looks before this one are missing: something held the interpreter."""
    steps: int = 0
    """Optimizer steps of the running cell so far."""

    def bytes_by_device(self) -> dict[str, int]:
        """Bytes in use by device."""
        return {fact.device: fact.allocated_nbytes for fact in self.memory}


def take_sample(torch: Any, *, gap: bool = False) -> Sample:
    """A look now; `torch` is None while it is not watched."""
    return Sample(now_ms(), memory_facts(torch), gap)


def now_ms() -> int:
    """This moment as the sidebar counts time."""
    return int(time.time() * 1000)


def host_limit() -> int | None:
    """Bytes that this process can have at most: of the machine, or of the container."""
    total = host_memory(full=True).total_nbytes
    limits = [limit for path in _GROUP_LIMITS if (limit := _number_in(path)) is not None]
    return min([*limits, *([] if total is None else [total])], default=None)


def _number_in(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdigit() else None
