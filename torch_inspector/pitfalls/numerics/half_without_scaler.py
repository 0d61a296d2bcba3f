"""Training in float16 without scaling the loss."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run
from torch_inspector.facts.idle_scaler import switched_off, unused
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One step may be a try; twice from one line is training.
_STEPS = 2


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds training whose graph computes in float16 and whose loss is not multiplied by a scale."""
    if run.trace.scales() or run.underflowed():
        return
    seen: set[tuple[int | None, int | None]] = set()
    for backward in run.trace.halves:
        at = (backward.place.cell, backward.place.line)
        if at not in seen and _is_unscaled_half(backward) and _trains(run, backward):
            seen.add(at)
            yield _finding(run, backward)


def _is_unscaled_half(backward: BackwardFact) -> bool:
    graph = backward.witness
    # A product with a number above 1 may be a loss scale.
    return graph is not None and not backward.is_grad_call and graph.float16_count > 0 and not graph.enlarged


def _trains(run: Run, backward: BackwardFact) -> bool:
    leaves = backward.leaf_keys
    stepped = any(step.parameter_keys & leaves for step in run.trace.steps)
    return stepped and run.trace.count("backward", backward.place) >= _STEPS


def _finding(run: Run, backward: BackwardFact) -> Finding:
    graph, name = backward.witness, backward.root or "loss"
    owner = _owner(run, backward)
    halves = graph.float16_leaf_count if graph is not None else 0
    what = f"the weights of {owner} are in half precision (float16)" if halves else f"{owner} computes in float16"
    optimizer = run.lost_eps(backward) if halves else None
    lost = f" `eps={optimizer.eps:g}` of `{optimizer.path}` is 0 there, and 0 / 0 is nan." if optimizer else ""
    since = _spoiled_since(run, backward) if optimizer else 0
    spoiled = f" The weights are nan since step {since}." if since else ""
    scaler = switched_off(run, backward.device or "cuda")
    unscaled = f"`{scaler.name}` is switched off" if scaler else f"`{name}` is not scaled"
    return Finding(
        message=(
            f"{what} and {unscaled}: gradients below 6e-08 become zero, and those below 6e-05 lose digits."
            f"{lost}{spoiled}"
        ),
        subject=scaler.name if scaler else name,
        fix=(scaler.mended if scaler else _fix(run, backward, name, full=bool(halves)))
        + (f"; or at least eps=1e-4 for {optimizer.path}" if optimizer else ""),
        line=backward.place.line,
        cell=backward.place.cell,
        evidence=(
            Evidence("operations with a float16 result", graph.float16_count if graph is not None else 0, "count"),
            Evidence("parameters in float16", halves, "count"),
            Evidence("backward calls from this line", run.trace.count("backward", backward.place), "count"),
            Evidence("calls of a loss scaler that scales", 0, "count"),
        ),
        severity="error" if since else "",
    )


def _spoiled_since(run: Run, backward: BackwardFact) -> int:
    """The step after which weights were not finite any more, from 1; 0 if they were not finite before, or still are."""
    mine = (loss for loss in run.trace.losses if loss.place == backward.place)
    bad = next((loss for loss in mine if loss.spoiled_weights), None)
    return bad.index - 1 if bad is not None else 0


def _owner(run: Run, backward: BackwardFact) -> str:
    leaves = backward.leaf_keys
    paths = [m.path for m in run.after.modules if m.path and m.parameter_keys & leaves]
    paths += [forward.name for forward in run.trace.forwards if forward.name and forward.parameter_keys & leaves]
    return f"`{paths[0]}`" if paths else "the model"


def _fix(run: Run, backward: BackwardFact, name: str, *, full: bool) -> str:
    if full:
        return "keep the weights in float32 and compute under torch.autocast with bfloat16, or float16 and a GradScaler"
    step = next((one for one in run.trace.steps if one.order > backward.order), None)
    there = unused(run, backward.place)
    if there:
        own = run.optimizer_name_at(step.optimizer, step.place) if step is not None else ""
        made = "which is there already; or dtype=torch.bfloat16 in autocast"
        return f"{there}.scale({name}).backward()  # {made}\n{there}.step({own or 'optimizer'})\n{there}.update()"
    optimizer = (run.optimizer_path(step.optimizer) if step is not None else "") or "optimizer"
    device = backward.device or "cuda"
    return (
        f"scaler = torch.amp.GradScaler({device!r})  # once, or dtype=torch.bfloat16 in autocast\n"
        f"scaler.scale({name}).backward()\nscaler.step({optimizer})\nscaler.update()"
    )
