"""Models whose answers others learn from, and which stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

# What such a model is called, as the last part of a name.
NAMED = re.compile(
    r"^_?(\w+_)?(teacher|reference|oracle|ref)(_?(model|net|network|policy|encoder))?\d*$", re.IGNORECASE
)
# Who writes this moves its weights: a copy that follows, where noise in both is often meant.
_FOLLOWS = re.compile(
    r"\.data\s*=|\.(mul|lerp|copy|add)_\(|_foreach|\bema\b|ema_|_ema\b|moving.?average|mean.?teacher|momentum_|noisy"
    r"|load_state_dict\(\s*[\w.]+\.state_dict\(\)|monte.?carlo|\bmc_?dropout|uncertain",
    re.IGNORECASE,
)


def stays(run: Run) -> bool:
    """False if a cell moves weights by hand, or says that noise is wanted."""
    return not any(_FOLLOWS.search(one.cell.code) for one in (run, *run.earlier))


def is_awake_teacher(call: ForwardFact, run: Run) -> bool:
    """True for a model of such a name that answers in train mode, while others are trained and it is not."""
    names = (run.module_path(call.module), call.name)
    if call.grad_enabled or not (call.training and call.awake) or not any(map(is_named, names)):
        return False
    steps = run.trace.steps
    others = steps and not any(step.parameter_keys & call.parameter_keys for step in steps)
    return bool(others) and any(step.order > call.order for step in steps) and stays(run)


def is_named(path: str) -> bool:
    """True for `teacher`, `self.teacher_model`."""
    return NAMED.match(path.rpartition(".")[2]) is not None


def counted(layers: Iterable[tuple[str, int]]) -> str:
    """`2 Dropout, 1 BatchNorm1d`."""
    return ", ".join(f"{count} {kind}" for kind, count in layers)
