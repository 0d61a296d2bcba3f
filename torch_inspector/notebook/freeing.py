"""`%torchcheck free`: what the notebook itself holds on to, and letting go of it."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from torch_inspector.account import MemoryReport, MemoryRow

_OUTPUT = re.compile(r"(?:Out\[(\d+)\]|_(\d+)|(_{1,3}))(?![\w])")
_LATEST = ("_", "__", "___")
_LAST = ("last_exc", "last_value", "last_traceback", "last_type")


class Item(NamedTuple):
    """Something that can be let go of."""

    word: str
    """`outputs`, `cycles`, `cache` or `exception`."""
    what: str
    kind: str
    """The kind of the rows of the report that it stands for; `cache` for free blocks."""
    nbytes: int
    why: str
    """Why that is safe."""
    asked: bool = True
    """False for what only `--traceback` lets go of."""


def plan(report: MemoryReport) -> list[Item]:
    """What would be let go of, with the bytes that this would free at most."""
    outputs, failed, cycles = (_sum(_rows_for(report, word)) for word in ("outputs", "exception", "cycles"))
    cached = sum(
        max((one.reserved_nbytes or 0) - (one.allocated_nbytes or 0), 0) for one in report.totals if one.reserved_nbytes
    )
    items = [
        Item("outputs", "old outputs", "IPython", outputs, "`Out` and `_` hold them; no variable does"),
        Item("cycles", "reference cycles", "cycle", cycles, "nothing of yours leads to them"),
        Item("cache", "cached blocks", "cache", cached, "torch keeps them for later tensors; none is in use"),
        Item(
            "exception",
            "the last exception",
            "exception",
            failed,
            "its frames hold them; `%debug` needs it until then",
            asked=False,
        ),
    ]
    return [item for item in items if item.nbytes]


def word_for(row: MemoryRow) -> str | None:
    """Which item of the plan lets go of a row of the account; None for what belongs to the user."""
    if row.kind == "IPython":
        return "outputs" if _OUTPUT.match(row.path) else None
    return {"cycle": "cycles", "exception": "exception"}.get(row.kind)


def proposals(report: MemoryReport, count: int = 3) -> list[tuple[str, int]]:
    """Lines that would free most of what the user's own variables hold; nobody but the user runs them."""
    sums: dict[str, int] = {}
    for row in report.rows:
        name = re.match(r"[A-Za-z]\w*", row.path)
        if name is not None and row.kind in ("tensor", "activation", "closure", "generator"):
            sums[name[0]] = sums.get(name[0], 0) + row.nbytes
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return [(f"del {name}", nbytes) for name, nbytes in ordered[:count]]


def let_go(shell: Any, report: MemoryReport, *, traceback: bool) -> None:
    """Lets go of old outputs that hold tensors, of cycles and cached blocks; touches no variable of the user.

    Args:
        shell: The IPython shell.
        report: The account that was shown.
        traceback: True to drop the last exception too; `%debug` has nothing to look at then.
    """
    _drop_outputs(shell, _rows_for(report, "outputs"))
    if traceback:
        _drop_exception(shell)
    gc.collect()
    _empty_caches()


def let_go_of(shell: Any, report: MemoryReport, word: str, path: str = "") -> int:
    """Lets go of one item of the plan; touches no variable of the user.

    Args:
        shell: The IPython shell.
        report: The account of this moment.
        word: Which item.
        path: Of old outputs, only the one of this path.

    Returns:
        Bytes that torch's allocators gave back to their devices; 0 for every other item.
    """
    if word == "outputs":
        _drop_outputs(shell, [row for row in _rows_for(report, "outputs") if path in ("", row.path)])
    elif word == "exception":
        _drop_exception(shell)
    if word != "cache":
        gc.collect()
        return 0
    before = _reserved_nbytes()
    _empty_caches()
    return max(before - _reserved_nbytes(), 0)


def _drop_outputs(shell: Any, rows: Iterable[MemoryRow]) -> None:
    names, outputs = shell.user_ns, shell.user_ns.get("_oh")
    dropped: list[Any] = []
    for row in rows:
        met = _OUTPUT.match(row.path)
        if met is None:
            continue
        number = int(met[1] or met[2] or 0)
        if type(outputs) is dict and number in outputs:
            dropped.append(outputs.pop(number))
        dropped += [names[name] for name in (met[3], f"_{number}") if name in names and name is not None]
    _forget(shell, {id(thing) for thing in dropped})


def _forget(shell: Any, old: set[int]) -> None:
    """Takes objects out of everything else in which IPython keeps the latest outputs."""
    names = shell.user_ns
    for name in [name for name in list(names) if type(name) is str and re.fullmatch(r"_\d+", name)]:
        if id(names[name]) in old:
            del names[name]
    hidden: Any = getattr(shell, "user_ns_hidden", None)
    for name in [name for name, value in hidden.items() if id(value) in old] if type(hidden) is dict else []:
        del hidden[name]
    for name in _LATEST:
        if id(names.get(name)) in old:
            names[name] = ""
        if id(getattr(shell.displayhook, name, None)) in old:
            setattr(shell.displayhook, name, "")
    latest: Any = getattr(shell, "last_execution_result", None)
    if id(getattr(latest, "result", None)) in old:
        latest.result = None


def _drop_exception(shell: Any) -> None:
    for name in _LAST:
        if hasattr(sys, name):
            delattr(sys, name)
    for holder, name in ((shell.InteractiveTB, "tb"), (shell, "_last_traceback")):
        if getattr(holder, name, None) is not None:
            setattr(holder, name, None)
    result = getattr(shell, "last_execution_result", None)
    for name in ("error_in_exec", "error_before_exec"):
        if getattr(result, name, None) is not None:
            setattr(result, name, None)


def _empty_caches() -> None:
    for backend in _backends():
        backend.empty_cache()


def _reserved_nbytes() -> int:
    return sum(backend.memory_reserved(i) for backend in _backends() for i in range(backend.device_count()))


def _backends() -> list[Any]:
    """Those that the user has started."""
    torch = sys.modules.get("torch")
    found = [getattr(torch, name, None) for name in ("cuda", "xpu")]
    return [one for one in found if one is not None and getattr(one, "is_initialized", bool)()]


def _rows_for(report: MemoryReport, word: str) -> list[MemoryRow]:
    """The rows that an item of the plan lets go of: what else hangs on the shell is nobody's output."""
    return [row for row in report.rows if word_for(row) == word]


def _sum(rows: Iterable[MemoryRow]) -> int:
    return sum(row.nbytes for row in rows)
