"""Variables that take something from one turn of a loop, or one call, to the next, found in the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_GROWS = frozenset(("append", "extend", "update", "appendleft", "add", "insert"))


@lru_cache(maxsize=64)
def carried_at(tree: ast.Module, line: int, others: tuple[ast.Module, ...] = ()) -> frozenset[str]:
    """Names that a loop around a line reads before it gives them a value; at the top level of a cell, the cell too.

    `out, state = cell(x, state)` carries `state`; `x = f(x)` after `x = batch` in the same loop carries nothing.
    Of a function it is what comes from outside and has entries that it reads and stores.

    Args:
        tree: The cell.
        line: Of `tree`.
        others: Cells that may hold the functions which it calls.
    """
    scope = syntax.scope_at(tree, line)
    loops: list[ast.AST] = [
        n for n in syntax.own_statements(scope) if isinstance(n, (ast.For, ast.While)) and syntax.spans(n, line)
    ]
    found: set[str] = set()
    for loop in loops or ([tree] if scope is tree else []):
        found |= (_carried_in(loop) | _changed_by_calls(loop, (tree, *others))) - _let_go_in(loop)
    if isinstance(scope, ast.FunctionDef):
        found |= _kept_from_outside(scope)
    return frozenset(found)


def _let_go_in(loop: ast.AST) -> set[str]:
    """Names that each turn of a loop takes out of their graph: `h = h.detach()`, `h.detach_()`."""
    found: set[str] = set()
    for statement in loop.body if isinstance(loop, (ast.For, ast.While)) else ():
        calls = [n for n in syntax.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        if isinstance(statement, ast.Assign):
            cut = {dotted(n.func.value) for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "detach"}
            found |= _stored(statement) & cut
        elif isinstance(statement, ast.Expr):
            found |= {
                dotted(n.func.value) for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "detach_"
            }
    return found - {""}


def _changed_by_calls(loop: ast.AST, trees: tuple[ast.Module, ...]) -> set[str]:
    """What a loop hands to functions, or what they find outside, if they read it and give it its next value."""
    functions = {n.name: n for tree in reversed(trees) for n in syntax.walk(tree) if isinstance(n, ast.FunctionDef)}
    found: set[str] = set()
    for call in (n for n in syntax.walk(loop) if isinstance(n, ast.Call)):
        function = functions.get(dotted(call.func).rpartition(".")[2])
        if function is not None:
            names = [one.arg for one in function.args.args if one.arg != "self"]
            given: dict[str, ast.AST] = dict(zip(names, call.args, strict=False))
            given.update((one.arg, one.value) for one in call.keywords if one.arg)
            kept = _kept_from_outside(function)
            found |= {
                dotted(given[name]) if name in given else name for name in kept if name in given or name not in names
            }
    return found - {""}


def _kept_from_outside(function: ast.FunctionDef) -> set[str]:
    """Names that a function does not make, and whose entries it both reads and stores: `state["h"] = f(state["h"])`."""
    own = {dotted(n) for n in syntax.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    shared = {name for n in syntax.walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    read, stored = _used_in(function)
    entries = {name for name in read & stored if "." not in name}
    return (entries - own) | (entries & shared)


def _changes_inside(node: ast.Subscript | ast.Attribute) -> bool:
    """True for `states[k]` where it gets a value, and for `states.append`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node.value, (ast.Name, ast.Attribute)) and node.attr in _GROWS


def _used_in(scope: ast.AST) -> tuple[set[str], set[str]]:
    """Dotted names that are read, and those that get a value or an entry; to store an entry is not to read."""
    read, stored, bases = set[str](), set[str](), set[int]()
    for node in syntax.walk(scope):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and _changes_inside(node):
            stored.add(dotted(node.value))
            bases.add(id(node.value))
        elif isinstance(node, ast.AugAssign):
            target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            read.add(dotted(target))
            stored.add(dotted(target))
        elif isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node.ctx, ast.Store):
                stored.add(dotted(node))
            elif id(node) not in bases:
                read.add(dotted(node))
    return read - {""}, stored - {""}


def line_of(tree: ast.Module, name: str, line: int) -> int | None:
    """The line of the loop around another one, or of the cell, that gives a carried name its next value."""
    scope = syntax.scope_at(tree, line)
    loops: list[ast.AST] = [
        n for n in syntax.own_statements(scope) if isinstance(n, (ast.For, ast.While)) and syntax.spans(n, line)
    ]
    statements = [s for loop in loops or [scope] for s in syntax.own_statements(loop) if name in _stored(s)]
    return max((s.lineno for s in statements), default=None)


def _carried_in(loop: ast.AST) -> set[str]:
    found, given = set(), set[str]()
    read: set[str] = set()
    if isinstance(loop, ast.For):
        given |= {n.id for n in syntax.walk(loop.target) if isinstance(n, ast.Name)}
    for statement in sorted(syntax.own_statements(loop), key=lambda s: (s.lineno, s.col_offset)):
        read |= _read(statement) - given
        stored = _stored(statement)
        found |= stored & read
        given |= stored
    return found


def _parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements inside it."""
    for part in syntax.children(statement):
        if isinstance(part, (ast.expr, ast.withitem)):
            yield from syntax.walk(part)


def _read(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    loads = {dotted(n) for n in _parts(statement) if isinstance(getattr(n, "ctx", None), ast.Load)}
    if isinstance(statement, ast.AugAssign):
        loads.add(dotted(statement.target))
    return loads - {""}


def _stored(statement: ast.stmt) -> set[str]:
    """What a statement gives a value: names, attributes, containers that get an element."""
    found = set()
    for node in _parts(statement):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            found.add(dotted(node.value if isinstance(node, ast.Subscript) else node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            found.add(dotted(node.func.value))
    return found - {""}


@lru_cache(maxsize=64)
def kept_attributes(tree: ast.AST) -> frozenset[str]:
    """Attributes that one function both reads and gives a value or an entry: the state of an object between calls."""
    found: set[str] = set()
    for function in syntax.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name != "__init__":
            read, stored = _used_in(function)
            found |= {name.rpartition(".")[2] for name in read & stored if "." in name}
    return frozenset(found)
