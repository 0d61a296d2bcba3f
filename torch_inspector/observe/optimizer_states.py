"""State dicts of optimizers that were kept without a copy, followed the steps, and are given back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import LoadFact
from torch_inspector.observe import kinds, loaded, private
from torch_inspector.observe.naming import name_in
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.recorder import Recorder

_is_compiling = torch.compiler.is_dynamo_compiling
# Parameters whose state is compared, and calls that are remembered.
_PROBES, _TAKEN = 8, 64


class OptimizerStates:
    """Watches `state_dict()` and `load_state_dict()` of optimizers; remembers numbers only.

    Args:
        recorder: Gives the recorder of the cell that runs, if one does.
        steps: Gives the number of optimizer steps so far.
        note: Is handed what was loaded.
        wanted: Whether more of that is wanted in this cell.
    """

    def __init__(
        self,
        recorder: Callable[[], Recorder | None],
        steps: Callable[[], int],
        note: Callable[[LoadFact], None],
        wanted: Callable[[], bool],
    ) -> None:
        self._recorder, self._steps, self._note, self._wanted = recorder, steps, note, wanted
        self._taken: dict[int, int] = {}
        """Steps made when the state of each optimizer was last asked for."""
        kind = torch.optim.Optimizer
        self.patches = (
            Patch(kind, "state_dict", self._wrap_state),
            Patch(kind, "load_state_dict", self._wrap_load),
        )

    def _open(self) -> Recorder | None:
        recorder = None if _is_compiling() else self._recorder()
        return recorder if recorder is not None and threading.get_ident() == recorder.thread else None

    def _wrap_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def state_dict(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._open()
            if recorder is not None:
                with recorder.failures.guard("state_dict"), private.unseen():
                    self._taken[recorder.keys.of(optimizer)] = self._steps()
                    while len(self._taken) > _TAKEN:
                        self._taken.pop(next(iter(self._taken)))
            try:
                return original(optimizer, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return state_dict

    def _wrap_load(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._open()
            if recorder is not None and self._wanted():
                with recorder.failures.guard("load_state_dict"), private.unseen():
                    state = args[0] if args else kwargs.get("state_dict")
                    self._look(recorder, optimizer, state, sys._getframe(1))
            try:
                return original(optimizer, *args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return load_state_dict

    def _look(self, recorder: Recorder, optimizer: Any, state: Any, frame: FrameType) -> None:
        """Notes a load of what the optimizer has anyway, if steps have changed that since it was asked for."""
        key = recorder.keys.of(optimizer)
        own = set(map(id, _tensors(kinds.fields_of(optimizer).get("state"))))
        given = list(_tensors(dict.get(state, "state") if kinds.is_a(state, dict) else None))
        if not given or not all(id(one) in own for one in given) or self._steps() <= self._taken.get(key, sys.maxsize):
            return
        user = recorder.places.user_frame(frame)
        file = recorder.places.file_of(user) if user is not None else None
        if file is not None and "param_groups" in file.code:
            return  # what is given back may be the settings, changed on purpose
        self._note(
            LoadFact(
                order=recorder.next_order(),
                place=recorder.places.find(user),
                module=key,
                kind=kinds.class_name(optimizer),
                name=name_in(user, optimizer),
                state=name_in(user, state) or (loaded.given_text(recorder, user) if user is not None else ""),
                strict=True,
                state_count=len(given),
                missing=(),
                unexpected=(),
                used=False,
                itself=True,
                of_optimizer=True,
            )
        )


def _tensors(state: Any) -> Iterator[Any]:
    """Moments and counts of the first parameters."""
    entries = islice(dict.values(state), _PROBES) if kinds.is_a(state, dict) else ()
    for entry in entries:
        if kinds.is_a(entry, dict):
            yield from (one for one in dict.values(entry) if kinds.is_a(one, torch.Tensor))
