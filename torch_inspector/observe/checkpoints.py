"""Calls of the old variant of `checkpoint()`, which only sees whether its tensor arguments want gradients."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint as torch_checkpoint

from torch_inspector.facts import CheckpointFact
from torch_inspector.observe import as_torch, kinds, layers, private
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from types import FrameType

    from torch_inspector.observe.recorder import Recorder, Site

_is_compiling = torch.compiler.is_dynamo_compiling
# Parameters of one block that are remembered.
_PARAMETERS = 64
# Calls from one line that are looked at: after them it is known what the arguments are.
_LOOKS = 8
_SELF: Any = MethodType.__dict__["__self__"]


@dataclass
class _Block:
    """One line with one block."""

    site: Site
    kind: str
    keys: frozenset[int]
    training: bool
    fed: int = 0
    """Calls looked at in which an argument wanted a gradient."""
    looks: int = 0


@dataclass
class CheckpointWatch:
    """Watches one cell's calls between `open` and `close`."""

    _recorder: Recorder | None = None
    _blocks: dict[tuple[int, int], _Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kind = getattr(torch_checkpoint, "CheckpointFunction", None)
        self.patches = (Patch(kind, "forward", self._wrap),) if kind is not None else ()

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self._blocks = recorder, {}

    def close(self) -> None:
        """Records no more."""
        self._recorder = None

    def facts(self) -> tuple[CheckpointFact, ...]:
        """One fact per line and block."""
        return tuple(
            CheckpointFact(b.site.place, b.kind, b.site.count, b.fed > 0, b.training, b.keys)
            for b in self._blocks.values()
        )

    def _wrap(self, original: Any) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if not _is_compiling() and recorder is not None and threading.get_ident() == recorder.thread:
                with recorder.failures.guard("checkpoint"):
                    self._note(recorder, args, sys._getframe(1))
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return forward

    def _note(self, recorder: Recorder, args: tuple[Any, ...], frame: FrameType) -> None:
        """`args` are the context, the block, whether random states are kept, and the block's own arguments."""
        block = args[1]
        site = recorder.site("checkpoint", recorder.places.user_frame(frame) or frame)
        key = (id(site), id(block))
        seen = self._blocks.get(key)
        if seen is None:
            if len(self._blocks) >= _PARAMETERS:
                return
            seen = self._blocks[key] = _block(site, block)
        if seen.looks < _LOOKS:
            seen.looks += 1
            with private.unseen():
                seen.fed += any(kinds.is_a(one, torch.Tensor) and as_torch.requires_grad(one) for one in args[3:])


def _block(site: Site, block: Any) -> _Block:
    """A module, or the one that a method belongs to; of any other function nothing is known."""
    owner = _SELF.__get__(block) if type(block) is MethodType else block
    if not kinds.is_a(owner, torch.nn.Module):
        return _Block(site, "", frozenset(), training=True)
    parameters = (p for _, p in layers.walk_parameters(owner) if as_torch.requires_grad(p))
    keys = frozenset(id(p) for p in islice(parameters, _PARAMETERS))
    return _Block(site, kinds.class_name(owner), keys, training=kinds.fields_of(owner).get("training") is True)
