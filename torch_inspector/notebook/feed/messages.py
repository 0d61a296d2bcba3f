"""Facts as the messages that the sidebar reads; `messages.schema.json` describes them for both sides.

Each message stands alone, because some may be lost. Names, sizes and numbers go out, never values of tensors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_inspector.account import DeviceTotal, HolderRow, HoldersReport, MemoryReport, MemoryRow
from torch_inspector.facts import Cell, LayerCounts, MemoryFact, ModuleFact, OptimizerFact, Run, Snapshot
from torch_inspector.findings import Finding
from torch_inspector.notebook.feed.sample import Sample
from torch_inspector.notebook.freeing import Item, plan, word_for
from torch_inspector.notebook.muting import Wish
from torch_inspector.views.fix import fix_sentence
from torch_inspector.views.message import run_message
from torch_inspector.views.plain import one_line

VERSION = 1
"""Raised when a field is renamed, removed or changes its meaning; new fields do not raise it."""
Message = dict[str, Any]
SCHEMA = Path(__file__).with_name("messages.schema.json")
"""What both sides hold to."""

_NAME_LIMIT = 200
_SENTENCE_LIMIT = 1_000
_DEVICE_COUNT = 16
_MODULE_COUNT = 60
_OPTIMIZER_COUNT = 20
_ROW_COUNT = 300
_NOTE_COUNT = 10
_ROOT = re.compile(r"[^\W\d]\w*")


def envelope(run: str, op: str, at_ms: int, **fields: Any) -> Message:
    """A message: its version, which load of the extension it comes from, what it is, and when."""
    return {"v": VERSION, "run": run, "op": op, "at": at_ms, **fields}


def progress(cell: Cell, elapsed_s: float, steps: int) -> Message:
    """The running cell."""
    return {"number": cell.number, "id": _id(cell), "elapsed_s": round(elapsed_s, 3), "steps": steps}


def devices(memory: Iterable[MemoryFact], host_limit: int | None) -> list[Message]:
    """Bytes of each device; those of CUDA are what torch's allocator counts."""
    return [
        {
            "device": _name(fact.device),
            "allocated": fact.allocated_nbytes,
            "reserved": fact.reserved_nbytes,
            "peak": fact.peak_nbytes,
            "limit": _limit(fact, host_limit),
        }
        for fact in list(memory)[:_DEVICE_COUNT]
    ]


def series(samples: Sequence[Sample], host_limit: int | None) -> list[Message]:
    """The same over time, one column per number; None where a device was not there, or a look was missed."""
    last = {fact.device: fact for sample in samples for fact in sample.memory}
    found = [{fact.device: fact for fact in sample.memory} for sample in samples]
    return [
        {
            "device": _name(device),
            "limit": _limit(fact, host_limit),
            "peak": fact.peak_nbytes,
            "at": [sample.at_ms for sample in samples],
            "allocated": [None if device not in one else one[device].allocated_nbytes for one in found],
            "reserved": [None if device not in one else one[device].reserved_nbytes for one in found],
            "gaps": [index for index, sample in enumerate(samples) if sample.gap],
        }
        for device, fact in list(last.items())[:_DEVICE_COUNT]
    ]


def cell_row(run: Run, at_ms: int, peaks: Mapping[str, int], steps: int) -> Message:
    """A cell that has ended, with what it did to memory and what was found."""
    judged = run_message(run, session="")
    return {
        "number": run.cell.number,
        "id": _id(run.cell),
        "began": at_ms - round(run.duration_s * 1000),
        "duration_s": round(run.duration_s, 4),
        "error": None if run.error is None else _name(run.error.kind),
        "steps": steps,
        "memory": _changes(run, peaks),
        "findings": [_finding(one) for one in judged["findings"]],
    }


def early_findings(findings: Sequence[Finding], cell: Cell) -> list[Message]:
    """Findings of a cell that runs."""
    judged = run_message(Run(cell, findings=tuple(findings)), session="")
    return [_finding(one) for one in judged["findings"]]


def state(snapshot: Snapshot) -> Message:
    """Modules and optimizers that live after a cell."""
    return {
        "modules": [_module(fact) for fact in snapshot.modules[:_MODULE_COUNT]],
        "optimizers": [_optimizer(fact) for fact in snapshot.optimizers[:_OPTIMIZER_COUNT]],
        "complete": snapshot.complete and len(snapshot.modules) <= _MODULE_COUNT,
    }


def account(report: MemoryReport, latest: Snapshot | None = None) -> Message:
    """Who holds the memory, with the cells that made it as far as the snapshot knows them, and what can be freed."""
    cells = _first_cells(latest or Snapshot())
    return {
        "rows": [_account_row(row, cells) for row in report.rows[:_ROW_COUNT]],
        "free": [_item(item) for item in plan(report)],
        "totals": [_total(one) for one in report.totals[:_DEVICE_COUNT]],
        "notes": [_name(note) for note in report.notes[:_NOTE_COUNT]],
        "duration_s": round(report.duration_s, 4),
    }


def holders(path: str, report: HoldersReport | None, *, gone: bool = False) -> Message:
    """Everything that keeps alive what a path leads to.

    Args:
        path: As it was asked for.
        report: None if no object was found.
        gone: True if the path surely leads nowhere any more; what it has led to may still be alive.
    """
    rows = () if report is None else report.rows[:_ROW_COUNT]
    none = report is None
    return {
        "path": _name(path),
        "rows": [_holder(row) for row in rows],
        "gone": none and gone,
        "unknown": none and not gone,
    }


def muted(wish: Wish, path: str, error: str) -> Message:
    """What is silent now, and the file that says so for other notebooks; or why it is not."""
    return {
        "slug": _name(wish.slug),
        "scope": wish.scope,
        "cell": wish.cell,
        "line": wish.line,
        "on": wish.on,
        "path": _name(path),
        "error": _name(error),
    }


def freed(item: str, path: str, nbytes: int) -> Message:
    """What came free when the user asked for it."""
    return {"item": item, "path": _name(path), "bytes": _whole(nbytes)}


def _finding(found: Mapping[str, Any]) -> Message:
    names = ("slug", "severity", "message", "subject", "fix", "cell", "line", "code")
    # In words where it is no code; the card under the cell has that already.
    sentence = one_line(fix_sentence(found["fix"]), _SENTENCE_LIMIT)
    return {**{name: found[name] for name in names}, "fix_sentence": sentence}


def _changes(run: Run, peaks: Mapping[str, int]) -> list[Message]:
    before = {fact.device: fact for fact in run.before.memory}
    return [_change(before.get(fact.device), fact, peaks.get(fact.device, 0)) for fact in run.after.memory]


def _change(before: MemoryFact | None, after: MemoryFact, seen: int) -> Message:
    had = 0 if before is None else before.allocated_nbytes
    # The device's own peak is that of its whole life: it is this cell's if it rose in it.
    rose = after.peak_nbytes or 0
    own = rose if before is None or rose > (before.peak_nbytes or 0) else 0
    peak = max(had, after.allocated_nbytes, seen, own)
    return {"device": _name(after.device), "before": had, "after": after.allocated_nbytes, "peak": peak}


def _module(fact: ModuleFact) -> Message:
    return {
        "path": _name(fact.path),
        "kind": _name(fact.kind),
        "training": fact.training,
        "awake": _layer_count(fact.awake),
        "asleep": _layer_count(fact.asleep),
        "devices": [_name(device) for device in fact.devices[:_DEVICE_COUNT]],
        "parameters": _whole(fact.parameter_count),
        "trainable": _whole(fact.trainable_count),
        "bytes": _whole(fact.parameter_nbytes),
    }


def _optimizer(fact: OptimizerFact) -> Message:
    return {
        "path": _name(fact.path),
        "kind": _name(fact.kind),
        "learning_rate": _finite(fact.learning_rate),
        "parameters": _whole(fact.parameter_count),
        "state_bytes": _whole(fact.state_nbytes),
        "gradient_bytes": _whole(fact.gradient_nbytes),
    }


def _account_row(row: MemoryRow, cells: Mapping[str, int]) -> Message:
    root = _ROOT.match(row.path)
    return {
        "path": _name(row.path),
        "kind": _name(row.kind),
        "device": _name(row.device),
        "bytes": _whole(row.nbytes),
        "pieces": _whole(row.pieces),
        "also": [_name(path) for path in row.also[:_NOTE_COUNT]],
        "free": word_for(row),
        "cell": cells.get(row.path, cells.get(root[0]) if root else None),
    }


def _first_cells(snapshot: Snapshot) -> dict[str, int]:
    """The cell that each tensor was first seen after, by its path and by the variable that leads to it."""
    found: dict[str, int] = {}
    for fact in snapshot.tensors:
        if fact.first_seen_cell is not None:
            found[fact.path] = fact.first_seen_cell
            root = _ROOT.match(fact.path)
            if root is not None:
                found[root[0]] = min(found.get(root[0], fact.first_seen_cell), fact.first_seen_cell)
    return found


def _item(item: Item) -> Message:
    return {"item": item.word, "what": _name(item.what), "bytes": _whole(item.nbytes), "why": _name(item.why)}


def _total(total: DeviceTotal) -> Message:
    return {
        "device": _name(total.device),
        "allocated": total.allocated_nbytes,
        "reserved": total.reserved_nbytes,
        "others": total.others_nbytes,
    }


def _holder(row: HolderRow) -> Message:
    return {"path": _name(row.path), "kind": _name(row.kind), "fix": _name(row.fix)}


def _limit(fact: MemoryFact, host_limit: int | None) -> int | None:
    return host_limit if fact.device == "host" else fact.total_nbytes


def _layer_count(counts: LayerCounts) -> int:
    return sum(count for _, count in counts)


def _id(cell: Cell) -> str | None:
    return None if cell.id is None else _name(cell.id)


def _name(text: str) -> str:
    return one_line(text, _NAME_LIMIT)


def _whole(number: int) -> int:
    """A number that a strange tensor subclass may have made up, within what JavaScript can count."""
    return max(0, min(int(number), 2**53))


def _finite(number: float | None) -> float | None:
    try:
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:
        return None
