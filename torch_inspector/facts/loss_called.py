"""What the user calls the loss that an operation of a graph belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


def loss_called(run: Run, *kinds: str) -> str:
    """The name and the class of a loss, if the cell called one module of these classes by a name; else empty."""
    calls = {call.module: call for call in run.trace.forwards if call.kind in kinds and call.name}
    return next((f"`{call.name}` ({call.kind})" for call in calls.values()), "") if len(calls) == 1 else ""
