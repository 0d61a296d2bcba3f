"""Frozen layers whose batch statistics go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, NormsFact, Place, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Who writes this wants fresh batch statistics.
_FRESH_STATISTICS = re.compile(r"\breset_running_stats\b|\.momentum\s*=[^=]|update_bn")
# Who writes this moves frozen weights by hand, as for a copy that follows another model.
_FOLLOWS = re.compile(r"\.data\s*=.*\.data|\.data\.mul_\(|\.lerp_\(|\.mul_\([^()]*\)\s*\.add_\(|_foreach_lerp")
# A module without anything to train is only known to be a fixed part once it was called again unchanged.
_CALLS = 2
_SHOWN = 3


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds training in which BatchNorm layers without gradients were in train mode."""
    drifting = any(call.norms is not None and call.norms.frozen_awake for call in run.trace.forwards)
    if not run.trace.steps or not drifting or _FRESH_STATISTICS.search(run.cell.code):
        return
    if any(_FOLLOWS.search(one.cell.code) for one in (*run.earlier, run)):
        return
    said: set[tuple[Place, int]] = set()
    for call in run.trace.forwards:
        norms = call.norms
        if norms is None or (call.place, call.module) in said or not _drifts(call, norms, run):
            continue
        said.add((call.place, call.module))
        yield _finding(run, call, norms)


def _drifts(call: ForwardFact, norms: NormsFact, run: Run) -> bool:
    if not norms.frozen_awake or norms.moved or not any(step.order > call.order for step in run.trace.steps):
        return False
    if any(step.leaf_keys & norms.frozen_keys for step in run.trace.steps):
        return False  # frozen for a moment only, as the discriminator while the generator learns
    if norms.others_trainable or len(norms.frozen_awake) < norms.count:
        return any(step.parameter_keys & call.parameter_keys for step in run.trace.steps)
    return call.count >= _CALLS


def _finding(run: Run, call: ForwardFact, norms: NormsFact) -> Finding:
    name = run.module_path(call.module) or call.name or call.kind
    count = len(norms.frozen_awake)
    names = ", ".join(f"`{one or name}`" for one in norms.frozen_awake[:_SHOWN]) + (", …" if count > _SHOWN else "")
    are, their = ("layer is", "its") if count == 1 else ("layers are", "their")
    return Finding(
        message=(
            f"{count} frozen {_kinds(norms)} {are} in train mode in `{name}` ({names}): "
            f"{their} weights stay, {their} running mean and variance follow every batch."
        ),
        subject=name,
        fix=(
            f"{name}.train()  # each epoch, then\n"
            f"for layer in {name}.modules():\n"
            "    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and not layer.weight.requires_grad:\n"
            "        layer.eval()"
        )
        if norms.others_trainable
        else f"{name}.eval()",
        line=call.place.line,
        cell=call.place.cell,
        severity="" if norms.others_frozen else "hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("frozen and in train mode", ", ".join(one or name for one in norms.frozen_awake[:_SHOWN])),
            Evidence("such layers", count, "count"),
            Evidence("BatchNorm layers in all", norms.count, "count"),
            Evidence("calls from this line", call.count, "count"),
        ),
    )


def _kinds(norms: NormsFact) -> str:
    return norms.kinds[0] if len(norms.kinds) == 1 else "BatchNorm"
