"""How many turns the loops around a call will make, as far as their text and plain values say."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import FrameType
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from torch_inspector.facts import syntax
from torch_inspector.observe import comprehended, kinds, lines
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.place import Places

# Frames outwards from a call, and of these the user's own.
_FRAMES, _OF_USER = 60, 6
# Functions that pass on what they are given, one by one.
_TRANSPARENT = frozenset(["tqdm", "enumerate", "list", "iter", "reversed", "sorted", "track", "progress_bar"])
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}

Loop = ast.For | ast.AsyncFor | ast.While


def planned_turns(frame: FrameType, places: Places) -> tuple[int | None, ...]:
    """Turns of each loop around a call, the innermost first, through the functions that lead to it; None if unknown."""
    turns: list[int | None] = []
    here: FrameType | None = frame
    users = 0
    for _ in range(_FRAMES):
        if here is None or users >= _OF_USER:
            break
        file = places.file_of(here)
        if file is not None and file.tree is not None:
            users += 1
            turns.extend(_turns_in(here, file.tree))
        here = here.f_back
    return tuple(turns)


@lru_cache(maxsize=64)
def loops_at(tree: ast.AST, line: int) -> tuple[Loop, ...]:
    """Loop statements around a line in its function, innermost first."""
    around = set(lines.loops_around(tree, line))
    found = [node for node in syntax.walk(tree) if isinstance(node, Loop) and (node.lineno, node.end_lineno) in around]
    return tuple(sorted(found, key=lambda node: -node.lineno))


def _turns_in(frame: FrameType, tree: ast.AST) -> Iterator[int | None]:
    """Turns of a frame's own loops; a generator expression has a frame, and the statements around it another one."""
    alone = frame.f_code.co_name in comprehended.FRAMES
    around = comprehended.around(tree, frame.f_code, frame.f_lasti)[: 1 if alone else None]
    loops = () if alone else loops_at(tree, frame.f_lineno)
    if not around and not loops:
        return
    # The first iterable of an expression is evaluated where it stands, as a rule in the function that runs it.
    with locals_of(frame.f_back if alone and frame.f_back is not None else frame) as own:
        names = _Names(own, frame.f_globals)
        yield from [None if one.ifs else names.turns(one.iter) for node in around for one in reversed(node.generators)]
        yield from [None if isinstance(loop, ast.While) else names.turns(loop.iter) for loop in loops]


class _Names:
    """Plain values that expressions of a frame stand for."""

    def __init__(self, own: Mapping[str, Any], shared: dict[str, Any]) -> None:
        self._own = own
        self._shared = shared

    def turns(self, node: ast.expr) -> int | None:
        """How many elements an iterable has."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return len(node.elts)
        return self._made(node) if isinstance(node, ast.Call) else _length(self.value(node))

    def _made(self, node: ast.Call) -> int | None:
        """The same for an iterable that a call makes."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("range", "trange"):
            return self._range([self.value(one) for one in node.args])
        if name in _TRANSPARENT and node.args:
            return self.turns(node.args[0])
        if name == "zip":
            return min((n for n in map(self.turns, node.args) if n is not None), default=None)
        if name in ("split", "chunk") and isinstance(node.func, ast.Attribute) and node.args:
            return _parts(name, _length(self.value(node.func.value)), self.value(node.args[0]))
        return None

    def _range(self, values: list[Any]) -> int | None:
        plain = all(type(value) is int for value in values)
        return len(range(*values)) if plain and values and 0 not in values[2:] else None

    def value(self, node: ast.expr) -> Any:
        """The object behind a name, an attribute, an entry or a sum; None if it is not plain."""
        if isinstance(node, ast.Name):
            return self._own.get(node.id, self._shared.get(node.id))
        if isinstance(node, ast.Attribute):
            return kinds.setting_of(self.value(node.value), node.attr)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            holder = self.value(node.value)
            return holder.get(node.slice.value) if type(holder) is dict else None
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._sum(node)
        return node.value if isinstance(node, ast.Constant) else self._len(node)

    def _len(self, node: ast.expr) -> int | None:
        is_len = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and len(node.args) == 1
        return self.turns(node.args[0]) if isinstance(node, ast.Call) and is_len else None

    def _sum(self, node: ast.BinOp) -> int | None:
        left, right = self.value(node.left), self.value(node.right)
        if type(left) is not int or type(right) is not int or (right == 0 and isinstance(node.op, ast.FloorDiv)):
            return None
        return _ARITHMETIC[type(node.op)](left, right)


def _length(thing: Any) -> int | None:
    """Elements of a plain container, rows of a plain tensor, batches of a loader over tensors."""
    if kinds.is_one_of(thing, (list, tuple, dict, range)):
        return len(thing)
    if type(thing) is torch.Tensor:
        return int(thing.shape[0]) if thing.dim() else None
    return _batches(kinds.fields_of(thing)) if type(thing) is DataLoader else None


def _batches(settings: dict[str, Any]) -> int | None:
    data, size = settings.get("dataset"), settings.get("batch_size")
    rows = _length(data if kinds.is_one_of(data, (list, tuple)) else _first_tensor(data))
    if rows is None or type(size) is not int or size < 1:
        return None
    return rows // size if settings.get("drop_last") is True else -(-rows // size)


def _first_tensor(data: Any) -> Any:
    tensors = kinds.fields_of(data).get("tensors") if type(data) is TensorDataset else None
    return tensors[0] if type(tensors) is tuple and tensors else None


def _parts(name: str, rows: int | None, size: Any) -> int | None:
    if rows is None or type(size) is not int or size < 1:
        return None
    return min(size, rows) if name == "chunk" else -(-rows // size)
