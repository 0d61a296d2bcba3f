"""Whether the user's code hands an operation the second operand that a mistake needs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

import torch

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.pairs import Pair, Side, node_of, pairs_in, scope_of
from torch_inspector.observe.place import Places
from torch_inspector.observe.private import Node
from torch_inspector.observe.shapes import UNKNOWN, Unknown, is_tensor, shape_of, stretched_to
from torch_inspector.observe.source import dotted
from torch_inspector.observe.stretched import Other, Stretch
from torch_inspector.observe.targets import is_crossed, is_output

# A step method, the loop that calls it, the cell that calls the loop.
_FRAMES = 4
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript)
_GRIDS = frozenset(["linspace", "arange", "logspace"])
# What `mse_loss` and its kin say about two sizes that differ.
_WARNED = re.compile(r"target size \(torch\.Size\(\[([\d, ]*)\]\)\).* input size \(torch\.Size\(\[([\d, ]*)\]\)\)")


class _Called(NamedTuple):
    """As much of a frame as `Places.file_of` asks for."""

    f_code: CodeType


class Reader:
    """Reads the code around one call of `backward`."""

    def __init__(self, places: Places, frame: FrameType | None) -> None:
        self._places = places
        self._frame = frame

    def other_side(self, stretch: Stretch) -> Other | None:
        """The operand that was stretched against the known one; None if that is not sure."""
        with ExitStack() as stack:
            frames = list(self._frames())
            pairs = self._all_pairs(frames, stretch.operation, stack)
            found = self._judge(pairs, stretch)
        silent = found is None and stretch.operation.endswith("_loss") and _untold(pairs, stretch)
        return Other("", stretch.wanted) if silent and self._warned(frames, stretch) else found

    def factor(self, stretch: Stretch) -> str | None:
        """What the code writes for the other side of a product, empty if that is not sure; None for a grid of bins."""
        with ExitStack() as stack:
            pairs = self._all_pairs(list(self._frames()), stretch.operation, stack)
            ways = [way for pair in pairs for way in ((pair.left, pair.right), (pair.right, pair.left))]
            sides = [other for this, other in ways if _could_be(this.value, stretch)]
            fitting = [side for side in sides if shape_of(side.value) == stretch.wanted]
            unknown = [side for side in sides if type(side.value) is Unknown]
            if any(_makes_grid(side.text) or self._is_grid_of(side) for side in (*fitting, *unknown)):
                return None
            if stretch.bent and any(self._is_list(side) for side in sides):
                return None
            texts = {ast.unparse(side.text) for side in fitting or unknown if fitting or isinstance(side.text, _PLAIN)}
            return texts.pop() if len(texts) == 1 else ""

    def name_of(self, nodes: list[Node]) -> str:
        """What the user's code calls a tensor that one of these nodes made; empty if nothing there holds one."""
        for frame in self._frames():
            names = self._names_in(frame)
            with locals_of(frame) as values:
                made = ((name, node_of(values[name])) for name in names if name in values)
                found = next((name for name, node in made if node is not None and any(node is n for n in nodes)), "")
            if found:
                return found
        return ""

    def _names_in(self, frame: FrameType) -> list[str]:
        """Variables of a function; of a cell, which runs one statement after the other, all that its text stores."""
        code = frame.f_code
        tree = None if code.co_flags & CO_OPTIMIZED else self._tree(code)
        stored = (n.id for n in syntax.walk(tree) if type(n) is ast.Name and type(n.ctx) is ast.Store) if tree else ()
        return list(dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names, *stored)))

    def _frames(self) -> Iterator[FrameType]:
        frame = self._frame
        for _ in range(_FRAMES):
            if frame is None:
                return
            yield frame
            frame = self._places.user_frame(frame.f_back)

    def _tree(self, code: CodeType) -> ast.Module | None:
        file = self._places.file_of(cast("FrameType", _Called(code)))
        return file.tree if file is not None else None

    def _all_pairs(self, frames: list[FrameType], operation: str, stack: ExitStack) -> list[Pair]:
        live = [frame.f_code for frame in frames]
        looks = (self._pairs(frame, operation, stack, live[:i]) for i, frame in enumerate(frames))
        return [pair for look in looks for pair in look]

    def _pairs(self, frame: FrameType, operation: str, stack: ExitStack, live: list[CodeType]) -> list[Pair]:
        """Pairs in the code of a frame; what it has called and is running still is looked at with its own values."""
        tree = self._tree(frame.f_code)
        scope = scope_of(tree, frame.f_code) if tree is not None else None
        if scope is None:
            return []
        names = Names(stack.enter_context(locals_of(frame)), frame.f_globals)
        return list(
            pairs_in(
                scope, names, operation, lambda code: None if any(code is one for one in live) else self._tree(code)
            )
        )

    def _judge(self, pairs: list[Pair], stretch: Stretch) -> Other | None:
        """The operand of the one pair that explains what the graph holds, if no other pair could."""
        ways = [way for pair in pairs for way in ((pair.left, pair.right), (pair.right, pair.left))]
        certain = [other for this, other in ways if node_of(this.value) is stretch.node]
        possible = [other for this, other in ways if _could_be(this.value, stretch)]
        rivals = [o for o in certain or possible if _could_be_table(o.value, stretch)]
        fitting = [o for o in certain or possible if shape_of(o.value) == stretch.wanted]
        if rivals:
            return self._crossed(rivals, stretch) if not fitting else None
        sure = bool(fitting) and all(self._is_other(side, stretch, ways) for side in fitting)
        return Other(ast.unparse(fitting[0].text), stretch.wanted) if sure else None

    def _crossed(self, sides: list[Side], stretch: Stretch) -> Other | None:
        """A target that is a table itself, because a row was added to a column when it was computed."""
        length, files = max(stretch.known), self._places.latest()
        # What a module gives back is the known side.
        targets = [side for side in sides if not is_output(side.text, side.names)]
        sure = bool(targets) and all(is_crossed(side.text, side.names, length, files) for side in targets)
        if stretch.known != (length, 1) or not sure:
            return None
        return Other(ast.unparse(targets[0].text), (length, length))

    def _is_other(self, side: Side, stretch: Stretch, ways: list[tuple[Side, Side]]) -> bool:
        """False for a parameter, a grid of bins, and the very numbers of the known side."""
        if is_tensor(side.value) and as_torch.requires_grad(side.value):
            return False
        root = _root(side.text)
        value = side.names.name(root) if root else UNKNOWN
        same = [this.value for this, _ in ways if node_of(this.value) is stretch.node]
        return not any(_share(value, one) for one in same) and not (root and self._is_grid(root, side, value))

    def _is_grid_of(self, side: Side) -> bool:
        root = _root(side.text)
        return bool(root) and self._is_grid(root, side, side.names.name(root))

    def _is_grid(self, root: str, side: Side, value: Any) -> bool:
        """True if a variable is a row of bins or centres: evenly spaced numbers are nobody's target."""
        names = {root, *(name for name, one in list(side.names.outer.items()) if one is value and is_tensor(value))}
        names |= {node.attr for node in syntax.walk(side.text) if isinstance(node, ast.Attribute)}
        trees = [file.tree for file in self._places.latest() if file.tree is not None]
        given = (pair for tree in trees for node in syntax.walk(tree) for pair in _given(node))
        return any(name in names and _makes_grid(made) for name, made in given)

    def _is_list(self, side: Side) -> bool:
        """True if what it is made of is written as a list of numbers, as levels and temperatures are."""
        words = {dotted(node).rpartition(".")[2] for node in syntax.walk(side.text)} - {""}
        values = [value for word in words if is_tensor(value := side.names.name(word))]
        words |= {name for name, one in list(side.names.outer.items()) if any(one is value for value in values)}
        trees = [file.tree for file in self._places.latest() if file.tree is not None]
        given = (pair for tree in trees for node in syntax.walk(tree) for pair in _given(node))
        return _lists_numbers(side.text) or any(name in words and _lists_numbers(made) for name, made in given)

    def _warned(self, frames: list[FrameType], stretch: Stretch) -> bool:
        """True if torch itself has warned of exactly these two shapes, and of no others that make the same table."""
        spaces = [frame.f_globals for frame in frames] + [vars(sys.modules[torch.nn.modules.loss.__name__])]
        shapes = {shapes for space in spaces for shapes in _warnings_in(space)}
        alike = [s for s in shapes if stretch.known in s and stretched_to(*s) == stretch.table]
        return bool(alike) and all(stretch.wanted in s for s in alike)


def _warnings_in(space: dict[str, Any]) -> Iterator[tuple[Shape, Shape]]:
    registry = space.get("__warningregistry__")
    for key in list(registry) if type(registry) is dict else ():
        text = key[0] if type(key) is tuple and key else key
        found = _WARNED.search(text) if type(text) is str else None
        if found:
            one, two = (tuple(int(n) for n in group.split(",") if n.strip()) for group in found.groups())
            yield one, two


def _could_be(value: Any, stretch: Stretch) -> bool:
    """True unless a value is certainly not the known side."""
    if is_tensor(value):
        return node_of(value) is stretch.node
    shape = shape_of(value)
    if shape == (-1,):  # something that was squeezed or picked from what is not known
        return len(stretch.known) < len(stretch.wanted)
    return shape == stretch.known if shape is not None else type(value) is Unknown


def _untold(pairs: list[Pair], stretch: Stretch) -> bool:
    """True if the text says nothing of the other side: it has no such pair, or both sides may be the known one."""
    sides = [(pair.left.value, pair.right.value) for pair in pairs]
    return all(_could_be(one, stretch) == _could_be(other, stretch) for one, other in sides)


def _could_be_table(value: Any, stretch: Stretch) -> bool:
    """True if a value would make the same table with the known side, without being what a mistake needs."""
    shape, wanted = shape_of(value), stretch.wanted
    if shape is None:
        return type(value) is Unknown
    if -1 in shape and len(shape) == len(wanted):
        return all(n in (-1, size) for n, size in zip(shape, wanted, strict=True))
    return shape != wanted and stretched_to(shape, stretch.known) == stretch.table


def _root(text: ast.expr) -> str:
    """The variable that an expression begins with: `y` in `y[a:b].float()`."""
    while isinstance(text, (ast.Attribute, ast.Subscript, ast.Call)):
        text = text.func if isinstance(text, ast.Call) else text.value
    return text.id if isinstance(text, ast.Name) else ""


def _share(one: Any, two: Any) -> bool:
    if not is_tensor(one) or not is_tensor(two):
        return False
    storage = private.storage_of(one)
    return one is two or (storage is not None and storage == private.storage_of(two))


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives a value, `register_buffer("bins", …)` among them."""
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        yield from ((getattr(one, "attr", getattr(one, "id", "")), made) for one, made in pairs)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_buffer" and len(node.args) > 1:
        yield str(getattr(node.args[0], "value", "")), node.args[1]


def _lists_numbers(value: ast.expr) -> bool:
    """True if an expression contains `[0.1, 0.5, 0.9]`."""
    rows = (node.elts for node in syntax.walk(value) if isinstance(node, (ast.List, ast.Tuple)))
    return any(len(row) > 1 and all(_is_number(one) for one in row) for row in rows)


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _makes_grid(value: ast.expr) -> bool:
    """True for `torch.linspace(…)` with nothing but arithmetic and methods around it."""
    if isinstance(value, ast.BinOp):
        return _makes_grid(value.left) or _makes_grid(value.right)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr in _GRIDS or _makes_grid(value.func.value)
