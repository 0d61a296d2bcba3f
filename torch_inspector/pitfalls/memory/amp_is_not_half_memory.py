"""Mixed precision, in a model whose memory is mostly parameters, gradients and optimizer state."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, WitnessFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Weights, gradients, and the two averages of Adam: what stays as it is under autocast.
_COPIES = 4


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Tells what stayed in full precision under autocast, where a cell asks with `%%torchcheck`.

    Mixed precision is no mistake: nothing is said unasked, and nothing where layer outputs are the larger part.
    """
    if not run.cell.wants_report:
        return
    for backward in run.trace.backwards:
        seen = backward.witness
        if seen and 0 < seen.half_nbytes <= seen.saved_nbytes <= _COPIES * seen.leaf_nbytes >= run.min_nbytes:
            yield _finding(backward, seen)
            return


def _finding(backward: BackwardFact, seen: WitnessFact) -> Finding:
    name = f"`{backward.root}`" if backward.root else "the loss"
    return Finding(
        message=(
            f"The graph of {name} kept {_mb(seen.saved_nbytes)} for backward, {_mb(seen.half_nbytes)} of it in half "
            f"precision; {_mb(seen.leaf_nbytes)} of parameters, their gradients and the optimizer state are in full."
        ),
        subject=backward.root,
        fix="model.to(torch.bfloat16) halves parameters and gradients too, at the price of precision in small updates",
        line=backward.place.line,
        cell=backward.place.cell,
        evidence=(
            Evidence("kept for backward", seen.saved_nbytes, "bytes"),
            Evidence("of it in half precision", seen.half_nbytes, "bytes"),
            Evidence("parameters", seen.leaf_nbytes, "bytes"),
            Evidence("parameters, gradients and state of Adam", _COPIES * seen.leaf_nbytes, "bytes"),
        ),
    )


def _mb(nbytes: int) -> str:
    return f"{size_text(nbytes)}"
