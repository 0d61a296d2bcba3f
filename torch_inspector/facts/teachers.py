"""Models whose answers others learn from, and which stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact, TeacherFact
    from torch_inspector.facts.run import Run

# What such a model is called, as the last part of a name.
NAMED = re.compile(
    r"^_?(\w+_)?(teacher|reference|oracle|ref)(_?(model|net|network|policy|encoder))?\d*$", re.IGNORECASE
)
# Who writes this moves its weights: a copy that follows, where noise in both is often meant.
_FOLLOWS = re.compile(
    r"\.data\s*[-+*/]?=|\.(mul|lerp|copy|add)_\(|_foreach|\bema\b|\bema_|_ema\b|moving.?average|mean.?teacher|momentum_"
    r"|load_state_dict\(\s*[\w.]+\.state_dict\(\)|load_state_dict\(\s*\{|update_parameters\(|AveragedModel|noisy"
    r"|monte.?carlo|\bmc_?dropout|uncertain",
    re.IGNORECASE,
)


def stays(run: Run) -> bool:
    """False if a cell moves weights by hand, or says that noise is wanted."""
    return not any(_FOLLOWS.search(one.cell.code) for one in (run, *run.earlier))


def awake_teachers(call: ForwardFact, run: Run) -> tuple[TeacherFact, ...]:
    """The teachers that answer in train mode and stay as they were, while others make steps between the answers."""
    if not call.teachers or not call.training:
        return ()
    between = [step.parameter_keys for step in run.trace.steps if call.order < step.order < call.last_order]
    held = any(keys & call.parameter_keys for keys in between)
    found = (one for one in call.teachers if (held if one.path else between and not held and not call.grad_enabled))
    return tuple(one for one in found if not one.moved)


def is_named(path: str) -> bool:
    """True for `teacher`, `self.teacher_model`."""
    return NAMED.match(path.rpartition(".")[2]) is not None


def counted(layers: Iterable[tuple[str, int]]) -> str:
    """`2 Dropout, 1 BatchNorm1d`."""
    return ", ".join(f"{count} {kind}" for kind, count in layers)
