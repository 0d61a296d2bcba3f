"""Bytes per device and of the host process. Starts no device and resets no counter."""

from __future__ import annotations

import sys
from typing import Any

import psutil

from torch_inspector.facts import MemoryFact

_process = psutil.Process()


def host_memory(*, full: bool = False) -> MemoryFact:
    """The resident set of this process; its peak where the system keeps one.

    Args:
        full: True to ask also how much memory the machine has, which takes longer than the rest of a cell's look.
    """
    rss = int(_process.memory_info().rss)
    machine = psutil.virtual_memory() if full else None
    # The kernel updates the two counters at different times: the peak may lag behind.
    peak = _host_peak()
    return MemoryFact(
        device="host",
        allocated_nbytes=rss,
        peak_nbytes=None if peak is None else max(peak, rss),
        free_nbytes=None if machine is None else int(machine.available),
        total_nbytes=None if machine is None else int(machine.total),
    )


def _host_peak() -> int | None:
    """Highest resident set of the process so far."""
    if sys.platform == "win32":
        return int(_process.memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def memory_facts(torch: Any, *, full: bool = False) -> tuple[MemoryFact, ...]:
    """Host first, then every accelerator that the user has already started.

    Args:
        torch: The module, or None while the user has not imported it.
        full: True to ask also how much memory the machine has.
    """
    return (host_memory(full=full), *(_accelerators(torch) if torch is not None else ()))


def _accelerators(torch: Any) -> list[MemoryFact]:
    facts: list[MemoryFact] = []
    for name in ("cuda", "xpu"):
        backend = getattr(torch, name, None)
        if backend is not None and getattr(backend, "is_initialized", bool)():
            facts.extend(_counted(backend, name, index) for index in range(backend.device_count()))
    mps = getattr(torch, "mps", None)
    if mps is not None and torch.backends.mps.is_available():
        allocated = int(mps.current_allocated_memory())
        facts.append(MemoryFact("mps:0", allocated, int(mps.driver_allocated_memory())))
    return [fact for fact in facts if fact.allocated_nbytes or fact.reserved_nbytes]


def _counted(backend: Any, name: str, index: int) -> MemoryFact:
    """What torch's allocator says of one device, from its own counters only."""
    return MemoryFact(
        device=f"{name}:{index}",
        allocated_nbytes=int(backend.memory_allocated(index)),
        reserved_nbytes=int(backend.memory_reserved(index)),
        peak_nbytes=int(backend.max_memory_allocated(index)),
        total_nbytes=int(backend.get_device_properties(index).total_memory),
    )
