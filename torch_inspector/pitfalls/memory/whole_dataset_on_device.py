"""Data that is used batch by batch fills a large part of an accelerator's memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import Run, TensorFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Less than one part in so many of the device is a good choice: no copies are left in the loop.
_SHARE = 3
# Names that a finding lists.
_NAMED = 3
_HOST = ("cpu", "meta", "host")
_TAKES = r"\b(?:TensorDataset|DataLoader|random_split|Subset)\([^)]*\b{name}\b"
_PICKED = r"\b{name}\[(?!\s*:?\s*\])"
_MOVED = r"(?:^|[\s,(]){name}\b[^\n=]*=.*(?:\.to\(|\.cuda\(|device\s*=)"


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds tensors of data, new in this cell, that take more than a third of the memory of their device."""
    totals = {memory.device: memory.total_nbytes for memory in run.after.memory if memory.total_nbytes}
    known = {(fact.path, fact.key) for fact in run.before.tensors} if totals else set()
    for device, total in totals.items():
        data = _data(run, device)
        nbytes = sum({fact.key: fact.storage_nbytes for fact in data}.values())
        new = [fact for fact in data if (fact.path, fact.key) not in known]
        if new and total and nbytes >= max(total // _SHARE, run.min_nbytes, 1):
            yield _finding(run, device, total, data, nbytes)


def _data(run: Run, device: str) -> list[TensorFact]:
    """Tensors on a device without gradients, of which the notebook's text takes parts."""
    if device in _HOST:
        return []
    text = "\n".join(one.cell.source for one in (*run.earlier, run))
    plain = [f for f in run.after.tensors if f.device == device and f.is_leaf and not f.requires_grad and f.shape]
    return [fact for fact in plain if _is_served(fact.path, text)]


def _is_served(path: str, text: str) -> bool:
    name = re.escape(path.partition("[")[0].partition(".")[0])
    return ".tensors[" in path or any(re.search(form.format(name=name), text) for form in (_TAKES, _PICKED))


def _finding(run: Run, device: str, total: int, data: list[TensorFact], nbytes: int) -> Finding:
    names = [f"`{fact.path}`" for fact in data[:_NAMED]]
    more = f" and {len(data) - _NAMED} more" if len(data) > _NAMED else ""
    free = next((memory.free_nbytes for memory in run.after.memory if memory.device == device), None)
    return Finding(
        message=(
            f"{', '.join(names)}{more} take {size_text(nbytes)} of the {size_text(total)} of {device}, "
            f"{100 * nbytes // total} %, and are used in parts."
        ),
        subject=data[0].path,
        held=data[0].path,
        fix=f"keep {data[0].path} on the CPU, and move each batch: batch.to('{device}')",
        line=_line(run, data),
        evidence=(
            Evidence(f"{device} in all", total, "bytes"),
            *((Evidence("free", free, "bytes"),) if free is not None else ()),
            *(Evidence(fact.path, fact.storage_nbytes, "bytes") for fact in data[:_NAMED]),
        ),
    )


def _line(run: Run, data: list[TensorFact]) -> int | None:
    """The last line that moves one of them, or makes it there."""
    names = [re.escape(fact.path.partition("[")[0].partition(".")[0]) for fact in data]
    lines = enumerate(run.cell.source.splitlines(), 1)
    found = [n for n, line in lines if any(re.search(_MOVED.format(name=name), line) for name in names)]
    return found[-1] if found else None
