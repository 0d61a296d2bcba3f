"""Small views that alone keep a large storage alive.

Nobody else holds it if everything that counts references says so: as many tensors share the storage as were found, and
nothing in Python refers to the tensor that they are views of. Both counts are compared with those of a view made here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import PinFact, Place, TensorFact, syntax
from torch_inspector.observe import as_torch, kinds, private, sorts
from torch_inspector.observe.growth import growth
from torch_inspector.observe.heap.storages import exact, memory_of_tensor
from torch_inspector.observe.lines import assignment_line
from torch_inspector.observe.place import CodeFile

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Group, Names

# Times that the storage must be larger than what is shown of it, and bytes below which it is not worth a look.
_TIMES, _LEAST = 10, 64 << 10
# Storages looked at in one cell.
_MOST = 16
_ANY_LINE = 1 << 31


def pins(names: Names, facts: Iterable[TensorFact]) -> tuple[PinFact, ...]:
    """One fact per storage of which named views show a small part and which nothing else holds.

    Args:
        names: What the walk of the variables found.
        facts: What was said of it.
    """
    small = {fact.path for fact in facts if _is_small(fact)}
    if not small or private.storage_use_count is None or not exact():
        return ()
    shared: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for path, tensor in names.tensors:
        memory = memory_of_tensor(tensor) if path in small else None
        if memory is not None and memory.own and memory.nbytes >= _LEAST:
            shared.setdefault(memory.address, []).append((path, tensor))
    found = (_pin(views) for views in list(shared.values())[:_MOST])
    groups = {path: group for group in names.groups.values() for path, _ in group.tensors}
    return tuple(_with_container(fact, groups.get(fact.paths[0])) for fact in found if fact is not None)


def _with_container(fact: PinFact, group: Group | None) -> PinFact:
    """The same with what is known of the container that the first view is in."""
    if group is None:
        return fact
    held, sort = len(group.tensors), sorts.sort_of(type(group.container))
    only = held >= sorts.length(sort, group.container)
    mapping = kinds.is_a(group.container, dict)
    return fact._replace(mapping=mapping, tensor_count=held, only_tensors=only)


def _is_small(fact: TensorFact) -> bool:
    history = fact.requires_grad and not fact.is_leaf
    return fact.storage_nbytes >= max(_TIMES * fact.nbytes, _LEAST) and fact.nbytes > 0 and not history


def _pin(views: list[tuple[str, torch.Tensor]]) -> PinFact | None:
    distinct = {id(tensor): (path, tensor) for path, tensor in views}
    tensors = [tensor for _, tensor in distinct.values()]
    storage = private.storage_of(tensors[0])
    shown = sum(as_torch.numel(tensor) * as_torch.element_size(tensor) for tensor in tensors)
    if storage is None or shown * _TIMES > storage[1] or not _alone(tensors, storage[0]):
        return None
    paths = tuple(path for path, _ in distinct.values())
    return PinFact(paths, shown, storage[1], str(as_torch.device(tensors[0])), storage[0])


def _alone(tensors: list[Any], storage: int) -> bool:
    """True if these views are all that shares the storage, besides the tensor that they are views of.

    `x[:, -1].detach()` is a view of no tensor any more, and shares the storage all the same.
    """
    bases = {id(base): base for tensor in tensors if (base := as_torch.base(tensor)) is not None}
    count = private.storage_use_count
    if count is None or len(bases) > 1:
        return False
    if not bases:
        return int(count(storage)) - len(tensors) == _usual_without_base()
    (base,) = bases.values()
    bases.clear()
    usual = _usual()
    return int(count(storage)) - len(tensors) == usual[0] and _references(base) == usual[1]


@lru_cache(maxsize=1)
def _usual() -> tuple[int, int]:
    """References to the storage besides the view, and to the base, of a view that alone holds both."""
    view = torch.empty(2, device="cpu")[:1]
    storage, count, base = private.storage_of(view), private.storage_use_count, view._base
    return (int(count(storage[0])) - 1 if storage is not None and count is not None else -1), _references(base)


@lru_cache(maxsize=1)
def _usual_without_base() -> int:
    """References to the storage besides the view, of a view that alone holds it."""
    view = as_torch.detach(torch.empty(2, device="cpu")[:1])
    storage, count = private.storage_of(view), private.storage_use_count
    return int(count(storage[0])) - 1 if storage is not None and count is not None else -1


def _references(base: Any) -> int:
    return sys.getrefcount(base)


def with_lines(facts: tuple[PinFact, ...], files: list[CodeFile]) -> tuple[PinFact, ...]:
    """The same with the line that made each view, without what a loop over a tensor has left behind.

    Args:
        facts: Views of which nothing else keeps the storage.
        files: Code to search, the cell's own first: what kept it besides may have gone in a later cell.
    """
    passing = _loop_variables(files[0])
    return tuple(_with_line(fact, files) for fact in facts if not passing.issuperset(fact.paths))


def _loop_variables(file: CodeFile) -> set[str]:
    """Variables that hold the last element of what was iterated, until the next loop."""
    loops = (
        (node.target for node in syntax.walk(file.tree) if isinstance(node, ast.For)) if file.tree is not None else ()
    )
    return {name.id for target in loops for name in syntax.walk(target) if isinstance(name, ast.Name)}


def _with_line(fact: PinFact, files: list[CodeFile]) -> PinFact:
    for file in files:
        line = _line(file.tree, fact.paths[0]) if file.tree is not None else None
        if line is not None:
            return fact._replace(made_at=Place(file.cell, line + file.offset))
    return fact


def _line(tree: ast.Module, path: str) -> int | None:
    """The line that gives the view its name, or puts it into its container, or that container into another."""
    line = assignment_line(tree, path, _ANY_LINE)
    while line is None and path.endswith("]"):
        path = path.rpartition("[")[0]
        grown = growth(tree, path)
        line = grown.line if grown is not None else assignment_line(tree, path, _ANY_LINE)
    return line
