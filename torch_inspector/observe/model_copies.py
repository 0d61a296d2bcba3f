"""Deep copies of models: which of them have weights that were trained, though no optimizer ever held them."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.observe import kinds, layers, private
from torch_inspector.observe.sampled import Values, some_values
from torch_inspector.observe.versions import version_of
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.calls import Calls
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.recorder import Recorder

# Copies remembered, and parameters at each end of one that stand for all.
_COPIES, _PROBES = 256, 4
# What gives a copy its state, above methods of its own class.
_BUILDS: Any = getattr(getattr(copy, "_reconstruct", None), "__code__", None)
_DEEPEST = 3


class _Copied(NamedTuple):
    """A copy as it was when it was made."""

    original: int
    trained: bool
    """True if the original had been."""
    mark: tuple[int, tuple[Values, ...]]


class CopyWatch:
    """Notes what `copy.deepcopy` makes of modules; remembers across cells, by number."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._recorder: Recorder | None = None
        self._copies: dict[int, _Copied] = {}
        self._by_copy: set[int] = set()
        """Keys of modules that count as trained as copies only."""
        self.patches = (Patch(torch.nn.Module, "__setstate__", self._wrap),)

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder = recorder

    def close(self) -> None:
        """Records no more."""
        self._recorder = None

    def note(self, calls: Calls, module: Any, recorder: Recorder) -> None:
        """Notes a copy with trained weights as trained where no gradients are wanted: else it may be there to train."""
        trained = self._ledger.trained
        if not calls.training or calls.grad_enabled or calls.module in trained - self._by_copy:
            return
        original = self._trained_original(recorder, module)
        if original and not calls.parameter_keys & self._ledger.stepped_keys():
            calls.copy_of = original
            self._by_copy.add(calls.module)
            trained.add(calls.module)

    def _trained_original(self, recorder: Recorder, module: Any) -> int:
        """Key of the trained model that a module, or what it just wraps, is a copy of; 0 if it is none.

        A copy of one that was not trained yet counts if it has followed it since.
        """
        if not self._copies:
            return 0
        parts = kinds.fields_of(module).get("_modules")
        inner = list(dict.values(parts)) if type(parts) is dict and dict.__len__(parts) == 1 else []
        return next((key for one in (module, *inner) if (key := self._original(recorder, one))), 0)

    def _original(self, recorder: Recorder, module: Any) -> int:
        known = self._copies.get(recorder.keys.of(module))
        if known is None:
            return 0
        follows = known.original in self._ledger.trained and _mark_of(module) != known.mark
        return known.original if known.trained or follows else 0

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_state(module: Any, state: Any) -> Any:
            try:
                result = original(module, state)
            except BaseException as error:
                unframe(error)
                raise
            recorder = self._recorder
            if recorder is not None and threading.get_ident() == recorder.thread:
                with recorder.failures.guard("copies"), private.unseen():
                    copied = _copied_in(sys._getframe(1))
                    if copied is not None and kinds.is_a(copied, torch.nn.Module) and copied is not module:
                        self._note(recorder, copied, module)
            return result

        return set_state

    def _note(self, recorder: Recorder, original: Any, made: Any) -> None:
        key = recorder.keys.of(original)
        stepped = self._ledger.stepped_keys()
        trained = key in self._ledger.trained or any(id(one) in stepped for _, one in layers.walk_parameters(original))
        self._copies[recorder.keys.of(made)] = _Copied(key, trained, _mark_of(made))
        while len(self._copies) > _COPIES:
            self._copies.pop(next(iter(self._copies)))


def _copied_in(frame: FrameType | None) -> Any:
    """What a deep copy is being made of; None within the copy of something larger, and for all else."""
    for _ in range(_DEEPEST):
        if frame is None or frame.f_code is _BUILDS:
            break
        frame = frame.f_back
    if frame is None or frame.f_code is not _BUILDS or frame.f_locals.get("memo") is None:
        return None
    outer = frame.f_back.f_back if frame.f_back is not None else None
    inside = outer is not None and outer.f_code.co_filename == _BUILDS.co_filename
    return None if inside else frame.f_locals.get("x")


def _mark_of(module: Any) -> tuple[int, tuple[Values, ...]]:
    """Changes of some parameters so far, and some of their values."""
    parameters = [one for _, one in layers.walk_parameters(module)]
    some = parameters if len(parameters) <= 2 * _PROBES else [*parameters[:_PROBES], *parameters[-_PROBES:]]
    return sum(map(version_of, some)), tuple(map(some_values, some))
