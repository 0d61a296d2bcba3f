"""Optimizers, and their steps with what became of the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch_inspector.facts.modules import UnlistedFact
from torch_inspector.facts.place import Place

_PAIR = 2


@dataclass(frozen=True)
class OptimizerFact:
    """One `torch.optim.Optimizer`."""

    key: int
    path: str
    kind: str
    learning_rate: float | None
    parameter_keys: frozenset[int]
    parameter_count: int
    """Parameter tensors it holds."""
    state_nbytes: int = 0
    gradient_nbytes: int = 0
    """Bytes of gradients that its parameters have; as the state, not looked at after a cell that trains."""
    eps: float | None = None
    """What Adam and its kin add to the divisor."""
    initial_rate: float | None = None
    """The rate of the first group that a schedule began from; None where there is no schedule."""
    groups: tuple[frozenset[int], ...] = ()
    """Parameters of each group that has a learning rate above 0, where there are several groups."""
    decayed_keys: frozenset[int] = frozenset()
    """Parameters of the groups with a `weight_decay` that is not 0."""


class StepFact(NamedTuple):
    """One optimizer step that was looked at in full."""

    order: int
    place: Place
    index: int
    """How many steps this optimizer has made in this cell, this one included."""
    optimizer: int
    """Key of the optimizer."""
    optimizer_kind: str
    has_closure: bool
    backward_count: int
    """Backward calls since this optimizer's last step that changed one of its gradients."""
    kept_gradients: bool
    """True if the gradient of the last step was still there when the first of them began."""
    empty_gradients: bool
    """True if no parameter has a gradient now."""
    parameter_count: int
    cleared_at: Place | None
    """Where gradients were cleared after the last backward call; None if they were not."""
    discarded_count: int
    """Clearings since the last step, between two backward calls, of gradients that nothing had used."""
    discarded_at: Place | None
    """Where such a clearing happened."""
    unreached: bool
    """True if backward calls since the last step reached other parameters only (and were seen whole)."""
    parameter_keys: frozenset[int]
    leaf_keys: frozenset[int]
    """Parameters which the backward calls since the last step reached."""
    backward_at: Place | None
    """Line of the last backward call before the step."""
    name: str = ""
    """What the code that calls `step()` calls the optimizer; empty if it has no name there."""
    idle: bool = False
    """True if no parameter had a gradient and no weight was written: the step did nothing."""
    frozen_count: int = 0
    """Parameters of the optimizer that want no gradient."""
    unmoved: bool = False
    """True if there were gradients, and yet the values that were compared are the same after the step, bit for bit."""
    maximizes: bool = False
    """True if a group of the optimizer is told to go uphill."""
    rate_is_zero: bool = False
    """True if the learning rate of every group is 0."""
    gradients_are_zero: bool = False
    """True if every gradient is 0 in all its numbers; looked at where a step has not moved what was compared."""
    coarse_type: str = ""
    """`bfloat16` or `float16` if all its parameters are of that type, and it has moved no number in any of them."""
    path: str = ""
    """What the notebook calls it where that is another name: `trainer.optimizer` for `self.optimizer`."""
    discarded_calls: int = 0
    """Backward calls since the last step before the last of those clearings: of all of them nothing is left."""


class UnheldFact(NamedTuple):
    """Parameters of one module that get gradients again and again, stay as they are, and are in no optimizer."""

    order: int
    place: Place
    """Line of the step that was taken without them."""
    optimizer: int
    """Key of the optimizer that made it."""
    module: str
    """Path of the module that owns them; empty for parameters that are variables of their own."""
    kind: str
    """Class of that module."""
    names: tuple[str, ...]
    """Paths of the first of them: `net.0.weight`."""
    keys: frozenset[int]
    late: str = ""
    """`unfrozen` if they wanted no gradient when the optimizer was made, `added` if the module had not got them."""
    held_count: int = 0
    """Parameters of the module that an optimizer holds."""
    held_parts: int = 0
    """Direct parts of the module that an optimizer holds something of."""
    training: bool = True
    settled: bool = False
    """True if they were loaded, or an earlier optimizer had them."""
    compared: bool = True
    """False if only the version counters say that they stay as they are, as for a device."""
    unlisted: UnlistedFact | None = None
    """The plain container they are in, if they are."""
    parts: tuple[str, ...] = ()
    """The fewest paths that cover them: of modules all of whose parameters they are, and of single parameters."""
    single: frozenset[str] = frozenset()
    """Those of them that are parameters."""


class ClearFact(NamedTuple):
    """`zero_grad()` of an optimizer or a module, counted per line and owner."""

    order: int
    place: Place
    kind: str
    owner: int
    count: int


class WindowFact(NamedTuple):
    """The steps of one optimizer that come each after several backward calls of one line, under a modulo test."""

    optimizer: int
    place: Place
    """Line of the step."""
    backward_at: Place
    size: int
    """Backward calls before the first step."""
    sizes: tuple[int, ...]
    """Backward calls before each of the steps that were looked at."""
    call_count: int
    """Backward calls from that line in this cell."""
    step_count: int
    """Steps in this cell; 0 if several lines make some."""

    @property
    def usual(self) -> int:
        """Backward calls before each step but the first, which `i % n == 0 and i > 0` gives one more."""
        later = set(self.sizes[1:])
        return later.pop() if len(later) == 1 and len(self.sizes) > _PAIR else self.size
