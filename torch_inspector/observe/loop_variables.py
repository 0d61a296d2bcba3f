"""Updates that go to a loop's own variable and nowhere else: `for p in net.parameters(): p = p - 0.1 * p.grad`."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted
from torch_inspector.observe.turns import last_name
from torch_inspector.observe.untested import end_of

_PARAMETERS = frozenset(["parameters", "named_parameters"])
# As many updates as are looked at.
_MOST = 200


_Place = tuple[float, int]


class _Loop(NamedTuple):
    node: ast.For
    reads: dict[str, _Place]
    """The last reads of names in the scope around it, but for loops that give the name another value."""
    start: _Place
    """Where reads of what it leaves begin: after it, or with the outermost loop around it."""


def own_updates(tree: ast.Module) -> dict[int, str]:
    """Assignments to a loop's own variable, by their address.

    Each with what the loop goes through if it is such an update, which the next turn forgets; else empty.
    """
    found: dict[int, str] = {}
    for loop in _loops(tree):
        for node, source in _own_in(loop):
            found[id(node)] = source if len(found) < _MOST else ""
    return found


def is_of_parameters(source: str) -> bool:
    """True for loops through weights, not batches: `net.parameters()`, `group["params"]`, `[w, b]`."""
    return "param" in source or source[:1] in ("[", "(")


def _loops(tree: ast.Module) -> list[_Loop]:
    """All `for` loops; each node is looked at once, and functions once more for what they read of the outside."""
    found, nothing = list[_Loop](), frozenset[str]()
    stack: list[tuple[ast.AST, dict[str, _Place], frozenset[str], _Place | None]] = [(tree, {}, nothing, None)]
    while stack:
        node, reads, bound, start = stack.pop()
        if isinstance(node, syntax.INNER):
            # It may be called at any time.
            reads.update(dict.fromkeys(_free(node), (math.inf, 0)))
            reads, bound, start = {}, nothing, None
        elif (read := _read(node)) is not None and read.id not in bound:
            reads[read.id] = max(reads.get(read.id, (0, 0)), (read.lineno, read.col_offset))
        within = bound
        if isinstance(node, (ast.For, ast.While)):
            if isinstance(node, ast.For):
                found.append(_Loop(node, reads, start or end_of(node)))
                within = bound | {one.id for one in syntax.walk(node.target) if isinstance(one, ast.Name)}
            start = start or (node.lineno, node.col_offset)
        elif isinstance(node, syntax.COMPREHENSIONS):
            targets = (one.target for one in node.generators)
            within = bound | {one.id for part in targets for one in syntax.walk(part) if isinstance(one, ast.Name)}
        head = getattr(node, "iter", None)
        stack.extend((one, reads, bound if one is head else within, start) for one in syntax.children(node))
    return found


def _free(inner: ast.AST) -> set[str]:
    """Names that a function or a comprehension reads and does not give a value itself."""
    nodes = list(syntax.walk(inner))
    names = [one for one in nodes if isinstance(one, ast.Name)]
    own = {one.arg for one in nodes if isinstance(one, ast.arg)}
    own |= {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    return {one.id for one in names} - own


def _read(node: ast.AST) -> ast.Name | None:
    """The name that a node reads: by itself, or in `p += 1`."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.target, ast.Name) else None
    return node if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None


def _own_in(loop: _Loop) -> Iterator[tuple[ast.Assign, str]]:
    names = {node.id for node in syntax.walk(loop.node.target) if isinstance(node, ast.Name)}
    called = {last_name(node.func) for node in syntax.walk(loop.node.iter) if isinstance(node, ast.Call)}
    of_parameters, source = not called.isdisjoint(_PARAMETERS), ast.unparse(loop.node.iter)
    last, repeated = _reads_in(loop.node)
    for node in syntax.walk(loop.node):
        name = dotted(node.targets[0]) if isinstance(node, ast.Assign) and len(node.targets) == 1 else ""
        if isinstance(node, ast.Assign) and name in names:
            read = last.get(name, (0, 0)) >= end_of(node)
            # An inner loop reads it again in its next turn.
            read = read or id(node) in repeated or loop.reads.get(name, (0, 0)) >= loop.start
            reads = not read and any(dotted(one) == f"{name}.grad" for one in syntax.walk(node.value))
            yield node, source if not read and (reads or of_parameters) and _is_update(node.value, name) else ""


def _reads_in(loop: ast.For) -> tuple[dict[str, _Place], set[int]]:
    """Where each name is last read in a loop, and the assignments in its inner loops.

    A function in it may be called later: what it reads is read at the end.
    """
    last: dict[str, _Place] = {}
    repeated: set[int] = set()
    stack: list[tuple[ast.AST, bool, bool]] = [(loop, False, False)]
    while stack:
        node, inner, again = stack.pop()
        inner = inner or isinstance(node, syntax.INNER)
        again = again or (node is not loop and isinstance(node, (ast.For, ast.While)))
        if again and isinstance(node, ast.Assign):
            repeated.add(id(node))
        read = _read(node)
        if read is not None:
            place = (math.inf, 0) if inner else (read.lineno, read.col_offset)
            last[read.id] = max(last.get(read.id, (0, 0)), place)
        stack.extend((one, inner, again) for one in syntax.children(node))
    return last, repeated


def _is_update(value: ast.expr, name: str) -> bool:
    """True for what is computed from the variable, and does not change it in place on the way."""
    calls = [node for node in syntax.walk(value) if isinstance(node, ast.Call)]
    if any(last_name(call.func).endswith("_") or any(one.arg == "out" for one in call.keywords) for call in calls):
        return False
    if isinstance(value, ast.IfExp):
        return _is_update(value.body, name) or _is_update(value.orelse, name)
    used = any(isinstance(node, ast.Name) and node.id == name for node in syntax.walk(value))
    first = calls[0] if isinstance(value, ast.Call) else None
    # `p.sub(step)` and `torch.sub(p, step)`; of what another function makes of it nothing is known.
    computes = first is not None and last_name(first.func) in {"sub", "add", "subtract", "detach", "Parameter"}
    return used and (isinstance(value, ast.BinOp) or computes)
