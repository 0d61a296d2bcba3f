"""The full look at the heap: how long it takes on large and ordinary ones, in a process of its own each."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.timing import Pair, Row, Times, clocked, ratio_row, time_row

_LOOKS = 9
# Objects, tensors and graph nodes, and what is allowed in milliseconds.
_HEAPS = {
    "ordinary notebook, 300,000 objects": (65_000, 100, 1_000, 150.0),
    "10^6 objects, 10^4 tensors, 10^5 nodes": (305_000, 10_000, 100_000, 2_000.0),
}


def run() -> Iterator[Row]:
    """Milliseconds of one look, and the scan for tensors as a ratio to `gc.get_objects()`."""
    for what, (objects, tensors, nodes, allowed) in _HEAPS.items():
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(objects), str(tensors), str(nodes)],
            check=True,
            capture_output=True,
            text=True,
        )
        result = json.loads(done.stdout.splitlines()[-1])
        count = f"{result['objects']:,} objects"
        yield time_row("memory", f"{what} ({count})", [Times(*one) for one in result["looks"]], allowed)
        pairs = [Pair(Times(*bare), Times(*scan)) for bare, scan in result["scans"]]
        yield ratio_row("memory", f"scan ÷ gc.get_objects(), {count}", pairs, 1.6)


def _heap(objects: int, tensors: int, nodes: int) -> dict[str, Any]:
    import torch

    graphs = []
    for _ in range(nodes // 100):
        value = torch.randn(3, requires_grad=True)
        for turn in range(99):
            value = value * 1.5 if turn % 2 else value.sin()
        graphs.append(value)
    return {
        "plain": [[(n, [n]) for n in range(100)] for _ in range(objects // 100)],
        "tensors": {f"k{n}": {"t": torch.randn(3)} for n in range(tensors)},
        "graphs": graphs,
    }


def _measure(objects: int, tensors: int, nodes: int) -> dict[str, Any]:
    from torch_inspector.observe.heap.census import tensors_of_heap
    from torch_inspector.observe.heap.explain import Roots, explain

    names = _heap(objects, tensors, nodes)
    explain(Roots(names), 60.0)
    gc.collect()
    looks = [clocked(lambda: explain(Roots(names), 60.0)) for _ in range(_LOOKS)]
    gc.disable()
    scans = [(_timed(gc.get_objects), _timed(tensors_of_heap)) for _ in range(_LOOKS)]
    return {"objects": len(gc.get_objects()), "looks": looks, "scans": scans}


def _timed(action: Callable[[], list[Any]]) -> Times:
    """Times of a call, without those of letting go of its result."""
    kept: list[list[Any]] = []
    times = clocked(lambda: kept.append(action()))
    # A list of all objects holds `kept` as well: without this it would stay, and each later pass go through it.
    kept.pop().clear()
    return times


if __name__ == "__main__":
    print(json.dumps(_measure(*map(int, sys.argv[1:4]))))
