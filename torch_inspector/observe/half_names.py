"""What names mean at a line of a cell whose arithmetic is computed again, and which of its lines bind them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.half_twins import Cause


def lines_of(tree: ast.AST, name: str) -> list[int]:
    """Where a text binds a name."""
    stored = (one for one in syntax.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return [one.lineno for one in stored if one.id == name]


def straight(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run once, those of `with torch.no_grad():` as well."""
    for one in body:
        if isinstance(one, ast.With):
            yield from straight(one.body)
        else:
            yield one


def changed_later(tree: ast.AST, name: str, line: int) -> bool:
    """True if a text below a line changes a tensor in place: `x.zero_()`, `x[0] = 1`."""
    for one in syntax.walk(tree):
        if getattr(one, "lineno", 0) <= line:
            continue
        stores = isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
        calls = isinstance(one, ast.Attribute) and one.attr.endswith("_") and not one.attr.endswith("__")
        if (stores or calls) and syntax.root_of(one) == name:
            return True
    return False


class Frame:
    """What names mean at a line of the cell, or in a function."""

    def __init__(self, scope: Scope, line: int = 0, own: dict[str, Any] | None = None, function: Any = None) -> None:
        self.scope, self.line, self.own = scope, line, own
        self.made: dict[str, ast.expr] = {}
        """What the latest statements have given names."""
        self.function = function
        file = scope.reading.file_of(function.__code__) if function is not None else scope.file
        self.cell, self.offset = (file.cell, file.offset) if file is not None else (None, 0)

    def at(self, node: ast.AST, *, over: bool, extreme: float, place: int = 0) -> Cause:
        """The cause that stands there."""
        if not over:
            node = _operand(node, place)
            node = self.made.get(node.id, node) if isinstance(node, ast.Name) else node
        line = int(getattr(node, "lineno", 0)) + self.offset
        name = self.function.__name__ if self.function is not None else ""
        return Cause(node, line, self.cell, name, over, extreme)


def _operand(node: ast.AST, place: int) -> ast.AST:
    if isinstance(node, ast.BinOp):
        return node.right if place or isinstance(node.op, ast.Div) else node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.value
    return node
