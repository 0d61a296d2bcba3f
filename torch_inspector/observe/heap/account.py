"""Counts each piece of memory once, and remembers what holds it, as what, and who else does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_inspector.observe import kinds, private
from torch_inspector.observe.heap.allocators import Blocks
from torch_inspector.observe.heap.search import Found
from torch_inspector.observe.heap.storages import Memory, memory_of_storage, memory_of_tensor
from torch_inspector.observe.reach import is_leaf

# Other holders of one piece of memory that are remembered.
_OTHERS = 4
# Containers in an optimizer's state that are looked into: LBFGS keeps lists, others dictionaries.
_STATE_DEPTH = 3
TENSOR = "tensor"
LEAF = " (a leaf of its graph)"
PARAMETER, BUFFER, GRADIENT, STATE, ACTIVATION = "parameter", "buffer", "gradient", "optimizer state", "activation"


@dataclass(slots=True)
class Piece:
    """One piece of memory with its holders."""

    memory: Memory
    kind: str
    phase: str
    holder: Any
    """The object on the way to it: a tensor, a storage, the root of a graph."""
    how: str
    """What leads from the holder to the memory: `.grad`, `._values()`; empty for the holder's own elements."""
    used_nbytes: int = 0
    """Bytes that the holder itself shows; less than all for a view."""
    others: list[tuple[Any, str]] = field(default_factory=list)


class Account:
    """All memory found so far. Holds the user's objects until `drop`."""

    def __init__(self, *, gradients: bool) -> None:
        self.pieces: dict[tuple[str, int], Piece] = {}
        self.foreign: dict[tuple[str, int], Piece] = {}
        self.roles: dict[int, tuple[str, Any, str]] = {}
        """For each tensor with a role: its kind, the module or optimizer it belongs to, and the name there."""
        self._gradients = gradients
        self._done: set[int] = set()
        self._kept: list[Any] = []

    def own(self) -> set[int]:
        """Addresses of our objects that refer to the user's."""
        pieces = (*self.pieces.values(), *self.foreign.values())
        return {id(self._kept), *map(id, pieces), *(id(one) for piece in pieces for one in piece.others)}

    def drop(self) -> None:
        """Lets go of everything."""
        for held in (self.pieces, self.foreign, self.roles, self._kept):
            held.clear()

    def nbytes(self, device: str | None = None) -> int:
        """Bytes counted so far."""
        return sum(p.memory.nbytes for (where, _), p in self.pieces.items() if device in (None, where))

    def tensors(self) -> list[Any]:
        """Every tensor that was counted."""
        return self._kept

    def round_up(self, blocks: Mapping[str, Blocks]) -> None:
        """Replaces the bytes of each piece by those of the block that the allocator has given out for it."""
        for piece in self.pieces.values():
            where = blocks.get(piece.memory.device)
            size = where.size_at(piece.memory.address) if where is not None else None
            if size is not None:
                piece.memory = piece.memory._replace(nbytes=size)

    def unknown(self, things: list[Any]) -> list[Any]:
        """Those of some tensors and storages that were not counted."""
        done = self._done
        return [thing for thing in things if id(thing) not in done]

    # what was found -----------------------------------------------------------

    def add(self, phase: str, found: Found) -> None:
        """Counts all tensors and storages of a part of the search; tensors with a role come first."""
        for module in found.modules:
            self._note_module(module)
        for optimizer in found.optimizers:
            self._note_state(optimizer, kinds.fields_of(optimizer).get("state"), _STATE_DEPTH)
        with_role = [tensor for tensor in found.tensors if id(tensor) in self.roles]
        for tensor in with_role:
            self.tensor(tensor, self.roles[id(tensor)][0], phase)
        for tensor in found.tensors:
            self.tensor(tensor, TENSOR, phase)
        for storage in found.storages:
            self.storage(storage, phase)

    def _note_module(self, module: Any) -> None:
        fields = kinds.fields_of(module)
        for place, kind in (("_parameters", PARAMETER), ("_buffers", BUFFER)):
            registered = fields.get(place)
            for name, tensor in list(dict.items(registered)) if isinstance(registered, dict) else ():
                if tensor is not None and type(name) is str:
                    self.roles.setdefault(id(tensor), (kind, module, name))

    def _note_state(self, optimizer: Any, state: Any, depth: int) -> None:
        parts = _parts(state)
        for part in parts if depth else ():
            if kinds.is_a(part, torch.Tensor):
                self.roles.setdefault(id(part), (STATE, optimizer, ""))
            else:
                self._note_state(optimizer, part, depth - 1)

    # counting -----------------------------------------------------------------

    def tensor(self, tensor: Any, kind: str, phase: str, holder: Any = None, how: str = "") -> None:
        """Counts a tensor with all that hangs on it, once."""
        if id(tensor) in self._done:
            self._note_other(tensor, holder, how)
            return
        self._done.add(id(tensor))
        self._kept.append(tensor)
        holder = tensor if holder is None else holder
        memory = memory_of_tensor(tensor)
        if memory is not None:
            self._claim(memory, Piece(memory, kind, phase, holder, how, _shown(tensor)))
        else:
            self._parts(tensor, kind, phase, holder, how)
        for name, part in private.extras_of(tensor):
            self.tensor(part, kind, phase, holder, how + name)
        self._hanging(tensor, kind, phase, holder, how)

    def _parts(self, tensor: Any, kind: str, phase: str, holder: Any, how: str) -> None:
        opaque = private.opaque_nbytes(tensor)
        if opaque:
            memory = Memory(id(tensor), opaque, str(tensor.device), own=True)
            self._claim(memory, Piece(memory, kind, phase, holder, how, opaque))
            return
        for name, part in private.parts_of(tensor):
            self.tensor(part, kind, phase, holder, how + name)

    def _hanging(self, tensor: Any, kind: str, phase: str, holder: Any, how: str) -> None:
        """Its gradient, and the tensor that it is a view of."""
        leaf = is_leaf(tensor)
        try:
            keeps = leaf or tensor.retains_grad
        except RuntimeError:  # an undefined tensor, which up to torch 2.9 refuses each question
            return
        if self._gradients and keeps:
            gradient = tensor.grad
            if gradient is not None:
                self.tensor(gradient, GRADIENT, phase, holder, f"{how}.grad")
        if tensor.requires_grad and not leaf and tensor._is_view() and tensor._base is not None:
            self.tensor(tensor._base, kind, phase, holder, f"{how}._base")

    def storage(self, storage: Any, phase: str) -> None:
        """Counts a storage object."""
        if id(storage) in self._done:
            return
        self._done.add(id(storage))
        memory = memory_of_storage(storage)
        if memory is not None:
            self._claim(memory, Piece(memory, TENSOR, phase, storage, "", memory.nbytes))

    def _note_other(self, tensor: Any, holder: Any, how: str) -> None:
        """A graph keeps a tensor that was counted already, under a name of its own."""
        if holder is None or holder is tensor or how == LEAF:
            return
        memory = memory_of_tensor(tensor)
        piece = self.pieces.get((memory.device, memory.address)) if memory is not None else None
        if piece is not None and piece.holder is not holder and len(piece.others) < _OTHERS:
            piece.others.append((holder, how))

    def _claim(self, memory: Memory, piece: Piece) -> None:
        where = self.pieces if memory.own else self.foreign
        key = (memory.device, memory.address)
        known = where.get(key)
        if known is None:
            where[key] = piece
        elif known.holder is not piece.holder and len(known.others) < _OTHERS:
            known.others.append((piece.holder, piece.how))


def _shown(tensor: Any) -> int:
    """Bytes of the elements of a tensor."""
    try:
        return int(tensor.numel() * tensor.element_size())
    except Exception:  # noqa: BLE001
        return 0


def _parts(container: Any) -> list[Any]:
    try:
        if isinstance(container, dict):
            return list(dict.values(container))
        return list(container) if type(container) in (list, tuple) else []
    except RuntimeError:  # another thread changes it
        return []
