"""Counts each piece of memory once, and remembers what holds it, as what, and who else does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from torch_inspector.observe import as_torch, kinds, private
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
    """Memory that one holder keeps in one way: of a tensor, or all that its graph has saved."""

    memory: Memory
    """The first that was counted."""
    kind: str
    phase: str
    holder: Any
    """The object on the way to it: a tensor, a storage, the root of a graph."""
    how: str
    """What leads from the holder to the memory: `.grad`, `._values()`; empty for the holder's own elements."""
    nbytes: int = 0
    """Bytes of all that was counted, in blocks of the allocator where it tells them."""
    used_nbytes: int = 0
    """Bytes that the holder itself shows; less than all for a view."""
    count: int = 0
    others: tuple[tuple[Any, str], ...] = ()
    """Who else holds it, each with what leads from there: the first few."""

    def continues(self, memory: Memory, kind: str, phase: str, holder: Any, how: str) -> bool:
        """True if more memory belongs to this: one holder keeps it, in the same way, on the same device."""
        if self.holder is not holder or self.how != how:
            return False
        return (self.kind, self.phase, self.memory.device) == (kind, phase, memory.device)

    def held_by_other(self, holder: Any, how: str) -> None:
        """Remembers another holder."""
        if self.holder is not holder and len(self.others) < _OTHERS:
            self.others += ((holder, how),)


class Account:
    """All memory found so far. Holds the user's objects until `drop`.

    Args:
        gradients: False where gradients must not be read.
        blocks: For each accelerator, what its allocator has given out.
    """

    def __init__(self, *, gradients: bool, blocks: Mapping[str, Blocks] | None = None) -> None:
        self.pieces: list[Piece] = []
        self.foreign: list[Piece] = []
        self.roles: dict[int, tuple[str, Any, str]] = {}
        """For each tensor with a role: its kind, the module or optimizer it belongs to, and the name there."""
        self._gradients = gradients
        self._tangents = private.forward_mode()
        self._blocks = blocks or {}
        self._at: dict[tuple[str, int], Piece] = {}
        self._done: set[int] = set()
        self._kept: list[Any] = []

    def own(self) -> set[int]:
        """Addresses of our objects that refer to the user's."""
        others = [piece.others for piece in (*self.pieces, *self.foreign)]
        each = chain(self.pieces, self.foreign, others, chain.from_iterable(others))
        return {id(self._kept), *map(id, each)}

    def drop(self) -> None:
        """Lets go of everything."""
        for held in (self.pieces, self.foreign, self.roles, self._at, self._kept):
            held.clear()

    def nbytes(self, device: str | None = None) -> int:
        """Bytes counted so far."""
        return sum(piece.nbytes for piece in self.pieces if device in (None, piece.memory.device))

    def piece_of(self, memory: Memory) -> Piece | None:
        """What a piece of memory was counted as; None if it was not."""
        return self._at.get((memory.device, memory.address))

    def tensors(self) -> list[Any]:
        """Every tensor that was counted."""
        return self._kept

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
            self._claim(memory, kind, phase, holder, how, shown=_shown(tensor))
        else:
            self._parts(tensor, kind, phase, holder, how)
        if tensor.is_quantized or tensor.is_nested or self._tangents:
            for name, part in private.extras_of(tensor):
                self.tensor(part, kind, phase, holder, how + name)
        self._hanging(tensor, kind, phase, holder, how)

    def _parts(self, tensor: Any, kind: str, phase: str, holder: Any, how: str) -> None:
        opaque = private.opaque_nbytes(tensor)
        if opaque:
            memory = Memory(id(tensor), opaque, str(tensor.device), own=True)
            self._claim(memory, kind, phase, holder, how, shown=opaque)
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
        if keeps and self._gradients:
            gradient = as_torch.grad(tensor)
            if gradient is not None:
                self.tensor(gradient, GRADIENT, phase, holder, f"{how}.grad")
        base = as_torch.base(tensor) if not leaf and as_torch.requires_grad(tensor) else None
        if base is not None:
            self.tensor(base, kind, phase, holder, f"{how}._base")

    def storage(self, storage: Any, phase: str) -> None:
        """Counts a storage object."""
        if id(storage) in self._done:
            return
        self._done.add(id(storage))
        memory = memory_of_storage(storage)
        if memory is not None:
            self._claim(memory, TENSOR, phase, storage, "", shown=memory.nbytes)

    def _note_other(self, tensor: Any, holder: Any, how: str) -> None:
        """A graph keeps a tensor that was counted already, under a name of its own."""
        if holder is None or holder is tensor or how == LEAF:
            return
        memory = memory_of_tensor(tensor)
        piece = self.piece_of(memory) if memory is not None else None
        if piece is not None:
            piece.held_by_other(holder, how)

    def _claim(self, memory: Memory, kind: str, phase: str, holder: Any, how: str, *, shown: int) -> None:  # noqa: PLR0913
        key = (memory.device, memory.address)
        known = self._at.get(key)
        if known is not None:
            known.held_by_other(holder, how)
            return
        nbytes = self._rounded(memory) if self._blocks else memory.nbytes
        where = self.pieces if memory.own else self.foreign
        # What a graph keeps comes in one go, and may be very many.
        piece = where[-1] if where and where[-1].continues(memory, kind, phase, holder, how) else None
        if piece is None:
            piece = Piece(memory, kind, phase, holder, how)
            where.append(piece)
        piece.nbytes += nbytes
        piece.used_nbytes += shown
        piece.count += 1
        self._at[key] = piece

    def _rounded(self, memory: Memory) -> int:
        """Bytes of the block that the allocator has given out for it."""
        blocks = self._blocks.get(memory.device)
        return (blocks.size_at(memory.address) if blocks is not None else None) or memory.nbytes


def _shown(tensor: Any) -> int:
    """Bytes of the elements of a tensor."""
    try:
        return int(as_torch.nbytes(tensor))
    except Exception:  # noqa: BLE001
        return 0


def _parts(container: Any) -> list[Any]:
    try:
        if isinstance(container, dict):
            return list(dict.values(container))
        return list(container) if kinds.is_one_of(container, (list, tuple)) else []
    except RuntimeError:  # another thread changes it
        return []
