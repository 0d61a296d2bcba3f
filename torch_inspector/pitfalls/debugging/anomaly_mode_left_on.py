"""Anomaly detection that stays on."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SLUG = "anomaly-mode-left-on"


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the first cell that trains while anomaly detection is on from an earlier one."""
    if not (run.before.anomaly and run.after.anomaly and run.trace.count("backward")):
        return
    if any(finding.slug == _SLUG for past in run.earlier for finding in past.findings):
        return
    yield _finding(run)


def _finding(run: Run) -> Finding:
    cell = next((past.cell.number for past in reversed(run.earlier) if past.after.anomaly > past.before.anomaly), None)
    since = f" since cell {cell}" if cell is not None else ""
    without = [past.duration_s for past in run.earlier if past.cell.code == run.cell.code and not past.before.anomaly]
    first = run.trace.backwards[0].place if run.trace.backwards else None
    return Finding(
        message=(
            f"Anomaly detection is on{since}: every operation notes where it was made and every gradient is searched "
            "for NaN."
        ),
        subject="torch.autograd.set_detect_anomaly",
        fix="torch.autograd.set_detect_anomaly(False)  # or `with torch.autograd.detect_anomaly():` around one step",
        line=first.line if first is not None else None,
        cell=first.cell if first is not None else None,
        evidence=(
            Evidence("backward calls", run.trace.count("backward"), "count"),
            Evidence("this cell took", run.duration_s, "s"),
            *((Evidence("the same cell without it", median(without), "s"),) if without else ()),
        ),
    )
