"""`python -m benchmarks.explained`: how many of the bytes that torch's profiler counts are explained, and named.

The same programs are shown to `pytorch_memlab`, where it is installed.
"""

from __future__ import annotations

import importlib
import json
import warnings
from time import perf_counter
from types import FunctionType
from typing import Any

import torch

from tests.heap.scenarios import ALL
from tests.heap.truth import allocated_by, in_a_child
from torch_inspector.account import UNEXPLAINED, MemoryReport
from torch_inspector.observe.heap.explain import Roots, explain

_LINE = "{:<28} {:>12} {:>10} {:>8} {:>8}   {:>10} {:>8} {:>8}"
_ANONYMOUS = ("held by", "not named", "(no name)")


def main() -> None:
    """Prints one line per program."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(_LINE.format("", "bytes", "ours", "named", "ms", "memlab", "named", "ms"))
    for scenario in ALL:
        result = json.loads(in_a_child(scenario, _measure))  # type: ignore[no-untyped-call]
        print(_line(scenario.__name__, result), flush=True)


def _measure(scenario: FunctionType) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.randn(1, requires_grad=True).exp().backward()
    before, peer_before = explain(Roots({}), 10.0), _ask_peer({})
    names, truth = allocated_by(scenario)  # type: ignore[no-untyped-call]
    peer = _ask_peer(names)  # first: what a look has shown to Python, another can count
    known = {key: names.pop(key) for key in ("Out", "_", "_7") if key in names}
    report = explain(Roots(names, tuple(known.items()), ours=(known,)), 10.0)
    named = _named_bytes(report) - _named_bytes(before)
    counted = report.explained_bytes("cpu") - before.explained_bytes("cpu")
    return {
        "truth": truth,
        "ours": [counted, named, report.duration_s],
        "peer": [a - b for a, b in zip(peer[:2], peer_before[:2], strict=True)] + [peer[2]] if peer else None,
    }


def _named_bytes(report: MemoryReport) -> int:
    rows = (row for row in report.rows if row.device == "cpu" and row.kind != UNEXPLAINED)
    return sum(row.nbytes for row in rows if not any(text in row.path for text in _ANONYMOUS))


def _ask_peer(names: dict[str, Any]) -> tuple[int, int, float] | tuple[()]:
    """Bytes, bytes with a name, and seconds of `pytorch_memlab`, which is given the first model to name its parameters.

    Version 0.3.2 multiplies the bytes of a storage by those of an element: 4 times too many for float32.
    """
    try:
        reporter_of = importlib.import_module("pytorch_memlab").MemReporter
    except ImportError:
        return ()
    begun = perf_counter()
    reporter = reporter_of(next((value for value in names.values() if isinstance(value, torch.nn.Module)), None))
    reporter.collect_tensor()
    try:
        reporter.get_stats()
    except Exception:  # noqa: BLE001  (sparse layouts and nested tensors stop it)
        return 0, 0, perf_counter() - begun
    rows = [row for stats in reporter.device_tensor_stat.values() for row in stats]
    named = sum(row[3] for row in rows if not row[0].rstrip("0123456789").endswith(("Tensor", "Parameter")))
    return sum(row[3] for row in rows), named, perf_counter() - begun


def _line(name: str, result: dict[str, Any]) -> str:
    truth = result["truth"]
    cells = []
    for counted, named, seconds in filter(None, (result["ours"], result["peer"])):
        cells += [f"{100 * counted / truth:.1f} %", f"{100 * named / truth:.0f} %", f"{1e3 * seconds:.0f}"]
    cells += ["-"] * (6 - len(cells))
    return _LINE.format(name, f"{truth:,}", *cells).rstrip()


if __name__ == "__main__":
    main()
