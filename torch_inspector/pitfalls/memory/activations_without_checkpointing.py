"""Layer outputs that wait for backward take more memory than everything else."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Weights, gradients, and the two averages of Adam: what training holds besides layer outputs.
_COPIES = 4
# Runs that are searched for the graph of a model that ran out of memory before its first backward call.
_EARLIER = 3


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds graphs that outweigh the model, its gradients and optimizer state, where somebody asks about memory.

    That is the rule for large batches and no mistake: it is told where memory ran out, or the cell asked for the whole
    report with `%%torchcheck`, and never unasked.
    """
    ran_out = _ran_out(run)
    if not ran_out and not run.cell.wants_report:
        return
    earlier = [b for past in run.earlier[-_EARLIER:] for b in past.trace.backwards] if ran_out else []
    for backward in sorted([*run.trace.backwards, *earlier], key=_kept, reverse=True)[:1]:
        if _kept(backward) >= max(run.min_nbytes, 1, _COPIES * _weights(backward)) and _weights(backward):
            yield _finding(run, backward, ran_out=ran_out)


def _ran_out(run: Run) -> bool:
    """True if an allocation failed, on an accelerator or in main memory."""
    error = run.error
    return error is not None and (error.kind == "OutOfMemoryError" or "can't allocate memory" in error.message)


def _kept(backward: BackwardFact) -> int:
    return backward.witness.saved_nbytes if backward.witness else 0


def _weights(backward: BackwardFact) -> int:
    return backward.witness.leaf_nbytes if backward.witness else 0


def _finding(run: Run, backward: BackwardFact, *, ran_out: bool) -> Finding:
    at_least = "" if backward.witness and backward.witness.complete else "at least "
    kept, weights = _kept(backward), _weights(backward)
    name = f"`{backward.root}`" if backward.root else "the loss"
    return Finding(
        message=(
            f"The graph of {name} kept {at_least}{size_text(kept)} of layer outputs for backward, "
            f"{kept / weights:,.0f} times the {size_text(weights)} of parameters"
            f"{'; memory ran out' if ran_out else ''}."
        ),
        subject=backward.root,
        fix=(
            "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # for each repeated block; "
            "or smaller batches with accumulated gradients"
        ),
        line=backward.place.line,
        cell=backward.place.cell,
        evidence=(
            Evidence("kept for backward", kept, "bytes"),
            Evidence("parameters", weights, "bytes"),
            Evidence("parameters, gradients and state of Adam", _COPIES * weights, "bytes"),
            Evidence("backward calls in this cell", run.trace.count("backward"), "count"),
        ),
    )
