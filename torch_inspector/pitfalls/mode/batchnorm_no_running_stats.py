"""BatchNorm that keeps no running statistics, in eval mode."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, LayerFact, Place, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"Expected more than 1 value per channel when training")
_SHOWN = 3


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds calls in eval mode on fewer samples than training saw, and the refusal of a single one."""
    error = run.error
    if error is not None and error.layer is not None and _REFUSED.search(error.message):
        if not error.layer.tracks and "BatchNorm" in error.layer.kind:
            yield _refused(error.place, error.layer)
        return
    said: set[Place] = set()
    for call in run.trace.forwards:
        if call.place in said or call.training or call.norms is None or not call.norms.untracked:
            continue
        trained = _training_batch(run, call)
        if _batch(call) is not None and (_batch(call) or 0) < trained:
            said.add(call.place)
            yield _finding(run, call, call.norms.untracked, trained)


def _batch(call: ForwardFact) -> int | None:
    shape = call.input_shapes[0] if call.input_shapes else ()
    return shape[0] if shape else None


def _training_batch(run: Run, call: ForwardFact) -> int:
    """The largest batch that the module was called with in train mode; 0 if none was seen."""
    calls = (one for past in (*run.earlier, run) for one in past.trace.forwards)
    sizes = [_batch(one) for one in calls if one.module == call.module and one.training and one.grad_enabled]
    return max((size for size in sizes if size is not None), default=0)


def _refused(place: Place, layer: LayerFact) -> Finding:
    name = layer.root or layer.root_kind
    mode = "train" if layer.training else "eval"
    where = f"layer `{layer.path}` ({layer.kind})" if layer.path else f"this {layer.kind}"
    return Finding(
        message=(
            f"`{name}` got one value per channel in {mode} mode: {where} keeps no running statistics, "
            "so it needs a batch in both modes."
        ),
        subject=name,
        fix="track_running_stats=True (the default) and eval mode, or nn.GroupNorm",
        line=place.line,
        cell=place.cell,
        severity="error",
        evidence=(Evidence("layer", f"{layer.path or name} ({layer.kind})"), Evidence("mode", mode)),
    )


def _finding(run: Run, call: ForwardFact, layers: tuple[str, ...], trained: int) -> Finding:
    name = run.path_of(call)
    names = ", ".join(f"`{layer or name}`" for layer in layers[:_SHOWN]) + (", …" if len(layers) > _SHOWN else "")
    return Finding(
        message=(
            f"`{name}` normalises by the batch in eval mode too ({names}: no running statistics): "
            f"this batch has {_batch(call)} samples, in training it was {trained}."
        ),
        subject=name,
        fix="leave track_running_stats at its default, or use nn.GroupNorm or nn.LayerNorm",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("layers without statistics", len(layers), "count"),
            Evidence("samples in this batch", _batch(call) or 0, "count"),
            Evidence("samples per batch in training", trained, "count"),
        ),
    )
