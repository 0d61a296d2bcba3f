"""What a loss was computed from, as the text says, where its `backward()` itself refuses the types of the numbers."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_MIXED = "Found dtype"
# Names that stand for expressions, one behind the other.
_DEPTH = 3


def behind(tree: ast.Module, line: int, expressions: list[ast.expr], message: str) -> list[ast.expr]:
    """The expressions that gave the loss its value, in place of `loss.backward()`; the same for other failures."""
    call = expressions[0] if len(expressions) == 1 and message.startswith(_MIXED) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute) or method.attr != "backward":
        return expressions
    found = _given(syntax.scope_at(tree, line), method.value, line, _DEPTH)
    return found or ([method.value] if not dotted(method.value) else expressions)


def _given(scope: ast.AST, loss: ast.expr, line: int, depth: int) -> list[ast.expr]:
    """What the latest assignments before a line give the names in an expression, calls alone."""
    made = [one for one in syntax.own_statements(scope) if isinstance(one, ast.Assign) and one.lineno <= line]
    found: list[ast.expr] = []
    for name in [node.id for node in syntax.walk(loss) if isinstance(node, ast.Name)]:
        own = [one for one in made if [dotted(target) for target in one.targets] == [name]]
        latest = max(own, key=lambda one: one.lineno, default=None)
        if latest is not None and depth:
            calls = isinstance(latest.value, ast.Call)
            found += [latest.value] if calls else _given(scope, latest.value, latest.lineno - 1, depth - 1)
    return found
