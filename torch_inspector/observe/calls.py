"""All calls of one module from one line in one mode, from the first on."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch

from torch_inspector.facts import CountFact, DropoutFact, ForwardFact, NormsFact, Place, Shape, TeacherFact, ZeroedRows
from torch_inspector.observe import as_torch, dropping, kinds, layers, norms, private
from torch_inspector.observe.callers import Callers, callers_of
from torch_inspector.observe.callsite import CallSite
from torch_inspector.observe.naming import name_in
from torch_inspector.observe.recut import sizes_before
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.teachers import looked_again, teachers_in
from torch_inspector.observe.zeroed import is_norm_layer

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder


class Calls(CallSite):
    """What is known of them. The wrapper of `Module.__call__` reads it on every call: flat, and in slots."""

    __slots__ = (
        "_looked",
        "_random",
        "_ref",
        "anywhere",
        "callers",
        "code",
        "copy_of",
        "differentiated",
        "drew",
        "dropouts",
        "fact_order",
        "first",
        "grad_enabled",
        "graph_nbytes",
        "hooked",
        "input_devices",
        "input_requires_grad",
        "input_shapes",
        "inside",
        "is_norm",
        "kind",
        "last_order",
        "lasti",
        "layer",
        "module",
        "name",
        "norms",
        "output_requires_grad",
        "output_shape",
        "parameter_keys",
        "place",
        "quiet",
        "reached",
        "recut",
        "teachers",
        "traced",
        "trainable_count",
        "trained",
        "training",
        "zeroed",
    )

    def __init__(self, module: Any, frame: FrameType, *, training: bool, grad_enabled: bool) -> None:
        super().__init__()
        self._ref: ref[Any] | None = None
        self._looked: ref[Any] | None = None
        """The module of the call that runs, where teachers are looked at when it has ended."""
        self.kind = kinds.class_name(module)
        self.code: CodeType = frame.f_code
        self.lasti = frame.f_lasti
        self.training = training
        self.grad_enabled = grad_enabled
        self.quiet = False
        """True if the next call is only counted."""
        self.anywhere = False
        """True if that call is counted whichever line makes it, and runs no other module."""
        self.layer: Calls | None = None
        """Calls of the first layer of a model whose `forward` is called by name."""
        self.module = 0
        self.name = ""
        self.place = Place()
        self.callers = Callers()
        self.inside = layers.Inside((), (), 0)
        self.trained = False
        self.copy_of = 0
        """Key of the trained model that the module is a copy of, if it counts as trained for that only."""
        self.traced = False
        """True if the model as a program is what is wanted (`torch.jit.trace`, counters of operations)."""
        self.hooked = False
        self.fact_order = self.last_order = 0
        self.input_shapes: tuple[Shape, ...] = ()
        self.input_devices: tuple[str, ...] = ()
        self.input_requires_grad = False
        self.recut: tuple[Shape, ...] = ()
        self.output_requires_grad = False
        self.output_shape: Shape | None = None
        self.graph_nbytes = 0
        self.reached: bool | None = None
        self.differentiated: tuple[int, ...] = ()
        """Backward calls of the cell before the first and the latest call that was looked at."""
        self.parameter_keys: frozenset[int] = frozenset()
        self.trainable_count = 0
        self.dropouts: tuple[DropoutFact, ...] = ()
        self.drew: bool | None = None
        self._random: Any = None
        """State of the random numbers when the call that runs began, where a dropout may draw some."""
        self.first = 0
        """Number of the first autograd node that it makes."""
        self.norms: NormsFact | None = None
        self.teachers: tuple[TeacherFact, ...] = ()
        self.is_norm = False
        """True if it may make rows zero in float16 by squaring them."""
        self.zeroed: ZeroedRows | None = None

    def describe(self, module: Any, args: tuple[Any, ...], frame: FrameType, recorder: Recorder) -> None:
        """Notes all that the first call shows before it runs."""
        self.fact_order = self.last_order = recorder.next_order()
        self.module = recorder.keys.of(module)
        user = recorder.places.user_frame(frame)
        self.place = recorder.places.find(user)
        self.name = name_in(user, module)
        self.callers = callers_of(frame, recorder.places)
        self.hooked = layers.has_hooks(module)
        parameters = [p for _, p in layers.walk_parameters(module)]
        self.parameter_keys = frozenset(map(id, parameters))
        self.trainable_count = sum(as_torch.requires_grad(p) for p in parameters)
        self.norms = norms.norms_in(module, recorder.keys)
        self.teachers = teachers_in(module, self.name)
        self.is_norm = is_norm_layer(module)
        if not self.training or not self.grad_enabled:
            self.dropouts = dropping.dropouts_in(module, recorder.places)
        tensors = [a for a in args if kinds.is_a(a, torch.Tensor)]
        shapes = ((t, shape_of(t)) for t in tensors)
        known = [(t, shape) for t, shape in shapes if shape is not None]
        self.input_shapes = tuple(shape for _, shape in known)
        self.input_devices = tuple(str(as_torch.device(t)) for t in tensors)
        self.input_requires_grad = any(as_torch.requires_grad(t) for t in tensors)
        befores = [(before, shape) for t, shape in known if (before := sizes_before(t)) is not None]
        self.recut = befores[0] if befores else ()

    def begin(self, module: Any) -> None:
        """A call that is looked at is about to run."""
        self._looked = ref(module) if self.teachers else None
        self._random = dropping.random_state() if self.dropouts else None
        self.first = private.sequence_number()

    def end(self) -> None:
        """It has run."""
        before, self._random = self._random, None
        if before is not None:
            self.drew = bool(self.drew) or dropping.has_drawn(before)
        module = self._looked() if self._looked is not None else None
        if module is not None:  # its own code may put a teacher to sleep
            self.teachers = looked_again(self.teachers, module)
        self._looked = None

    def note_differentiated(self, count: int) -> None:
        """Notes how many backward calls came before a call that was looked at."""
        self.differentiated = (*self.differentiated[:1], count)

    def look_again(self, module: Any) -> None:
        """Notes at a later call whether frozen layers, and teachers, have changed since the first."""
        self.teachers = looked_again(self.teachers, module)
        if self.norms is not None and self.norms.frozen_awake:
            moved = norms.marks_in(module) != self.norms.mark
            self.norms = self.norms._replace(moved=self.norms.moved or moved)

    def comes_from(self, frame: FrameType) -> bool:
        """True if a call by this frame is made by the line that made the others."""
        if self.lasti != frame.f_lasti or self.code is not frame.f_code:
            return False
        self.ask_later()
        return True

    def follow_layer(self) -> None:
        """Takes over what only the first layer tells: how often, and until when."""
        if self.layer is not None:
            self.count, self.last_order = self.layer.count, self.layer.last_order

    def leave_with(self, module: Any, latest: dict[int, Calls]) -> None:
        """Takes the entry out of `latest` when the module dies: another one may come to life at its address."""
        if self._ref is None:
            address = id(module)
            self._ref = ref(module, lambda _: latest.pop(address, None))

    def fact(self, differentiated: int) -> ForwardFact:
        """What is known at the end of the cell, in which so many backward calls were made."""
        inside = self.inside
        # Only a module that behaves differently in the two modes is asked for the way to it, and for the loops on the
        # way only if it might be in the wrong one.
        judged = bool(inside.awake or self.dropouts)
        told = self.callers if judged or inside.asleep else Callers(self.callers.module)
        followed = differentiated > max(self.differentiated, default=0)
        repeated = judged and told.same_input(trained=differentiated > min(self.differentiated, default=0))
        return ForwardFact(
            self.fact_order, self.place, self.module, self.kind, self.training, self.grad_enabled, self.count,
            inside.awake, inside.asleep, inside.frozen_asleep, self.input_shapes, self.input_devices,
            self.input_requires_grad, self.output_requires_grad, self.output_shape, self.graph_nbytes, self.reached,
            repeated, told.module, self.trained, self.last_order, self.parameter_keys, self.name,
            told.facts(loops=judged), followed, self.hooked, self.trainable_count,
            self.dropouts, self.drew, self.norms, self.layer is not None, self.recut, self.teachers, self.zeroed,
            inside.awake_parts, self.copy_of,
        )  # fmt: skip


def counts_of(calls: list[Calls]) -> tuple[CountFact, ...]:
    """How often each kind of module was called from each line."""
    totals: dict[tuple[Place, str], int] = {}
    for one in calls:
        totals[one.place, one.kind] = totals.get((one.place, one.kind), 0) + one.count
    return tuple(CountFact("forward", place, kind, count) for (place, kind), count in totals.items())
