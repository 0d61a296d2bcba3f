"""Inference with the model still in train mode."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Files of torch whose calls run train mode without gradients on purpose: batch statistics for averaged weights.
_ON_PURPOSE = ("torch.optim.swa_utils",)


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds predictions of a trained module whose dropout or batch statistics are on."""
    for call in run.trace.forwards:
        if not _is_asked_in_train_mode(call, run):
            continue
        if (not call.grad_enabled and not _is_part_of_step(call, run)) or (
            call.grad_enabled and _result_is_gone(call, run)
        ):
            yield _finding(run, call)


def _is_asked_in_train_mode(call: ForwardFact, run: Run) -> bool:
    asked = call.training and call.awake and call.trained
    if not asked or call.same_input or call.caller in _ON_PURPOSE:
        return False
    return not _was_meant(call, run)


def _was_meant(call: ForwardFact, run: Run) -> bool:
    """True if the cell switches to train mode although it takes no step: sampling, or fresh batch statistics."""
    switched = any(m.training and m.module == call.module and m.order < call.last_order for m in run.trace.modes)
    return switched and not run.trace.steps


def _is_part_of_step(call: ForwardFact, run: Run) -> bool:
    """True for passes that feed each training step (pseudo-labels, targets of a momentum copy)."""
    steps = run.trace.steps
    if not steps:
        return False
    stepped = any(step.parameter_keys & call.parameter_keys for step in steps)
    if not stepped:
        return True
    between = sum(call.order < step.order < call.last_order for step in steps)
    return call.order < steps[0].order and (between == 1 or call.count == 1)


def _result_is_gone(call: ForwardFact, run: Run) -> bool:
    """True if no backward can follow any more: the cell took no step and left no graph behind."""
    trace = run.trace
    if trace.steps or trace.count("backward") or trace.count("grad") or run.error is not None:
        return False
    kept = any(graph.newest_nodes for graph in run.after.graphs) or not run.after.complete
    return call.output_requires_grad and not call.input_requires_grad and not kept


def _finding(run: Run, call: ForwardFact) -> Finding:
    name = run.module_path(call.module) or call.kind
    layers = ", ".join(f"{count} {kind}" for kind, count in call.awake)
    off = "gradients are off" if not call.grad_enabled else "nothing is trained here"
    are = "is" if sum(count for _, count in call.awake) == 1 else "are"
    return Finding(
        message=(
            f"`{name}` was asked for predictions in train mode ({off}): {layers} {are} active, "
            "so results depend on chance or on the rest of the batch."
        ),
        subject=name,
        fix=f"{name}.eval()   # before predicting\n{name}.train()  # before training goes on",
        line=call.place.line,
        cell=call.place.cell,
        severity="" if not call.grad_enabled else "hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("layers in train mode", layers),
            Evidence("gradients recorded", "yes" if call.grad_enabled else "no"),
            Evidence("calls from this line", call.count, "count"),
        ),
    )
