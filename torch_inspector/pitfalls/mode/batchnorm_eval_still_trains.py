"""BatchNorm in eval mode whose weights are trained."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, NormsFact, Run
from torch_inspector.facts.part_names import typed
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Who writes this thinks of the layers as fixed.
_FREEZES = re.compile(r"freez|frozen", re.IGNORECASE)
_SHOWN = 3


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds BatchNorm layers in eval mode, in a model in train mode, whose weight and bias steps still change.

    That is no mistake by itself: it is said where the code speaks of freezing, or the cell asks with `%%torchcheck`.
    """
    said: set[int] = set()
    for call in run.trace.forwards:
        norms = call.norms
        if norms is None or call.module in said or not _is_half_frozen(call, norms, run):
            continue
        if run.cell.wants_report or _speaks_of_it(run):
            said.add(call.module)
            yield _finding(run, call, norms)


def _is_half_frozen(call: ForwardFact, norms: NormsFact, run: Run) -> bool:
    if not norms.learning_asleep or not call.training or not call.grad_enabled:
        return False
    return any(step.parameter_keys & step.leaf_keys & norms.learning_keys for step in run.trace.steps)


def _speaks_of_it(run: Run) -> bool:
    return any(_FREEZES.search(one.cell.code) for one in (run, *run.earlier))


def _finding(run: Run, call: ForwardFact, norms: NormsFact) -> Finding:
    name = run.path_of(call)
    count = len(norms.learning_asleep)
    paths = [typed(f"{name}.{one}") for one in norms.learning_asleep[:_SHOWN]]
    names = ", ".join(f"`{one}`" for one in paths) + (", …" if count > _SHOWN else "")
    whose = "their" if count > 1 else "its"
    kind = norms.kinds[0] if len(norms.kinds) == 1 else "BatchNorm"
    return Finding(
        message=(
            f"{count} {kind} in eval mode ({names}) in `{name}`: {whose} statistics rest, {whose} weight and bias are "
            "still trained."
        ),
        subject=name,
        fix="layer.requires_grad_(False)  # beside layer.eval(), for each of them"
        if count > _SHOWN
        else "\n".join(f"{path}.requires_grad_(False)  # beside {path}.eval()" for path in paths),
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("layers", ", ".join(paths)),
            Evidence("such layers", count, "count"),
        ),
    )
