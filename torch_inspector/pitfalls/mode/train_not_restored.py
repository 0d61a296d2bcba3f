"""Training goes on in eval mode after a validation pass."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, ModeFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds steps of a module whose mode-dependent layers all sleep since an inference pass."""
    for call in run.trace.forwards:
        if _trains_asleep(call) and _is_stepped(call, run):
            inference = _inference_before(call, run)
            if inference is not None and not _switched_between(run, call, inference):
                yield _finding(run, call)


def _trains_asleep(call: ForwardFact) -> bool:
    if call.training or not call.grad_enabled or call.awake or not call.asleep:
        return False
    only_frozen = sum(count for _, count in call.asleep) == call.frozen_asleep
    return call.reached is True and not only_frozen


def _is_stepped(call: ForwardFact, run: Run) -> bool:
    after = (step for step in run.trace.steps if step.order > call.order)
    return any(step.parameter_keys & call.parameter_keys for step in after)


def _inference_before(call: ForwardFact, run: Run) -> int | None:
    """Position in this cell of a pass without gradients in eval mode before the call; 0 for one in an earlier cell."""
    own = [f.order for f in run.trace.forwards if _is_inference(f, call) and f.order < call.order]
    if own:
        return max(own)
    seen = (f for past in run.earlier for f in past.trace.forwards)
    return 0 if any(_is_inference(f, call) for f in seen) else None


def _is_inference(other: ForwardFact, call: ForwardFact) -> bool:
    return other.module == call.module and not other.training and not other.grad_enabled


def _switched_between(run: Run, call: ForwardFact, inference: int) -> bool:
    """True if the user set the mode after the inference pass: training in eval mode is then meant."""
    return any(m.module == call.module and inference < m.order < call.order for m in run.trace.modes)


def _finding(run: Run, call: ForwardFact) -> Finding:
    name = run.module_path(call.module) or call.kind
    layers = ", ".join(f"{count} {kind}" for kind, count in call.asleep)
    switch = _last_switch(run, call)
    evidence = [
        Evidence("module", f"{name} ({call.kind})"),
        Evidence("layers in eval mode", layers),
        Evidence("training calls in eval mode", call.count, "count"),
    ]
    if switch is not None and switch.place.line is not None:
        where = f"line {switch.place.line}" + (f" of cell {switch.place.cell}" if switch.place.cell else "")
        evidence.append(Evidence("eval() called at", where))
    return Finding(
        message=(
            f"`{name}` was trained in eval mode ({call.count} calls) after an evaluation pass: {layers} "
            "did nothing for learning."
        ),
        subject=name,
        fix=f"{name}.train()  # at the start of each training epoch",
        line=call.place.line,
        cell=call.place.cell,
        evidence=tuple(evidence),
    )


def _last_switch(run: Run, call: ForwardFact) -> ModeFact | None:
    """The latest `eval()` of the module: in this cell before the call, else in an earlier one."""
    own = [m for m in run.trace.modes if m.order < call.order]
    modes = [*(m for past in run.earlier for m in past.trace.modes), *own]
    return next((m for m in reversed(modes) if m.module == call.module and not m.training), None)
