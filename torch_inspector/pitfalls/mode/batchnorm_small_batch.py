"""BatchNorm over few samples."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# With 16 values per channel the train and eval outputs of a layer still differ by about 0.3 standard deviations.
_FEW = 16
# Fewer steps are a try.
_STEPS = 32
# Two dimensions: samples and features, so that values per channel are samples.
_FLAT = 2


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds training in which BatchNorm1d layers normalised over fewer than 16 samples in each step."""
    if run.trace.count("step") < _STEPS:
        return
    said: set[int] = set()
    for call in run.trace.forwards:
        size = _batch(call)
        if call.module not in said and size is not None and _is_usual(call, size, run):
            said.add(call.module)
            yield _finding(run, call, size)


def _batch(call: ForwardFact) -> int | None:
    """Samples of the first call, where they are the values per channel of every BatchNorm layer."""
    norms = call.norms
    if norms is None or norms.kinds != ("BatchNorm1d",) or not call.training or not call.grad_enabled:
        return None
    if norms.frozen_awake or "BatchNorm1d" not in dict(call.awake) or len(call.input_shapes) != 1:
        return None
    flat = len(call.input_shapes[0]) == _FLAT == len(call.output_shape or ())
    return call.input_shapes[0][0] if flat else None


def _is_usual(call: ForwardFact, size: int, run: Run) -> bool:
    stepped = any(step.parameter_keys & call.parameter_keys for step in run.trace.steps)
    return stepped and 1 < size < _FEW and call.count >= _STEPS


def _finding(run: Run, call: ForwardFact, size: int) -> Finding:
    name = run.path_of(call)
    count = call.norms.count if call.norms is not None else 0
    return Finding(
        message=(
            f"`{name}` was trained with {size} samples per batch, and {count} BatchNorm1d normalised over these: "
            "its answers in eval mode differ from those in training."
        ),
        subject=name,
        fix="larger batches, or nn.LayerNorm / nn.GroupNorm; accumulating gradients does not change this",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("samples in the first batch", size, "count"),
            Evidence("BatchNorm1d layers", count, "count"),
            Evidence("calls from this line", call.count, "count"),
        ),
    )
