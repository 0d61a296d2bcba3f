"""Watches top-level calls of modules: in which mode, with what, and whether a backward call reaches the result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import CountFact, ForwardFact, LayerCounts, ModeFact, Place, Shape
from torch_inspector.observe import layers, lines, private
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.recorder import Recorder

# Calls of one kind whose result is looked at.
_FIRST_CALLS = 2
# Backward calls after an evaluation pass that may still reach it.
_PATIENCE = 3
_MODES_KEPT = 200

# Looked up once: the wrapper of `Module.__call__` runs for every layer of every step.
_is_compiling = torch.compiler.is_dynamo_compiling
_is_grad_enabled = torch.is_grad_enabled
_get_ident = threading.get_ident
_getframe = sys._getframe
_get = object.__getattribute__


class _Calls:
    """All calls of one module from one line in one mode."""

    __slots__ = (
        "caller",
        "code",
        "count",
        "fact_order",
        "grad_enabled",
        "graph_nbytes",
        "input_devices",
        "input_requires_grad",
        "input_shapes",
        "inside",
        "kind",
        "last_order",
        "lasti",
        "module",
        "output_requires_grad",
        "output_shape",
        "parameter_keys",
        "place",
        "quiet",
        "reached",
        "same_input",
        "trained",
        "training",
    )  # fmt: skip

    def __init__(self, module: Any, frame: FrameType, training: bool, grad_enabled: bool) -> None:
        self.kind = type(module).__name__
        self.code: CodeType = frame.f_code
        self.lasti = frame.f_lasti
        self.training = training
        self.grad_enabled = grad_enabled
        self.count = 0
        self.quiet = False
        self.module = 0
        self.place = Place()
        self.caller = ""
        self.inside = layers.Inside((), (), 0)
        self.trained = False
        self.same_input = False
        self.fact_order = 0
        self.last_order = 0
        self.input_shapes: tuple[Shape, ...] = ()
        self.input_devices: tuple[str, ...] = ()
        self.input_requires_grad = False
        self.output_requires_grad = False
        self.output_shape: Shape | None = None
        self.graph_nbytes = 0
        self.reached: bool | None = None
        self.parameter_keys: frozenset[int] = frozenset()

    def fact(self) -> ForwardFact:
        """What is known at the end of the cell."""
        awake: LayerCounts = self.inside.awake
        return ForwardFact(
            self.fact_order, self.place, self.module, self.kind, self.training, self.grad_enabled, self.count,
            awake, self.inside.asleep, self.inside.frozen_asleep, self.input_shapes, self.input_devices,
            self.input_requires_grad, self.output_requires_grad, self.output_shape, self.graph_nbytes, self.reached,
            self.same_input, self.caller, self.trained, self.last_order, self.parameter_keys,
        )  # fmt: skip


class _Waiting:
    """A pass in eval mode whose result has history: does a backward call reach it?"""

    __slots__ = ("calls", "first", "last", "patience")

    def __init__(self, calls: _Calls, first: int, last: int) -> None:
        self.calls = calls
        self.first = first
        self.last = last
        self.patience = _PATIENCE


class _State:
    """What the wrapper of `Module.__call__` reads, flat and in slots."""

    __slots__ = ("calls", "inside", "latest", "thread", "watching")

    def __init__(self) -> None:
        self.watching = False
        self.inside = False
        self.thread = 0
        self.calls: dict[tuple[int, int, int, bool, bool], _Calls] = {}
        self.latest: dict[int, _Calls] = {}
        """The last entry of each module: nearly always the one that the next call belongs to."""


class ForwardWatch:
    """Records one cell's calls of modules while it is open."""

    def __init__(self, ledger: Ledger, reader: GraphReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self._recorder: Recorder | None = None
        self._state = _State()
        self._waiting: list[_Waiting] = []
        self._given: set[int] = set()
        self.modes: list[ModeFact] = []
        self.something_new: Callable[[], None] = lambda: None
        """Called when a module is called from a new line or in a new mode, or when a pass waits for a backward call."""
        self.patches = (
            Patch(torch.nn.Module, "__call__", self._wrap_call),
            Patch(torch.nn.Module, "train", self._wrap_train),
            Patch(torch.nn.Module, "load_state_dict", self._wrap_load),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._waiting, self.modes = [], []
        self._recorder = recorder
        state = self._state
        state.calls, state.latest = {}, {}
        state.inside, state.thread, state.watching = False, recorder.thread, True

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._state.watching = False
        self._recorder = None

    def facts(self) -> tuple[ForwardFact, ...]:
        """All calls of the cell, by line and mode, in the order of their first."""
        return tuple(sorted((calls.fact() for calls in self._state.calls.values()), key=lambda fact: fact.order))

    def counts(self) -> tuple[CountFact, ...]:
        """How often each kind of module was called from each line."""
        totals: dict[tuple[Place, str], int] = {}
        for calls in self._state.calls.values():
            totals[calls.place, calls.kind] = totals.get((calls.place, calls.kind), 0) + calls.count
        return tuple(CountFact("forward", place, kind, count) for (place, kind), count in totals.items())

    def called(self) -> frozenset[int]:
        """Keys of the modules that were called."""
        return frozenset(calls.module for calls in self._state.calls.values())

    # calls ------------------------------------------------------------------

    def _wrap_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        state = self._state

        def call(*args: Any, **kwargs: Any) -> Any:
            if _is_compiling():
                return original(*args, **kwargs)
            if state.inside or not state.watching or _get_ident() != state.thread:
                try:
                    return original(*args, **kwargs) if kwargs else original(*args)
                except BaseException as error:
                    unframe(error)
                    raise
            state.inside = True
            looked, first = None, 0
            try:
                frame, module = _getframe(1), args[0]
                calls = state.latest.get(id(module))
                if (
                    calls is not None
                    and calls.quiet
                    and calls.code is frame.f_code
                    and calls.lasti == frame.f_lasti
                    and calls.training is _get(module, "__dict__").get("training")
                    and calls.grad_enabled is _is_grad_enabled()
                ):
                    calls.count += 1
                else:
                    looked = self._enter(args, frame)
                    first = private.sequence_number()
                result = original(*args, **kwargs) if kwargs else original(*args)
            except BaseException as error:
                unframe(error)
                raise
            finally:
                state.inside = False
            if looked is not None:
                self._leave(looked, args, result, first)
            return result

        private.skip_frames(call)
        return call

    def _enter(self, args: tuple[Any, ...], frame: FrameType) -> _Calls | None:
        """Counts a call that is not like the one before; gives its entry if its result is looked at."""
        if torch.compiler.is_compiling():
            return None
        module, state = args[0], self._state
        training = layers.fields_of(module).get("training") is True
        key = (id(module), id(frame.f_code), frame.f_lasti, training, _is_grad_enabled())
        calls = state.calls.get(key)
        if calls is None:
            calls = state.calls[key] = self._first(module, args[1:], frame, training=key[3], grad_enabled=key[4])
        state.latest[key[0]] = calls
        looked = not calls.quiet
        calls.count += 1
        calls.quiet = calls.count >= _FIRST_CALLS
        return calls if looked else None

    def _first(
        self, module: Any, args: tuple[Any, ...], frame: FrameType, *, training: bool, grad_enabled: bool
    ) -> _Calls:
        calls = _Calls(module, frame, training, grad_enabled)
        recorder = self._recorder
        if recorder is None:
            return calls
        self.something_new()
        with recorder.failures.guard("forward"), private.unseen():
            calls.fact_order = calls.last_order = recorder.next_order()
            calls.module = recorder.keys.of(module)
            user = recorder.places.user_frame(frame)
            calls.place = recorder.places.find(user)
            calls.caller = str(frame.f_globals.get("__name__", ""))
            calls.inside = layers.look_inside(module)
            calls.parameter_keys = frozenset(id(p) for _, p in layers.walk_parameters(module))
            calls.trained = self._was_trained(calls)
            tensors = [a for a in args if issubclass(type(a), torch.Tensor)]
            calls.input_shapes = tuple(tuple(t.shape) for t in tensors)
            calls.input_devices = tuple(str(t.device) for t in tensors)
            calls.input_requires_grad = any(t.requires_grad for t in tensors)
            file = recorder.places.file_of(user) if user is not None else None
            if user is not None and file is not None and file.tree is not None:
                calls.same_input = lines.repeats_input(file.tree, user.f_lineno)
        return calls

    def _was_trained(self, calls: _Calls) -> bool:
        if calls.module not in self._ledger.trained and calls.parameter_keys & self._ledger.stepped_keys():
            self._ledger.trained.add(calls.module)
        return calls.module in self._ledger.trained

    def _leave(self, calls: _Calls, args: tuple[Any, ...], result: Any, first: int) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        begun = perf_counter()
        with recorder.failures.guard("forward"), private.unseen():
            calls.last_order = recorder.next_order()
            output = _first_tensor(result)
            if output is None:
                return
            calls.output_shape = tuple(output.shape)
            calls.output_requires_grad |= output.requires_grad
            if output.requires_grad and not calls.training and recorder.budget.open():
                self._given = {s[0] for a in args if issubclass(type(a), torch.Tensor) and (s := private.storage_of(a))}
                self._wait(calls, output, first)
        recorder.budget.charge(begun)

    def _wait(self, calls: _Calls, output: torch.Tensor, first: int) -> None:
        recorder = self._recorder
        node = output.grad_fn
        if recorder is None or node is None:
            return
        walk = self._reader.walk([node], recorder.budget.deadline())
        if walk is not None:
            calls.graph_nbytes = max(calls.graph_nbytes, walk.saved_nbytes(self._given))
        self._waiting.append(_Waiting(calls, first, private.sequence_number()))
        self.something_new()

    # reached by backward ----------------------------------------------------

    def waiting(self) -> bool:
        """True if a backward call should be looked at because an evaluation pass waits for the answer."""
        return bool(self._waiting)

    def note_reached(self, numbers: frozenset[int], *, complete: bool) -> None:
        """Tells the waiting passes which nodes a backward call has gone through."""
        for one in list(self._waiting):
            if any(one.first <= number < one.last for number in numbers):
                one.calls.reached = True
            else:
                one.patience -= 1
            if one.calls.reached or one.patience <= 0:
                self._waiting.remove(one)
                one.calls.reached = bool(one.calls.reached) if complete else one.calls.reached

    def mark_trained(self, parameter_keys: frozenset[int]) -> None:
        """Notes that an optimizer steps these parameters: the modules that own some of them are being trained."""
        for calls in self._state.calls.values():
            if calls.parameter_keys & parameter_keys:
                self._ledger.trained.add(calls.module)

    # mode and state ---------------------------------------------------------

    def _wrap_train(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(module: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is not None and not _is_compiling() and len(self.modes) < _MODES_KEPT:
                self._note_mode(recorder, module, args, kwargs, _getframe(1))
            try:
                return original(module, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return train

    def _note_mode(
        self,
        recorder: Recorder,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
    ) -> None:
        if frame.f_code.co_name == "train" and frame.f_globals.get("__name__") == "torch.nn.modules.module":
            return  # a parent passing the mode on to its children
        with recorder.failures.guard("mode"):
            mode = args[0] if args else kwargs.get("mode", True)
            place = recorder.places.find(frame)
            self.modes.append(ModeFact(recorder.next_order(), place, recorder.keys.of(module), mode is True))

    def _wrap_load(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            try:
                result = original(module, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if recorder is not None and not _is_compiling():
                with recorder.failures.guard("load_state_dict"):
                    recorder.site("load_state_dict", _getframe(1), type(module).__name__)
                    self._ledger.trained.add(recorder.keys.of(module))
            return result

        return load_state_dict


def _first_tensor(result: Any) -> torch.Tensor | None:
    """The first tensor of a module's result, looking into plain tuples, lists and dicts."""
    if issubclass(type(result), torch.Tensor):
        return result  # type: ignore[no-any-return]
    if type(result) in (tuple, list):
        parts = list(result[:4])
    elif type(result) is dict or type(result).__mro__[1:2] == (dict,):
        parts = list(dict.values(result))[:4]
    else:
        return None
    return next((part for part in parts if issubclass(type(part), torch.Tensor)), None)
