"""A change in place of a leaf by what has a history of its own, written so that gradients reach both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from torch_inspector.facts import each_turn, syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact
    from torch_inspector.facts.run import Run


# What leaves the graph behind: methods, functions of Python, and fields.
_CUTS = frozenset(["detach", "item", "tolist", "numpy", "long", "argmax", "argmin", "argsort", "size"])
_NUMBERS = frozenset(["float", "int", "bool", "len"])
_FIELDS = frozenset(["data", "shape", "dtype", "device", "indices"])
# Methods after which nothing is left of what was there before.
_FILLS = ("copy_", "fill_")
# After these, the graph of the turn is gone, and a copy from before the loop with it.
_BACKWARD = frozenset(["backward", "grad", "step"])
# A longer expression is not said again in a remark.
_LONGEST = 40
_FIRST = ("__init__", "reset_parameters", "init_weights", "_init_weights")


def out_of_place(run: Run, error: ErrorFact, leaf: OperandFact | None) -> str:
    """The statement that makes a new tensor; empty where the line adds plain numbers, as an update by hand does.

    So it is where the line gives a leaf its first values: then the leaf itself must have them.
    """
    tree = syntax.parse(error.statement)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if leaf is None or node is None or error.place.function.rpartition(".")[2] in _FIRST:
        return ""
    others = [one for one in error.operands if one.path != leaf.path]
    if not any(_brings_history(_put_in(node), one) for one in others):
        return ""
    loop = _loop_of_changes(run, error, syntax.root_of(_changed(node)))
    if _fills(node) and leaf.path not in map(ast.unparse, _uncut(_put_in(node))):
        return _as_first(error, leaf, node, loop)
    return _made_anew(error, node, loop)


def _loop_of_changes(run: Run, error: ErrorFact, name: str) -> ast.stmt | None:
    """The outermost loop whose turns all change the same tensor, and none of which goes back through the graph."""
    tree, line = syntax.parse(run.source_of(error.place.cell)), error.place.line
    loops = each_turn.loops_that_keep(tree, line, name) if tree is not None and line is not None else ()
    return next(reversed(list(takewhile(lambda one: not _goes_back(run, one), loops))), None)


def _goes_back(run: Run, loop: ast.stmt) -> bool:
    """True if a loop, or a function of the user's that it calls, calls what uses up a graph."""
    called = _called_in(loop)
    trees = (syntax.parse(one.cell.source) for one in (run, *run.earlier))
    known = (one for tree in trees if tree is not None for one in syntax.functions_of(tree))
    inside = (_called_in(one) for one in known if one.name in called)
    return not _BACKWARD.isdisjoint(called.union(*inside))


def _called_in(node: ast.AST) -> set[str]:
    return {syntax.name_of(one.func) for one in syntax.walk(node) if isinstance(one, ast.Call)}


def _changed(node: ast.stmt) -> ast.expr:
    """What a statement changes: `x[0]` of `x[0] += h`, `x` of `x.copy_(h)`."""
    call = _changing(node)
    if call is not None:
        return call.func.value  # type: ignore[attr-defined,no-any-return]
    return syntax.targets_of(node)[0] if isinstance(node, (ast.Assign, ast.AugAssign)) else ast.Constant(None)


def _made_anew(error: ErrorFact, node: ast.stmt, loop: ast.stmt | None) -> str:
    """The same statement on a copy, or with a new value for the name."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript):
            return _of_copy(error, target, loop)
    if isinstance(node, ast.AugAssign):
        made = ast.BinOp(_read(node.target), node.op, node.value)
        return _said(error, ast.unparse(node.target), ast.unparse(made), loop)
    call = _changing(node)
    if call is None:
        return ""
    owner = call.func.value  # type: ignore[attr-defined]
    if isinstance(owner, ast.Subscript) or call.func.attr in _FILLS:  # type: ignore[attr-defined]
        return _of_copy(error, owner, loop)
    made = ast.Call(ast.Attribute(owner, call.func.attr.rstrip("_"), ast.Load()), call.args, call.keywords)  # type: ignore[attr-defined]
    return _said(error, ast.unparse(owner), ast.unparse(made), loop)


def _changing(node: ast.stmt) -> ast.Call | None:
    """`x.copy_(h)` of a statement that is such a call."""
    call = node.value if isinstance(node, ast.Expr) else None
    method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
    return call if method else None  # type: ignore[return-value]


def _put_in(node: ast.stmt) -> list[ast.expr]:
    """What a statement puts into a tensor that it changes."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return [node.value]
    call = _changing(node)
    return [*call.args, *(one.value for one in call.keywords)] if call is not None else []


def _fills(node: ast.stmt) -> bool:
    """True for `x[:] = h`, `x[...] = h` and `x.copy_(h)`: all that was there before is gone."""
    call = _changing(node)
    if call is not None:
        owner = call.func.value  # type: ignore[attr-defined]
        return call.func.attr in _FILLS and (not isinstance(owner, ast.Subscript) or _is_all(owner))  # type: ignore[attr-defined]
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(target, ast.Subscript) and _is_all(target)


def _is_all(part: ast.Subscript) -> bool:
    places = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    plain = isinstance(part.value, (ast.Name, ast.Attribute))
    return plain and all(ast.unparse(one) in (":", "::", "...") for one in places)


def _as_first(error: ErrorFact, leaf: OperandFact, node: ast.stmt, loop: ast.stmt | None) -> str:
    """The statement outside of the graph; a copy where the function has made the variable, or each batch fills it."""
    if error.place.function and (leaf.made_at is not None or "." in leaf.path):
        return _made_anew(error, node, loop)
    given = ast.unparse(_put_in(node)[0])
    shown = f"`{given}`" if len(given) <= _LONGEST else "what is put in"
    return (
        f"with torch.no_grad():\n    {error.statement}  # for first values; for gradients through {shown}, use that "
        f"itself in place of `{leaf.path}`"
    )


def _brings_history(given: list[ast.expr], one: OperandFact) -> bool:
    """True for what was computed, unless the statement cuts it off, and for what computes: a layer that is called."""
    parts = _uncut(given)
    if one.kind != "tensor":
        return any(isinstance(part, ast.Call) and ast.unparse(part.func) == one.path for part in parts)
    return one.requires_grad and not one.is_leaf and one.path in map(ast.unparse, parts)


def _uncut(given: list[ast.expr]) -> Iterator[ast.AST]:
    """All parts of what is put in that stay in the graph: none of `(h * 2).detach()`."""
    stack: list[ast.AST] = list(given)
    while stack:
        part = stack.pop()
        if not _cuts(part):
            yield part
            stack.extend(syntax.children(part))


def _cuts(part: ast.AST) -> bool:
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        return part.func.attr in _CUTS
    if isinstance(part, ast.Call):
        return isinstance(part.func, ast.Name) and part.func.id in _NUMBERS
    return isinstance(part, ast.Compare) or (isinstance(part, ast.Attribute) and part.attr in _FIELDS)


def _read(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _said(error: ErrorFact, name: str, made: str, loop: ast.stmt | None) -> str:
    """A new value for a variable of a function; elsewhere, or for a parameter, it needs a name of its own."""
    if error.place.function and name.isidentifier():
        return f"{name} = {made}"
    remark = f"use `changed` from here on, so that `{name}` stays what is trained"
    if loop is None:
        return f"changed = {made}  # {remark}"
    again = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", "changed", made)
    return f"changed = {name}.clone()  # {_where(loop)}\nchanged = {again}  # {remark}"


def _where(loop: ast.stmt | None) -> str:
    return "before this line" if loop is None else f"before the loop in line {loop.lineno}"


def _of_copy(error: ErrorFact, target: ast.expr, loop: ast.stmt | None) -> str:
    """The same statement on a copy of the leaf: `x[0] = h`, `x[0].copy_(h)`."""
    name = ast.unparse(target.value if isinstance(target, ast.Subscript) else target)
    if error.place.function and name.isidentifier():
        return f"{name} = {name}.clone()  # {_where(loop)}"
    changed = error.statement.replace(name, "changed", 1)
    remark = f"use `changed` from here on, so that `{name}` stays what is trained"
    first = (
        f"; or, for first values of `{name}`, put the line that failed under torch.no_grad()"
        if _overwrites(error)
        else ""
    )
    copy = f"changed = {name}.clone()" + (f"  # {_where(loop)}" if loop is not None else "")
    return f"{copy}\n{changed}  # {remark}{first}"


def _overwrites(error: ErrorFact) -> bool:
    """True for `x[0] = h` and `x[0].copy_(h)`, which may be meant to give a leaf its values."""
    tree = syntax.parse(error.statement)
    node = tree.body[0] if tree is not None and tree.body else None
    call = _changing(node) if node is not None else None
    return isinstance(node, ast.Assign) or (call is not None and call.func.attr in _FILLS)  # type: ignore[attr-defined]
