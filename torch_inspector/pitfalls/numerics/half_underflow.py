"""Gradients became zero because float16 cannot hold numbers that are so small."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SMALLEST = 6e-8


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses in float16 that are not zero and whose gradients all are."""
    losses = run.underflowed()
    if not losses:
        return
    loss = losses[0]
    backward = next((one for one in run.trace.backwards if one.place == loss.place), None)
    name = (backward.root if backward is not None else "") or "loss"
    keys = backward.witness.leaf_keys if backward is not None and backward.witness is not None else frozenset[int]()
    owner = run.owner_path(keys)
    whose = f" of `{owner}`" if owner else ""
    yield Finding(
        message=(
            f"`{name}` was {loss.value:.2g}, and all {loss.gradient_count} gradients{whose} were exactly zero after "
            "`backward()`: what is below 6e-08 becomes zero in float16."
        ),
        subject=name,
        fix=f"scaler.scale({name}).backward()  # with a torch.amp.GradScaler, or compute in bfloat16",
        line=loss.place.line,
        cell=loss.place.cell,
        evidence=(
            Evidence("gradients that are zero everywhere", loss.zero_gradients, "count"),
            Evidence("gradients", loss.gradient_count, "count"),
            Evidence("backward calls like this, of those looked at", len(losses), "count"),
            Evidence("smallest number of float16", _SMALLEST),
        ),
    )
