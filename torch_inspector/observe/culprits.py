"""The statements that may have changed in place what backward needed, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch

from torch_inspector.facts import ChangeFact, Place, syntax
from torch_inspector.observe import as_torch, kinds, lines, mutations, private, saved
from torch_inspector.observe.copied_reads import read_copied, same_attribute
from torch_inspector.observe.versions import version_of

if TYPE_CHECKING:
    from torch_inspector.observe.graph import Walk
    from torch_inspector.observe.place import CodeFile, Places
    from torch_inspector.observe.scenes import Scene, Seen

_CHANGED_IS = re.compile(
    r"\[([\w.]+Tensor) \[([\d, ]*)\]\](?:, which is output \d+ of (\w+?),)? "
    r"is at version (\d+)(?:; expected version (\d+))?"
)


class ChangedValue(NamedTuple):
    """What the message of autograd says of the value that was changed."""

    type_name: str
    """As torch writes it: `torch.FloatTensor`."""
    shape: tuple[int, ...]
    made_by: str
    """Kind of the node that gave it; empty for a leaf."""
    version: int
    wanted: int
    """Version at which it was saved: the changes in place before that are no harm."""


def changed_value(message: str) -> ChangedValue | None:
    """The value that a message tells of; None if it tells of none."""
    told = _CHANGED_IS.search(message)
    if told is None:
        return None
    shape = tuple(int(n) for n in told[2].split(",") if n.strip())
    return ChangedValue(told[1], shape, told[3] or "", int(told[4]), int(told[5] or 0))


@dataclass
class Culprits:
    """One search. Holds the user's objects: drop it at once."""

    told: ChangedValue
    scenes: list[Scene]
    seen: list[Seen]
    walk: Walk
    places: Places

    def changes(self) -> tuple[ChangeFact, ...]:
        """Statements in place that may be meant, the likeliest first."""
        wanted = {one.path for one in self.seen if self._is_changed(one.tensor)}
        # A tensor that was changed is named after the change, unless what was saved is an older result.
        after = _followers(self.walk, self.told.made_by, self.told.shape)
        followers = after | {self.told.made_by}
        ranked = []
        for file, one, near in self._written():
            afar = not near and same_attribute(one.path, wanted)
            named = afar or (near and one.path in wanted)
            meant = any(mutations.matches(one.operation, kind) for kind in followers)
            if (named or meant) and not (near and self._is_another(file, one)):
                copied = read_copied(file, one.path, one.line) if afar else ""
                remedy = copied or one.remedy_for(self.told.made_by)
                change = ChangeFact(one.path, place_in(file, one.line), one.text, remedy, named)
                # A part that is written once, before the loop that reads it, is what it was when it is read.
                once = file.tree is not None and not lines.loops_around(file.tree, one.line)
                part = one.operation == "CopySlices" and once
                ranked.append(((not named, not meant, not near, self._is_maker(one, after), part), change))
        ranked.sort(key=lambda entry: entry[0])
        return tuple(change for _, change in ranked) or self._of_element(followers)

    def _is_maker(self, one: mutations.Mutation, after: set[str]) -> bool:
        """True for a layer in place whose own result was saved: that it had changed its input is no harm."""
        itself = self.told.wanted > 0 and not one.path and mutations.matches(one.operation, self.told.made_by)
        return itself and not any(mutations.matches(one.operation, kind) for kind in after)

    def _is_changed(self, tensor: torch.Tensor) -> bool:
        """True if this may be the tensor that the message tells of; views share the count of what they show."""
        if tensor.is_inference():
            return False
        shape = self.told.shape
        same = tuple(tensor.shape) == shape or tuple(tensor.shape) == shape[::-1]
        return same and version_of(tensor) >= self.told.version > 0 and self._may_be(tensor)

    def _is_another(self, file: CodeFile, one: mutations.Mutation) -> bool:
        """True if what a statement of a living frame changes is still there, and is no part of the saved value."""
        named = [seen.tensor for seen in self.seen if seen.path == one.path]
        if not named or any(map(self._may_be, named)):
            return False
        last = lines.assignment_line(file.tree, one.path, 1 << 30) if file.tree is not None else None
        return last is None or last < one.line

    def _may_be(self, tensor: torch.Tensor) -> bool:
        """True for a tensor of the same type, changed as often, and in the memory of the saved value if it is known."""
        if not kinds.is_a(tensor, torch.Tensor) or version_of(tensor) < self.told.version:
            return False
        if not tensor.is_complex() and torch.Tensor.type(tensor) != self.told.type_name:
            return False
        storage = private.storage_of(tensor)
        if not saved.shows_itself:  # what an operation gave has a history, and what shows the same memory
            return not self.told.made_by or storage is None or storage[0] in self._recorded
        return not self._storages or storage is None or storage[0] in self._storages

    @cached_property
    def _recorded(self) -> frozenset[int]:
        """Addresses of the memory of all tensors with a history that the user's frames name."""
        some = [one.tensor for one in self.seen if as_torch.requires_grad(one.tensor)]
        return frozenset(found[0] for one in some if (found := private.storage_of(one)) is not None)

    @cached_property
    def _storages(self) -> frozenset[int]:
        """Addresses of the memory of all saved values that look like the one that was changed."""
        if not saved.shows_itself:
            return frozenset()  # older releases do not show what was changed
        values = (value for node in self.walk.nodes.values() for value, _ in saved.saved_values(node))
        alike = [one for one in values if kinds.is_a(one, torch.Tensor) and tuple(one.shape) == self.told.shape]
        return frozenset(found[0] for one in alike if (found := private.storage_of(one)) is not None)

    def _of_element(self, followers: set[str]) -> tuple[ChangeFact, ...]:
        """The only statement that may have changed one of a list of tensors: `levels[i] += x`."""
        written = [(file, one) for file, one, _ in self._written() if one.element]
        found = [pair for pair in written if any(mutations.matches(pair[1].element, kind) for kind in followers)]
        changes = [(place_in(file, one.line), one.of_element()) for file, one in found]
        facts = [ChangeFact(one.path, place, one.text, one.remedy) for place, one in changes]
        return tuple(facts) if len(facts) == 1 else ()

    def _written(self) -> Iterator[tuple[CodeFile, mutations.Mutation, bool]]:
        """Statements in place in the user's frames, up to the failing line or in its loop, then in other functions."""
        told = set()
        for scene in self.scenes:
            for one in mutations.mutations(scene.file.tree) if scene.file.tree is not None else ():
                loops = lines.loops_around(scene.file.tree, scene.line)
                last = max([scene.line, *(last for _, last in loops)])
                if one.line <= last and (scene.file.code, one.line) not in told:
                    told.add((scene.file.code, one.line))
                    yield scene.file, one, True
        for file in self.places.latest():
            for one in mutations.mutations(file.tree) if file.tree is not None else ():
                if (file.code, one.line) not in told:
                    told.add((file.code, one.line))
                    yield file, one, False


def place_in(file: CodeFile, line: int) -> Place:
    """A line of a cell, with the function that it stands in."""
    scope = syntax.scope_at(file.tree, line) if file.tree is not None else None
    return Place(file.cell, line + file.offset, getattr(scope, "name", ""))


def _followers(walk: Walk, operation: str, shape: tuple[int, ...]) -> set[str]:
    """Kinds of the nodes that took the result of the operation that the message names."""
    stem = operation.partition("Backward")[0].rstrip("0123456789")  # `Elu1` of a change in place is `EluBackward1`
    named = {
        id(node)
        for node in walk.nodes.values()
        if stem and type(node).__name__.startswith(f"{stem}Backward") and private.output_shape(node) in (shape, None)
    }
    return {
        type(node).__name__
        for node in walk.nodes.values()
        if any(id(parent) in named for parent, _ in getattr(node, "next_functions", ()) if parent is not None)
    }
