"""What autograd nodes keep for backward, read without running anything of the user's.

The newest releases show what was saved (2.13 does, 2.9 does not). Older ones only unpack it, and that runs the hooks
that were given for it: checkpoints compute again, offloaded tensors come back. So there the nodes that were made under
hooks are known by their numbers, and left unread.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch

from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node, node_number, sequence_number
from torch_inspector.observe.wrapper import Patch, unframe

SavedTensor: Any = getattr(torch._C._autograd, "SavedTensor", None)
"""The class of what a node keeps."""

shows_itself: bool = hasattr(SavedTensor, "data")
"""True if a `SavedTensor` has the tensor as `.data`, and does not have to be unpacked."""

_tells_hooks: bool = hasattr(SavedTensor, "unpack_hook")
# What torch says of saved tensors that are gone.
_FREED = "freed"
# Blocks with hooks that are remembered; nodes made before the oldest of them are left unread.
_BLOCKS = 10_000
_Pair = tuple[Any, Any]
_READERS: dict[type[Any], tuple[Callable[[Any], Any], ...]] = {}


class HookedBlocks:
    """Remembers which nodes were made while hooks for saved tensors were set: by number, whichever thread made them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        """The largest number that any block up to here has reached."""
        self._open: list[int] = []
        # While nobody watches, any node may have been made under hooks.
        self._unknown_below = sys.maxsize
        self.by_hand = False
        """True once hooks were given to a single `SavedTensor`: nobody knows to which."""
        hooks = torch.autograd.graph.saved_tensors_hooks
        self.patches: tuple[Patch, ...] = ()
        if not shows_itself:
            self.patches = (
                Patch(hooks, "__enter__", self._wrap_enter),
                Patch(hooks, "__exit__", self._wrap_exit),
                Patch(SavedTensor, "register_hooks", self._wrap_register),
            )

    def install(self) -> None:
        """Begins to remember: what was made before is not known."""
        self._unknown_below = sequence_number()
        for patch in self.patches:
            patch.install()

    def remove(self) -> None:
        """Stops."""
        self._unknown_below = sys.maxsize
        for patch in reversed(self.patches):
            patch.remove()

    def may_have_made(self, number: int) -> bool:
        """True if the node with this number may have hooks for what it saved."""
        if self.by_hand or number < self._unknown_below or any(number >= start for start in self._open):
            return True
        place = bisect_right(self._starts, number)
        return place > 0 and number < self._ends[place - 1]

    def begin(self) -> None:
        """Hooks are set."""
        self._open.append(sequence_number())

    def end(self) -> None:
        """The latest hooks are gone."""
        if not self._open:
            return
        start, end = self._open.pop(), sequence_number()
        if start >= end:
            return
        place = bisect_right(self._starts, start)
        self._starts.insert(place, start)
        self._ends.insert(place, self._ends[place - 1] if place else 0)
        for later in range(place, len(self._ends)):
            if self._ends[later] >= end:
                break
            self._ends[later] = end
        if len(self._starts) > _BLOCKS:
            self._unknown_below = self._ends[_BLOCKS // 2]
            del self._starts[: _BLOCKS // 2], self._ends[: _BLOCKS // 2]

    def _wrap_enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(*args: Any, **kwargs: Any) -> Any:
            try:
                result = original(*args, **kwargs)
            except BaseException as error:  # where hooks are forbidden, none are set
                unframe(error)
                raise
            if not torch.compiler.is_dynamo_compiling():
                self.begin()
            return result

        return enter

    def _wrap_exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(*args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_dynamo_compiling():
                self.end()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return leave

    def _wrap_register(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def register_hooks(*args: Any, **kwargs: Any) -> Any:
            self.by_hand = True
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return register_hooks


hooked = HookedBlocks()


def saved_values(node: Node) -> list[_Pair]:
    """What a node keeps, each with the hook that would unpack it.

    The value is a tensor, an object that a hook packed, or None once freed. Nothing is said of what cannot be read.
    """
    if not shows_itself and hooked.may_have_made(node_number(node)):
        return []
    found: list[_Pair] = []
    for read in _readers(type(node)):
        try:
            kept = read(node)
        except RuntimeError as error:
            if _FREED in str(error):
                found.append((None, None))
            continue  # what was changed in place since is not unpacked
        if is_one_of(kept, (tuple, list)):
            found += map(_pair, kept)
        else:
            found.append(_pair(kept))
    return found


def _pair(kept: Any) -> _Pair:
    """What was kept, and the hook that would unpack it."""
    return (
        (kept.data, kept.unpack_hook if _tells_hooks else None) if shows_itself and kept is not None else (kept, None)
    )


def saved_value(node: Node, name: str) -> Any:
    """The tensor that a node keeps under a name (`self`, `other`); None if there is none, or it cannot be read."""
    try:
        if shows_itself:
            return shown_by(getattr(node, f"_raw_saved_{name}", None))
        return None if hooked.may_have_made(node_number(node)) else getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # freed, or changed in place since
        return None


def shown_by(saved: Any) -> Any:
    """The tensor behind a `SavedTensor`; None where it does not show itself."""
    return saved.data if shows_itself and saved is not None else None


def _readers(kind: type[Any]) -> tuple[Callable[[Any], Any], ...]:
    """What reads the parts that a kind of node keeps: `_raw_saved_self`, or `_saved_self` where it must be unpacked."""
    readers = _READERS.get(kind)
    if readers is None:
        names = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        if not shows_itself:
            names = [name.replace("_raw_saved_tensors", "saved_tensors").removeprefix("_raw") for name in names]
        readers = tuple(getattr(kind, name).__get__ for name in names)
        if kind.__module__ != "torch.autograd.function":  # a class of the user's, made anew as often as the cell runs
            _READERS[kind] = readers
    return readers
