"""An allocation that failed, and what holds the memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.account import MemoryRow
from torch_inspector.facts import Run, ShortageFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Holders that the message names, and that the evidence lists; things to do that are told.
_NAMED, _LISTED, _TOLD = 2, 8, 3
_ROOT = re.compile(r"[^\W\d]\w*(?=[.\[]|$| \(its graph\)$)")
_LOCAL = re.compile(r"line \d+ in (\S+): (.+)$")
_MANY = {
    "parameter": "parameters of",
    "buffer": "buffers of",
    "gradient": "gradients of",
    "optimizer state": "state of",
    "activation": "activations behind",
}
_REMEDIES = {
    "tensor": "del {name}",
    "activation": "keep {root} without history (.item() or .detach())",
    "IPython": "%torchcheck free --yes",
}


class _Holder(NamedTuple):
    """Something that holds memory, and what would let go of it."""

    name: str
    nbytes: int
    remedy: str = ""


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the allocation that failed when a cell ended for want of memory."""
    shortage = run.error.shortage if run.error is not None else None
    if run.error is None or shortage is None:
        return
    place = shortage.place if shortage.place.line is not None else run.error.place
    holders = _holders(run, shortage)
    pinned = _pinned_nbytes(run, shortage)
    yield Finding(
        message=_message(shortage, holders, pinned),
        subject=shortage.device,
        fix="; ".join(_remedies(run, shortage, holders, pinned)[:_TOLD]),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("asked for", shortage.asked_nbytes, "bytes"),
            *_numbers(shortage),
            *((Evidence("failed in", shortage.operation),) if shortage.operation else ()),
            *((Evidence("held by the traceback alone", pinned, "bytes"),) if pinned else ()),
            *(Evidence(holder.name, holder.nbytes, "bytes") for holder in holders[:_LISTED]),
        ),
    )


def _numbers(shortage: ShortageFact) -> tuple[Evidence, ...]:
    named = (
        (f"{shortage.device} in all", shortage.total_nbytes),
        ("free", shortage.free_nbytes),
        ("in use by this process", shortage.in_use_nbytes),
        ("in tensors", shortage.allocated_nbytes),
        ("reserved but unallocated", shortage.unallocated_nbytes),
    )
    return tuple(Evidence(label, nbytes, "bytes") for label, nbytes in named if nbytes is not None)


def _holders(run: Run, shortage: ShortageFact) -> list[_Holder]:
    """What holds memory on the device, the largest first: rows of one kind that begin with one variable are one."""
    together: dict[tuple[str, str], list[MemoryRow]] = {}
    for row in run.account.rows if run.account is not None else ():
        if row.device == shortage.device:
            together.setdefault((_root(row.path), row.kind), []).append(row)
    holders = (_holder(root, kind, rows) for (root, kind), rows in together.items())
    return sorted((one for one in holders if one.nbytes >= max(run.min_nbytes, 1)), key=lambda one: -one.nbytes)


def _root(path: str) -> str:
    """The variable that a path begins with; the whole path where it is a description."""
    found = _ROOT.match(path)
    return found[0] if found is not None else path


def _holder(root: str, kind: str, rows: list[MemoryRow]) -> _Holder:
    name = rows[0].path if len(rows) == 1 and kind in ("tensor", "IPython", "exception") else root
    local = _LOCAL.search(name) if kind == "exception" else None
    label = f"{local[2]} in {local[1]}" if local is not None else f"{_MANY.get(kind, '')} {name}".lstrip()
    remedy = _REMEDIES.get(kind, "").format(name=name, root=root) if _ROOT.match(name) else ""
    return _Holder(label, sum(row.nbytes for row in rows), remedy)


def _pinned_nbytes(run: Run, shortage: ShortageFact) -> int:
    """Bytes that only the frames of the exception hold."""
    rows = run.account.holding(("exception",)) if run.account is not None else ()
    return sum(row.nbytes for row in rows if row.device == shortage.device)


def _message(shortage: ShortageFact, holders: list[_Holder], pinned: int) -> str:
    what = f" in `{shortage.operation}`" if shortage.operation else ""
    parts = [f"{size_text(shortage.asked_nbytes)} more on {shortage.device} were asked for{what}{_reason(shortage)}"]
    if holders:
        most = " and ".join(f"{_named(one.name)} ({size_text(one.nbytes)})" for one in holders[:_NAMED])
        parts.append(f"most is held by {most}")
    if pinned:
        parts.append(f"{size_text(pinned)} are kept by this traceback alone")
    return "; ".join(parts) + "."


def _named(holder: str) -> str:
    """As code, unless it is said in words: `state of optimizer`."""
    return holder if " " in holder else f"`{holder}`"


def _reason(shortage: ShortageFact) -> str:
    """Why there was not enough."""
    asked, total, free = shortage.asked_nbytes, shortage.total_nbytes, shortage.free_nbytes
    if total is not None and asked > total:
        return f", and it has {size_text(total)} in all"
    if _is_in_pieces(shortage):
        free_text = size_text(shortage.unallocated_nbytes or 0)
        return f", while {free_text} are reserved but free only in pieces (fragmentation)"
    return f", and {size_text(free)} were free" if free is not None else ""


def _is_in_pieces(shortage: ShortageFact) -> bool:
    return shortage.unallocated_nbytes is not None and shortage.unallocated_nbytes > shortage.asked_nbytes


def _remedies(run: Run, shortage: ShortageFact, holders: list[_Holder], pinned: int) -> list[str]:
    """What gives most back, first; nothing of it helps where more was asked for than there is."""
    if shortage.total_nbytes is not None and shortage.asked_nbytes > shortage.total_nbytes:
        return [
            "look at the shapes in this line: no device can hold the result",
            "or work in parts (for part in x.split(64))",
        ]
    amounts: dict[str, int] = {}
    for holder in holders:
        if holder.remedy:
            amounts[holder.remedy] = amounts.get(holder.remedy, 0) + holder.nbytes
    if pinned >= max(run.min_nbytes, 1):
        amounts["%torchcheck free --yes --traceback"] = pinned
    ordered = sorted(amounts.items(), key=lambda each: -each[1])
    known = [f"{remedy} ({size_text(nbytes)})" for remedy, nbytes in ordered]
    pieces = ["set PYTORCH_ALLOC_CONF=expandable_segments:True before torch starts"] if _is_in_pieces(shortage) else []
    return [*pieces, *known[: _TOLD - 1], "smaller batches, with accumulated gradients"]
