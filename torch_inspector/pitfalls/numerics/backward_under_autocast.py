"""`backward()` is called inside the autocast block."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds backward calls that were made while autocast was on for the device of the loss."""
    seen: set[tuple[int | None, int | None]] = set()
    for backward in run.trace.backwards:
        if not backward.autocast or backward.is_grad_call:
            continue
        at = (backward.place.cell, backward.place.line)
        if at not in seen:
            seen.add(at)
            yield _finding(run, backward)


def _finding(run: Run, backward: BackwardFact) -> Finding:
    name = backward.root or "loss"
    call = f"`{name}.backward()`" if backward.root else "`backward()`"
    # A graph of the gradient is differentiated again, with operations that autocast then casts.
    twice = any(one.is_grad_call and one.order < backward.order for one in run.trace.backwards)
    effect = (
        f"what the graph of a gradient computes is then rounded to {backward.autocast} too"
        if twice
        else f"operations of hooks and custom functions are then cast to {backward.autocast} as well"
    )
    return Finding(
        message=f"{call} runs inside an autocast block: {effect}, and torch advises to leave the block before.",
        subject=name,
        fix=f"with torch.autocast(...):\n    {name} = ...  # forward pass and loss only\n{name}.backward()  # outside",
        line=backward.place.line,
        cell=backward.place.cell,
        severity="warning" if twice else "hint",
        evidence=(
            Evidence("autocast type", backward.autocast),
            Evidence("device", backward.device),
            Evidence("backward calls from this line", run.trace.count("backward", backward.place), "count"),
        ),
    )
