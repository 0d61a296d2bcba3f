"""Gradients clipped entry by entry, told only to those who ask."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import CallFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NAME = "clip_grad_value_"


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Tells what clipping by value does, where a cell asks with `%%torchcheck`.

    It is a choice and no mistake: nothing is said unasked, and nothing where no optimizer stepped.
    """
    if not run.cell.wants_report or not run.trace.steps:
        return
    call = next((one for one in run.trace.calls if one.name.rpartition(".")[2] == _NAME), None)
    if call is not None:
        yield _finding(run, call)


def _finding(run: Run, call: CallFact) -> Finding:
    return Finding(
        message=(
            f"`{call.name}` cuts each entry of a gradient on its own: the large ones shrink, the small ones stay, "
            "and the step no longer points where the gradient did."
        ),
        subject=call.name,
        fix="torch.nn.utils.clip_grad_norm_(parameters, max_norm)  # shortens all entries by one factor",
        line=call.line,
        cell=run.cell.number,
        evidence=(Evidence("steps looked at", len(run.trace.steps), "count"),),
    )
