"""One message of each kind, made by the kernel's side from facts; the files in `tests/messages` hold the same.

The tests of the sidebar read the files. `python -m tests.notebook.feed.samples` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes import a_cell, a_memory, a_module, a_run, a_snapshot, a_step, a_tensor, an_error, an_optimizer
from torch_inspector.account import DeviceTotal, HolderRow, HoldersReport, MemoryReport, MemoryRow
from torch_inspector.findings import Finding
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.record import Record
from torch_inspector.notebook.feed.sample import Sample
from torch_inspector.notebook.muting import Wish

FOLDER = Path(__file__).resolve().parents[2] / "messages"
RUN = "0123456789abcdef" * 2
AT = 1_700_000_000_000
LIMIT = 16 << 30
HOSTILE = "<img src=x onerror=alert(1)>"

FINDING = Finding(
    message="`optimizer.step()` ran without the gradients being cleared",
    subject="optimizer",
    fix="optimizer.zero_grad()",
    line=4,
    cell=1,
    severity="error",
    slug="missing-zero-grad",
    code="optimizer.step()",
)
CUDA = a_memory("cuda:0", allocated_nbytes=1 << 30, reserved_nbytes=2 << 30, peak_nbytes=3 << 30, total_nbytes=8 << 30)
HOST = a_memory(peak_nbytes=400 << 20)


def a_finished_cell(**changes: Any) -> Any:
    """A training cell with one finding, which left 600 MB on a device."""
    before = a_snapshot(HOST, CUDA._replace(allocated_nbytes=400 << 20))
    after = a_snapshot(HOST, CUDA, a_module(), an_optimizer(state_nbytes=64))
    return a_run(a_step(), before=before, after=after, findings=(FINDING,), duration_s=2.5, **changes)


def a_record() -> Record:
    """Two looks, a gap, and one cell."""
    record = Record(LIMIT)
    record.add(Sample(AT, (HOST,)))
    record.add(Sample(AT + 500, (HOST, CUDA)))
    record.add(Sample(AT + 9000, (HOST, CUDA), gap=True))
    record.end(a_finished_cell(), AT + 9500, 400)
    return record


def all_messages() -> dict[str, messages.Message]:
    """Each message by the name of its file."""
    record = a_record()
    return {
        "sample": made("sample", **_sample()),
        "sample_idle": made("sample", cell=None, devices=messages.devices((HOST,), None), gap=False, findings=[]),
        "cell": made("cell", cell=record.cells[-1], state=record.state),
        "cell_failed": made("cell", cell=_failed(), state=messages.state(a_snapshot())),
        "history": made("history", **record.history(short=False)),
        "account": made("account", **messages.account(_report(), a_snapshot(a_tensor(path="x", first_seen_cell=3)))),
        "freed": made("freed", **messages.freed("outputs", "Out[3]", 4 << 20)),
        "holders": made(
            "holders", **messages.holders("x", HoldersReport("x", rows=(HolderRow("x", "name", "del x"),)))
        ),
        "holders_gone": made("holders", **messages.holders("x", None, gone=True)),
        "holders_unknown": made("holders", **messages.holders("x", None)),
        "hostile": made("account", **messages.account(MemoryReport(rows=(MemoryRow(HOSTILE, HOSTILE, HOSTILE, 1),)))),
        "muted": made("muted", **messages.muted(Wish("missing-zero-grad", "line", 1, 4), "", "")),
        "muted_always": made("muted", **messages.muted(Wish("missing-zero-grad", "always"), "/x/config.json", "")),
        "refused": made("refused", ask="account"),
        "bye": made("bye"),
    }


def made(op: str, **fields: Any) -> messages.Message:
    """A message of this run."""
    return messages.envelope(RUN, op, AT, **fields)


def _sample() -> dict[str, Any]:
    running = messages.progress(a_cell(), 1.5, 12)
    found = messages.early_findings((FINDING,), a_cell())
    return {"cell": running, "devices": messages.devices((HOST, CUDA), LIMIT), "gap": False, "findings": found}


def _failed() -> messages.Message:
    run = a_run(error=an_error(), cell=a_cell(number=None, id=None), after=a_snapshot(HOST))
    return messages.cell_row(run, AT, {"host": 500 << 20}, 0)


def _report() -> MemoryReport:
    rows = (
        MemoryRow("losses[0]", "activation", "cpu", 4 << 20, 3, also=("best",)),
        MemoryRow("Out[3]", "IPython", "cpu", 1 << 20),
        MemoryRow("x.data", "tensor", "cpu", 8),
    )
    totals = (DeviceTotal("cuda:0", 1 << 30, 2 << 30, None, 5 << 20),)
    return MemoryReport(rows=rows, totals=totals, notes=("a graph could not be read",), duration_s=0.25)


if __name__ == "__main__":
    for name, message in all_messages().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(message, indent=2) + "\n", encoding="utf-8")
