"""How a model was when its state was taken, and whether its parameters have changed since."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from torch_inspector.observe import layers
from torch_inspector.observe.sampled import Values, some_values
from torch_inspector.observe.versions import version_of

# Parameters of a module whose versions stand for all, and those of which some values are read.
_PROBES, _READ = 8, 2


class Moment(NamedTuple):
    """What was so when a state was taken."""

    version: int
    """How often the first parameters were changed in place."""
    steps: int
    """Optimizer steps so far."""
    backwards: int
    values: tuple[Values, ...]


def moment_of(module: Any, steps: int, backwards: int) -> Moment:
    """How a module is now."""
    first = [one for _, one in islice(layers.walk_parameters(module), _PROBES)]
    return Moment(sum(map(version_of, first)), steps, backwards, tuple(map(some_values, first[:_READ])))


def moved_by_optimizer(before: Moment, now: Moment) -> bool:
    """True if optimizers made steps, and the parameters are not what they were."""
    return before.version < now.version and before.steps < now.steps


def is_changed(before: Moment, now: Moment) -> bool:
    """True if there were backward calls, and the parameters are not what they were.

    `p.data` has no version of its own: what is written there shows in the values alone.
    """
    return bool(now.backwards) and (before.version < now.version or before.values != now.values)
