"""Updates that go to a loop's own variable and nowhere else: `for p in net.parameters(): p = p - 0.1 * p.grad`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_PARAMETERS = frozenset(["parameters", "named_parameters"])


def own_updates(tree: ast.Module) -> dict[int, str]:
    """Assignments to a loop's own variable, by their address.

    Each with what the loop goes through if it is such an update, which the next turn forgets; else empty.
    """
    loops = [node for node in syntax.walk(tree) if isinstance(node, ast.For)]
    return {id(node): source for loop in loops for node, source in _own_in(loop)}


def _own_in(loop: ast.For) -> Iterator[tuple[ast.Assign, str]]:
    names = {node.id for node in syntax.walk(loop.target) if isinstance(node, ast.Name)}
    called = {_last(node.func) for node in syntax.walk(loop.iter) if isinstance(node, ast.Call)}
    of_parameters, source = not called.isdisjoint(_PARAMETERS), ast.unparse(loop.iter)
    for node in syntax.walk(loop):
        name = dotted(node.targets[0]) if isinstance(node, ast.Assign) and len(node.targets) == 1 else ""
        if isinstance(node, ast.Assign) and name in names:
            reads = any(dotted(one) == f"{name}.grad" for one in syntax.walk(node.value))
            idle = (reads or of_parameters) and _is_update(node.value, name) and not _is_read(loop, node, name)
            yield node, source if idle else ""


def _is_update(value: ast.expr, name: str) -> bool:
    """True for what is computed from the variable, and does not change it in place on the way."""
    calls = [node for node in syntax.walk(value) if isinstance(node, ast.Call)]
    if any(_last(call.func).endswith("_") or any(one.arg == "out" for one in call.keywords) for call in calls):
        return False
    if isinstance(value, ast.IfExp):
        return _is_update(value.body, name) or _is_update(value.orelse, name)
    used = any(isinstance(node, ast.Name) and node.id == name for node in syntax.walk(value))
    first = calls[0] if isinstance(value, ast.Call) else None
    # `p.sub(step)` and `torch.sub(p, step)`; of what another function makes of it nothing is known.
    computes = first is not None and _last(first.func) in {"sub", "add", "subtract", "detach", "Parameter"}
    return used and (isinstance(value, ast.BinOp) or computes)


def _is_read(loop: ast.For, assign: ast.Assign, name: str) -> bool:
    """True if something in the loop reads the new value: what comes later, or a function that may be called later."""
    end = (assign.end_lineno or assign.lineno, assign.end_col_offset or 0)
    for node in syntax.walk(loop):
        inner = isinstance(node, syntax.INNER)
        for one in (part for part in (syntax.walk(node) if inner else (node,)) if isinstance(part, ast.Name)):
            reads = one.id == name and isinstance(one.ctx, ast.Load)
            if reads and (inner or (one.lineno, one.col_offset) >= end):
                return True
    return False


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)
