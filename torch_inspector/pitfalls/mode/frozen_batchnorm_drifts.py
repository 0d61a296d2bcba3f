"""Frozen layers whose batch statistics go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, NormsFact, Place, Run, part_names
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
    name = run.path_of(call)
    part, count = _part(run, name, norms), len(norms.frozen_awake)
    shown = [part_names.typed(f"{name}.{one}") if one else name for one in norms.frozen_awake[:_SHOWN]]
    names = ", ".join(f"`{one}`" for one in shown) + (", …" if count > _SHOWN else "")
    where = f"`{part}`, which is a part of `{name}`" if part else f"`{name}`"
    are, their = ("layer is", "its") if count == 1 else ("layers are", "their")
    return Finding(
        message=(
            f"{count} frozen {_kinds(norms)} {are} in train mode in {where} ({names}): "
            f"{their} weights stay, {their} running mean and variance follow every batch."
        ),
        subject=name,
        fix=_fix(name, part, norms),
        line=call.place.line,
        cell=call.place.cell,
        severity="" if norms.others_frozen else "hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("frozen and in train mode", ", ".join(shown)),
            Evidence("such layers", count, "count"),
            Evidence("BatchNorm layers in all", norms.count, "count"),
            Evidence("calls from this line", call.count, "count"),
        ),
    )


def _part(run: Run, name: str, norms: NormsFact) -> str:
    """What the user can type for a part that is frozen as a whole and has all these layers; a variable if one is it."""
    paths = [fact.path for _, key in norms.frozen_parts if (fact := run.after.module(key)) is not None]
    inside = [part_names.typed(f"{name}.{part}") for part, _ in norms.frozen_parts]
    return next((path for path in [*filter(str.isidentifier, paths), *inside]), "")


def _fix(name: str, part: str, norms: NormsFact) -> str:
    if not norms.others_trainable:
        return f"{name}.eval()"
    if part:
        return f"{name}.train()  # each epoch, then\n{part}.eval()"
    return (
        f"{name}.train()  # each epoch, then\n"
        f"for layer in {name}.modules():\n"
        "    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and not layer.weight.requires_grad:\n"
        "        layer.eval()"
    )


def _kinds(norms: NormsFact) -> str:
    return norms.kinds[0] if len(norms.kinds) == 1 else "BatchNorm"
