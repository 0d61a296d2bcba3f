"""What is remembered of one optimizer from step to step, also across cells: were its gradients cleared, and used?

Holds no tensor: gradients are told apart by address and version counter, which waits for no device. Where these say
that a gradient was kept, a few of its values are read, on the CPU only: `grad.data.zero_()` leaves both unchanged.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch

from torch_inspector.facts import Place
from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.groups import groups_of, parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.sampled import Values, coarse_type, has_values, some_values, sums_of_bits
from torch_inspector.observe.versions import version_of

Mark = tuple[int, int] | None
"""Address and version of one gradient; None if there is none."""

# Parameter tensors searched for one with a gradient.
_SEARCHED = 64
# Parameters of which values are compared before and after a step, and numbers read in all gradients.
_COMPARED, _READ = 4, 1 << 20
# Values of a gradient that are read.
_VALUES = 4_096


@dataclass
class OptimizerRecord:
    """The gradients of one optimizer since its last step."""

    key: int
    kind: str
    ref: weakref.ref[Any]
    probes: list[tuple[int, int]] = field(default_factory=list)
    """Group and position of the parameters that stand for all: one with a gradient per group."""
    step_marks: list[Mark] | None = None
    """Gradients as the last step left them; None if that was not looked at, or if the step itself changed them."""
    backward_marks: list[Mark] | None = None
    """Gradients as the last backward call left them."""
    clip_marks: list[Mark] | None = None
    """The same after torch's own clipping, which takes them as they are."""
    clear_marks: list[Mark] | None = None
    """Gradients as a call of `zero_grad` after it left them."""
    start_marks: list[Mark] | None = None
    """Gradients when the backward call that is running began."""
    before_step: tuple[list[Mark], list[int]] | None = None
    """Gradients and versions of the weights when the step that is running began."""
    weight_versions: list[int] = field(default_factory=list)
    backward_count: int = 0
    backward_at: Place | None = None
    backward_trail: int = 0
    cleared: bool = False
    """True if somebody cleared or replaced the gradients after the last step."""
    cleared_at: Place | None = None
    """Where they were cleared after the last backward call."""
    closure_clears: int = 0
    """Clearings since the step that is running began."""
    used: bool = True
    discarded_count: int = 0
    discarded_calls: int = 0
    """Backward calls up to the last clearing of that kind."""
    discarded_at: Place | None = None
    leaf_keys: set[int] = field(default_factory=set)
    leaves_complete: bool = True
    step_count: int = 0
    stepped_number: int = 0
    """How many autograd nodes there were when its last step that was looked at ended."""
    before_values: list[Values] = field(default_factory=list)
    """Some values of the weights when the step that is running began."""
    then: dict[int, tuple[frozenset[int], frozenset[int]]] = field(default_factory=dict)
    """By module that owns some of its parameters: all parameters when it was made, and those without gradient."""

    def marks(self) -> list[Mark]:
        """The gradients of the probes now."""
        groups = self._groups()
        if not self.probes:
            self.probes = [(g, i) for g, group in enumerate(groups) if (i := _first_with_grad(group)) is not None]
        return [_mark(groups[g][i]) for g, i in self.probes if g < len(groups) and i < len(groups[g])]

    def weights(self) -> list[int]:
        """Version counters of the first parameters' values."""
        return [version_of(p) for group in self._groups() for p in group[:_SEARCHED]]

    def values(self) -> list[Values]:
        """Some values of the first parameters with a gradient; of coarse types something of all their numbers."""
        own = (p for group in self._groups() for p in group[:_SEARCHED] if _has_gradient(p))
        some = [some_values(p) for p in islice(own, _COMPARED)]
        return [*some, sums_of_bits(self._learning())] if some and None not in some and self.coarse_type() else some

    def coarse_type(self) -> str:
        """The one type of 16 bits of all that has a gradient; empty for others."""
        return coarse_type(self._learning())

    def _learning(self) -> list[torch.Tensor]:
        return [p for group in self._groups() for p in group if _has_gradient(p)]

    def frozen_count(self) -> int:
        """Parameters that want no gradient."""
        return sum(not as_torch.requires_grad(p) for group in self._groups() for p in group)

    def rate_is_zero(self) -> bool:
        """True if the learning rate of every group is a plain 0."""
        rates = [group.get("lr") for group in groups_of(self.ref())]
        return bool(rates) and all(kinds.is_one_of(rate, (int, float)) and rate == 0 for rate in rates)

    def maximizes(self) -> bool:
        """True if a group is told to go uphill."""
        return any(group.get("maximize") is True for group in groups_of(self.ref()))

    def gradients_are_zero(self) -> bool:
        """True if all gradients, on the CPU, hold nothing but zeros; False where that is too much to read."""
        found = [as_torch.grad(p) for group in self._groups() for p in group if _has_gradient(p)]
        if sum(g.numel() for g in found) > _READ or not all(map(_is_readable, found)):
            return False
        with torch.no_grad():
            return bool(found) and not any(bool(g.any()) for g in found)

    def keys(self) -> frozenset[int]:
        """Addresses of all its parameters."""
        return frozenset(id(p) for group in self._groups() for p in group)

    def has_gradients(self) -> bool:
        """True if any of its parameters has a gradient."""
        return any(_has_gradient(p) for group in self._groups() for p in group)

    def begin_backward(self, trail: int) -> None:
        """Looks whether anything changed the gradients since the last backward call or step.

        Args:
            trail: Stands for the calls that lead to this one.
        """
        now = self.marks()
        last = self.backward_marks if self.backward_count else self.step_marks
        self.closure_clears += last is not None and now != last
        if last is None or now != last or not any(now) or self._is_zero():
            self.cleared = True
        self._note_discarded(now, trail)
        self.start_marks = now

    def _note_discarded(self, now: list[Mark], trail: int) -> None:
        """Counts a clearing of what backward calls have made although no step, and no hand, has used it."""
        if self.clip_marks is not None:
            return  # the norm that a clip returns may be what the gradients were for
        if not self.backward_count or self.used or not (self.backward_trail == trail or self._reaches_own_only()):
            return
        by_call = self.cleared_at is not None and now == self.clear_marks
        gone = by_call or (bool(now) and not any(now))
        if gone and self.weights() == self.weight_versions:
            self.discarded_count += 1
            self.discarded_calls = self.backward_count
            self.discarded_at = self.cleared_at

    def _reaches_own_only(self) -> bool:
        """True if all backward calls since the last step, this one too, reach nothing but its own parameters.

        A call from another line may have been made for something else: the gradient of an input, another network.
        """
        return self.leaves_complete and self.leaf_keys <= self.keys()

    def end_backward(self, place: Place, trail: int) -> None:
        """Notes a backward call if it changed a gradient."""
        now = self.marks()
        if now == self.start_marks:
            return
        self.backward_count += 1
        self.backward_marks = now
        self.backward_at = place
        self.backward_trail = trail
        self.weight_versions = self.weights()
        self.cleared_at = None
        self.clear_marks = None
        self.clip_marks = None
        self.used = False

    def clip(self, before: list[Mark], after: list[Mark]) -> None:
        """Notes that the gradients were clipped, if they still were as the last backward call had left them."""
        if before in (self.backward_marks, self.clip_marks):
            self.clip_marks = after

    def clear(self, place: Place) -> None:
        """Notes that `zero_grad` has just cleared the gradients."""
        self.cleared_at = place
        self.clear_marks = self.marks()
        self.closure_clears += 1

    def written(self, now: list[Mark]) -> bool:
        """True if somebody has written gradients of his own since backward (and `zero_grad` after it) made them."""
        last = self.clear_marks if self.clear_marks is not None else self.backward_marks
        if last is None or not any(now):
            return False
        if self.clear_marks is not None:
            return now != last
        return any(a is not None and b is not None and a[0] != b[0] for a, b in zip(now, last, strict=False))

    def kept_in_closure(self) -> bool:
        """True if the step that ends evaluated its closure more than once without any clearing. LBFGS does that."""
        return self.kind == "LBFGS" and self.backward_count > 1 and not self.closure_clears

    def is_as_backward_left(self, now: list[Mark]) -> bool:
        """True if what the last backward call made is what torch's own optimizer will use, at most clipped.

        Gradients that were collected, combined and written back differ; optimizers of other libraries may have taken
        them before they were cleared.
        """
        return self._is_from_torch() and now in (self.backward_marks, self.clip_marks)

    def is_without_gradients(self) -> bool:
        """True if the step that ends, of an optimizer of torch, evaluated its closure and nothing has a gradient."""
        return self._is_from_torch() and not self.backward_count and not self.has_gradients()

    def lost_in_closure(self) -> Place | None:
        """Where its closure cleared what its backward call had made, so that the step that ends had nothing to follow.

        Torch's own optimizers read the gradients when the closure has come back. It is the place of the backward call
        where they went by other means than `zero_grad`.
        """
        written = self.before_step is None or self.weights() != self.before_step[1]
        if written or not self.backward_count or not self._is_from_torch():
            return None
        if self.cleared_at is not None:
            return self.cleared_at if self.marks() == self.clear_marks else None
        return None if self.has_gradients() else self.backward_at

    def _is_from_torch(self) -> bool:
        optimizer = self.ref()
        return optimizer is not None and kinds.module_of(type(optimizer)).startswith("torch.")

    def untouched(self, now: list[Mark], *, empty: bool) -> bool:
        """True if no backward call, and nobody else, has given it a gradient since its last step."""
        if self.backward_count:
            return False
        return empty or now in (self.step_marks, self.clear_marks)

    def end_step(self, *, looked: bool) -> None:
        """Starts the time up to the next step."""
        now = self.marks()
        own_clearing = self.before_step is not None and self.before_step[0] != now
        self.step_marks = now if looked and not own_clearing else None
        self.before_step = None
        self.backward_marks = None
        self.clip_marks = None
        self.clear_marks = None
        self.backward_count = 0
        self.cleared = False
        self.cleared_at = None
        self.discarded_count = self.discarded_calls = 0
        self.discarded_at = None
        self.leaf_keys = set()
        self.leaves_complete = True

    def _is_zero(self) -> bool:
        """True if the probes' gradients, on the CPU, hold nothing but zeros in the part that is read."""
        groups = self._groups()
        found = [as_torch.grad(groups[g][i]) for g, i in self.probes if g < len(groups) and i < len(groups[g])]
        read = [g for g in found if g is not None and _is_readable(g)]
        with torch.no_grad():
            return bool(read) and not any(bool(g.reshape(-1)[:_VALUES].any()) for g in read)

    def _groups(self) -> list[list[torch.Tensor]]:
        return parameters_of(self.ref())


def _is_readable(gradient: torch.Tensor) -> bool:
    return has_values(gradient) and is_in_memory(gradient)


def _has_gradient(parameter: torch.Tensor) -> bool:
    return as_torch.is_leaf(parameter) and as_torch.grad(parameter) is not None


def _first_with_grad(group: list[torch.Tensor]) -> int | None:
    for position, parameter in enumerate(group[:_SEARCHED]):
        if _has_gradient(parameter):
            return position
    return None


def _mark(parameter: torch.Tensor) -> Mark:
    gradient = as_torch.grad(parameter) if as_torch.is_leaf(parameter) else None
    return None if gradient is None else (id(gradient), version_of(gradient))
