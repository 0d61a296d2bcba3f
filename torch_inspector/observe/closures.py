"""Functions made in a loop that read its variable when they are called, found in the text of a cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import LoopFunctionFact
from torch_inspector.observe.lines import Loop, bound_in
from torch_inspector.observe.source import KEEPS, dotted

_TEXT_LIMIT = 120
_Function = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
# Calls that use the function during the call and keep nothing.
_USES_AT_ONCE = frozenset(
    (
        *("sorted", "sort", "min", "max", "map", "filter", "any", "all", "sum", "reduce", "next"),
        *("list", "tuple", "set", "dict", "apply", "apply_", "map_", "vmap", "grad"),
    )
)
# What a function can stand in without being kept or called by it.
_TRANSPARENT = (ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.Starred, ast.keyword)


def loop_functions(tree: ast.Module, code: str, offset: int) -> tuple[LoopFunctionFact, ...]:
    """Functions made in a loop that read its variable late and are kept beyond their turn."""
    lines = code.splitlines()
    facts = [
        LoopFunctionFact(
            function.lineno + offset,
            tuple(sorted(late)),
            "lambda" if isinstance(function, ast.Lambda) else "function",
            kept,
            lines[function.lineno - 1].strip()[:_TEXT_LIMIT] if function.lineno <= len(lines) else "",
        )
        for loop, function in _functions_in_loops(tree)
        if (late := _late_names(loop, function)) and (kept := _kept_by(loop, function))
    ]
    return tuple(dict.fromkeys(sorted(facts, key=lambda fact: fact.line)))


def _functions_in_loops(tree: ast.AST) -> Iterator[tuple[ast.AST, _Function]]:
    """Each function with each loop around it, as long as no other function lies between."""
    for loop in (n for n in ast.walk(tree) if isinstance(n, Loop)):
        stack: list[ast.AST] = _bodies(loop)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
                yield loop, node
            elif not isinstance(node, ast.ClassDef):
                stack.extend(ast.iter_child_nodes(node))


def _bodies(loop: ast.AST) -> list[ast.AST]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return list(loop.body)
    if isinstance(loop, ast.DictComp):
        return [loop.key, loop.value]
    return [loop.elt] if isinstance(loop, ast.ListComp | ast.SetComp | ast.GeneratorExp) else []


def _targets(loop: ast.AST) -> set[str]:
    """Names that change with each turn of the loop: its own targets."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        parts: list[ast.expr] = [loop.target]
    else:
        parts = [generator.target for generator in getattr(loop, "generators", ())]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _late_names(loop: ast.AST, function: _Function) -> set[str]:
    """Loop variables which the function reads from outside when it is called."""
    arguments = function.args
    own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    own |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    names = [n for part in body for n in ast.walk(part) if isinstance(n, ast.Name)]
    own |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} & _targets(loop) - own


def _kept_by(loop: ast.AST, function: _Function) -> str:
    """How the function outlives its turn; empty if it is used at once or that cannot be told."""
    parents = {child: parent for parent in ast.walk(loop) for child in ast.iter_child_nodes(parent)}
    if not isinstance(function, ast.Lambda):
        return _kept_name(loop, function.name)
    node: ast.AST = function
    while node in parents:
        parent = parents[node]
        if not isinstance(parent, _TRANSPARENT) or parent is loop:
            return _kept_in(loop, node, parent)
        node = parent
    return ""


def _kept_in(loop: ast.AST, node: ast.AST, parent: ast.AST) -> str:
    """How what surrounds a function keeps it."""
    if isinstance(parent, ast.Call):
        return _kept_by_call(loop, parent) if node is not parent.func else ""
    if isinstance(parent, ast.Assign):
        return _kept_by_assignment(loop, parent)
    return _kept_by_comprehension(loop) if parent is loop else ""


def _kept_by_call(loop: ast.AST, call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    if name in _USES_AT_ONCE or not isinstance(call.func, ast.Attribute):
        return ""
    if _leaves(loop, call) or _made_in_body(loop, call.func.value):
        return ""
    if name.startswith("register_"):
        return "" if _removes(loop) else name
    return name if name in KEEPS else ""


def _made_in_body(loop: ast.AST, receiver: ast.expr) -> bool:
    """True if the keeper itself is made anew in each turn, so that nothing is kept beyond it."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    while isinstance(receiver, ast.Attribute | ast.Subscript):
        receiver = receiver.value
    return isinstance(receiver, ast.Name) and receiver.id in bound_in(loop) - _targets(loop)


def _removes(loop: ast.AST) -> bool:
    """True if the loop takes hooks away again in the same turn."""
    calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "remove" for call in calls)


def _leaves(loop: ast.AST, node: ast.AST) -> bool:
    """True if the loop ends in the very turn that makes the function (`break` or `return` at its level)."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    return any(isinstance(s, ast.Break | ast.Return) and s.lineno >= getattr(node, "lineno", 0) for s in loop.body)


def _kept_by_assignment(loop: ast.AST, assignment: ast.Assign) -> str:
    held = [t for t in assignment.targets if isinstance(t, ast.Subscript | ast.Attribute)]
    if held:
        return "" if any(_made_in_body(loop, target) for target in held) else "assignment"
    name = next((t.id for t in assignment.targets if isinstance(t, ast.Name)), "")
    return _kept_name(loop, name)


def _kept_by_comprehension(loop: ast.AST) -> str:
    return "" if isinstance(loop, ast.For | ast.AsyncFor | ast.GeneratorExp) else "comprehension"


def _to_names_only(assignment: ast.Assign) -> bool:
    return all(isinstance(target, ast.Name) for target in assignment.targets)


def _kept_name(loop: ast.AST, name: str) -> str:
    """How a function with a name outlives the turn: it is handed on by name within the loop."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and any(isinstance(a, ast.Name) and a.id == name for a in node.args):
            kept = _kept_by_call(loop, node)
            if kept:
                return kept
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            return _kept_by_assignment(loop, node) if not _to_names_only(node) else ""
    return ""
