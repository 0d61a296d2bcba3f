"""Targets that were stretched when they were computed: rewards (N,) plus the values (N, 1) of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch import nn

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.crossings import ON_PURPOSE
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.operands import Names
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.shapes import is_tensor, shape_of

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
# Methods that leave an operand what it is.
_SAME = frozenset(["detach", "float", "clone", "cpu"])


def is_crossed(text: ast.expr, names: Names, length: int, files: list[CodeFile]) -> bool:
    """True if an expression, or all that its name is given, adds a row of numbers to what a module gave back."""
    if not isinstance(text, ast.Name):
        return isinstance(text, ast.BinOp) and _crosses(text, names, length)
    if not _is_constant_table(names, text.id, length):
        return False
    given = [value for file in files if file.tree is not None for value in _given(file.tree, text.id)]
    return bool(given) and all(isinstance(one, ast.BinOp) and _crosses(one, names, length) for one in given)


def _is_constant_table(names: Names, name: str, length: int) -> bool:
    value = names.name(name)
    return is_tensor(value) and not as_torch.requires_grad(value) and shape_of(value) == (length, length)


def _given(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == name for target in node.targets):
            yield node.value


def _crosses(text: ast.BinOp, names: Names, length: int) -> bool:
    """A row and the result of a module among the operands, none that is a table, and nothing made a column."""
    words = {getattr(node, "attr", getattr(node, "arg", "")) for node in syntax.walk(text)}
    nothing = any(isinstance(node, ast.Constant) and node.value is None for node in syntax.walk(text))
    if nothing or not ON_PURPOSE.isdisjoint(words):
        return False
    operands = list(_operands(text))
    shapes: list[Shape | None] = [shape_of(names.value(one)) for one in operands]
    plain = all(shape in ((), (length,), (length, 1), None) for shape in shapes)
    return plain and (length,) in shapes and any(is_output(one, names) for one in operands)


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """What sums and products are of, detached or not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        yield from _operands(node.left)
        yield from _operands(node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        yield from _operands(node.func.value)
    else:
        yield node


def is_output(node: ast.expr, names: Names) -> bool:
    """True for the call of a module."""
    return isinstance(node, ast.Call) and is_a(names.value(node.func), nn.Module)
