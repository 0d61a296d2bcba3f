"""Weights that became huge within a step or two, of which a loss is not finite any more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import LossFact

# How often weights have grown within the first steps, and to what at least; the same where the text has nothing else
# that could give NaN: what is multiplied in many steps of time needs no more.
_GREW, _LARGE, _HUGE = 10, 5.0, 1e3
_GREW_ALONE = 3
# Operations that size alone makes not finite.
_GROWN = frozenset(
    ["**", "*", "@", "+", "-", "sum", "mean", "a linear layer", "a convolution", "softmax", "log_softmax", "logsumexp"]
)
_REASONS = re.compile(
    r"/(?!/)|\*\*|mask|\b(inf|nan|where|log|log2|log10|log1p|sqrt|rsqrt|exp|pow|div|norm|std|var|tri[lu])\b"
)


def burst(run: Run) -> tuple[LossFact, LossFact] | None:
    """The last finite loss and the next one, which is not, where the steps between made the weights huge."""
    bad, finite = run.first_nonfinite_loss(), None
    for loss in run.trace.losses:
        finite = loss if bad is not None and loss.place == bad.place and loss.order < bad.order else finite
    if bad is None or finite is None or bad.spoiled_weights:
        return None
    times = _GREW if _has_reasons(run) else _GREW_ALONE
    if bad.largest_weight < max(times * (run.trace.losses[0].largest_weight or _HUGE), _LARGE):
        return None
    grown = bad.operation is None or (not bad.operation.cause and bad.operation.name in _GROWN)
    given = any(not one.computed for one in bad.origins)
    stepped = any(finite.order < step.order < bad.order and not step.maximizes for step in run.trace.steps)
    return (finite, bad) if grown and stepped and not given and not run.graph_in_half(bad) else None


def _has_reasons(run: Run) -> bool:
    """True if a text has an operation that may give NaN of numbers that are not large."""
    lines = (line.split("#")[0] for one in (run, *run.earlier) for line in one.cell.source.splitlines())
    return any(_REASONS.search(line) for line in lines)
