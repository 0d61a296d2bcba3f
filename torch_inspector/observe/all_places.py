"""A loop that only hands elements of tensors on, written for all of them: `out[:] = x[:]` for `out[i] = x[i]`."""

from __future__ import annotations

import ast
from copy import deepcopy

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.lengths import is_range, range_length
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.source import dotted


def all_places(scope: Scope, loop: ast.AST) -> str:
    """The statements of such a loop without it; empty for a loop that does anything else."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not is_range(loop.iter):
        return ""
    count, name = range_length(scope, loop.iter), loop.target.id
    if len(loop.iter.args) != 1 or not count or not all(map(_hands_on, loop.body)):  # type: ignore[attr-defined]
        return ""
    turned = _Turned(scope, name, count)
    lines = [ast.unparse(turned.visit(deepcopy(one))) for one in loop.body]
    left = any(isinstance(one, ast.Name) and one.id == name for line in lines for one in syntax.walk(ast.parse(line)))
    return "" if left or turned.refused or not turned.count else "\n".join(lines)


def _hands_on(statement: ast.stmt) -> bool:
    """True for an assignment of elements, of names and of constants, one by one."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) != isinstance(value, ast.Tuple):
        return False
    return all(isinstance(one, (ast.Subscript, ast.Name, ast.Constant)) for one in getattr(value, "elts", [value]))


class _Turned(ast.NodeTransformer):
    """Puts `:` in the place of a variable that goes over a whole axis."""

    def __init__(self, scope: Scope, name: str, count: int) -> None:
        self.scope, self.name, self.length = scope, name, count
        self.count, self.refused = 0, False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Looks at one index."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shape = shape_of(self.scope.names.value(node.value)) if dotted(node.value) else None
        own = [i for i, one in enumerate(parts) if isinstance(one, ast.Name) and one.id == self.name]
        if not shape or len(parts) > len(shape) or len(own) > 1 or any(shape[i] != self.length for i in own):
            self.refused = True
            return node
        self.count += len(own)
        for i in own:
            parts[i] = ast.Slice()
        node.slice = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return node
