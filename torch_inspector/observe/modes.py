"""Watches `train()` and `eval()` by the user, and what `load_state_dict()` brings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ModeFact
from torch_inspector.observe import kinds, layers, private
from torch_inspector.observe.callers import lines_outside
from torch_inspector.observe.loading import brings_training
from torch_inspector.observe.states import Given, StateWatch
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.recorder import Recorder

_MODES_KEPT = 200
_is_compiling = torch.compiler.is_dynamo_compiling
_getframe = sys._getframe
_TRAIN = torch.nn.Module.train.__code__


class ModeWatch:
    """Records one cell's changes of mode between `open` and `close`."""

    def __init__(self, ledger: Ledger, changed: Callable[[], None]) -> None:
        self._ledger = ledger
        self.states = StateWatch()
        self._changed = changed
        self._recorder: Recorder | None = None
        self.facts: list[ModeFact] = []
        self.patches = (
            Patch(torch.nn.Module, "train", self._wrap_train),
            Patch(torch.nn.Module, "load_state_dict", self._wrap_load),
            *self.states.patches,
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self.facts = recorder, []
        self.states.open(recorder)

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None
        self.states.close()

    def _wrap_train(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(module: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is not None and not _is_compiling():
                self._note(recorder, module, args[0] if args else kwargs.get("mode", True), _getframe(1))
            try:
                return original(module, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return train

    def _note(self, recorder: Recorder, module: Any, mode: object, frame: FrameType) -> None:
        if frame.f_code is _TRAIN:
            return  # a parent passing the mode on to its children
        with recorder.failures.guard("mode"):
            self._changed()
            if len(self.facts) >= _MODES_KEPT:
                return
            place, training = recorder.places.find(frame), mode is True
            callers = () if training else lines_outside(frame, recorder.places)
            key, at_s = recorder.keys.of(module), recorder.elapsed_s()
            self.facts.append(ModeFact(recorder.next_order(), place, key, training, callers, at_s))

    def _wrap_load(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = None if _is_compiling() else self._recorder
            state, itself = args[0] if args else kwargs.get("state_dict"), False
            own_count = 0
            if recorder is not None and self.states.notes_loads():
                with recorder.failures.guard("load_state_dict"), private.unseen():
                    itself = self.states.gives_back_itself(recorder, module, state, _getframe(1))
                    own_count = self.states.own_count(recorder, module, state)
            try:
                result = original(module, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if recorder is not None:
                frame = _getframe(1)
                self._note_load(recorder, module, state, frame)
                strict = (args[1] if len(args) > 1 else kwargs.get("strict", True)) is not False
                with recorder.failures.guard("load_state_dict"), private.unseen():
                    self.states.note_load(recorder, module, Given(state, strict, itself, own_count), result, frame)
            return result

        return load_state_dict

    def _note_load(self, recorder: Recorder, module: Any, state: object, frame: FrameType) -> None:
        with recorder.failures.guard("load_state_dict"):
            recorder.site("load_state_dict", frame, kinds.class_name(module))
            if brings_training(state, self._ledger):
                self._ledger.trained.add(recorder.keys.of(module))
                self._ledger.settle(id(p) for _, p in layers.walk_parameters(module))
