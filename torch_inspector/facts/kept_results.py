"""How what a loop makes of its variable gets back to where the variable came from, as a statement."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.modules import DiscardFact
    from torch_inspector.facts.run import Run

_OF_MODULES = frozenset(("parameters", "buffers", "named_parameters", "named_buffers"))


def kept(run: Run, one: DiscardFact) -> str:
    """`batch[key] = value.to(device)` in a loop over `batch.items()`; empty for what the loop itself goes on with."""
    tree = syntax.parse(run.source_of(one.place.cell))
    loop = _loop(tree, one) if tree is not None and one.path.isidentifier() else None
    return (_back(loop, one) or _together(loop, one)) if loop is not None else ""


def _back(loop: ast.For, one: DiscardFact) -> str:
    """The statement that gives it to where the loop has it from."""
    if _used_after(loop, one):
        return ""
    call = loop.iter if isinstance(loop.iter, ast.Call) else None
    if call is None:
        return _anew(loop, loop.target, loop.iter, one)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if isinstance(call.func, ast.Attribute) and not call.args:
        return _of_method(loop, call.func, one)
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    return _anew(loop, target, call.args[0], one) if name == "enumerate" and call.args else ""


def _together(loop: ast.For, one: DiscardFact) -> str:
    """`x, y = x.to(device), y.to(device)` for a line that throws both away; empty for one alone."""
    made = _made(loop, one.place.line)
    return f"{', '.join(made)} = {', '.join(made.values())}" if len(made) > 1 and one.path in made else ""


def _loop(tree: ast.AST, one: DiscardFact) -> ast.For | None:
    """The innermost loop around the line that gives the variable its value."""
    line = one.place.line or 0
    around = (loop for loop in _loops(tree) if syntax.spans(loop, line))
    binding = [loop for loop in around if one.path in _names(loop.target)]
    return max(binding, key=lambda loop: loop.lineno, default=None)


@lru_cache(maxsize=32)
def _loops(tree: ast.AST) -> tuple[ast.For, ...]:
    return tuple(one for one in syntax.walk(tree) if isinstance(one, ast.For))


def _names(node: ast.AST) -> list[str]:
    return [n.id for n in syntax.walk(node) if isinstance(n, ast.Name)]


def _used_after(loop: ast.For, one: DiscardFact) -> bool:
    line = one.place.line or 0
    names = (n for statement in loop.body for n in syntax.walk(statement) if isinstance(n, ast.Name))
    return any(n.id == one.path and n.lineno > line for n in names)


def _of_method(loop: ast.For, method: ast.Attribute, one: DiscardFact) -> str:
    owner, pair = ast.unparse(method.value), loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    if method.attr in _OF_MODULES:
        return f"{owner}{one.text.removeprefix(one.path)}  # {_where(loop)}"
    if method.attr == "items" and len(pair) == 2 and ast.unparse(pair[1]) == one.path:  # noqa: PLR2004
        return f"{owner}[{ast.unparse(pair[0])}] = {one.text}"
    if method.attr == "values" and ast.unparse(loop.target) == one.path:
        return f"for key, {one.path} in {owner}.items():\n    {owner}[key] = {one.text}  # {_where(loop)}"
    return ""


def _anew(loop: ast.For, target: ast.expr, source: ast.expr, one: DiscardFact) -> str:
    """`xs = [x.to(device) for x in xs]`, of a list or tuple: a loader or a data set would be one no more."""
    names = [n.id for n in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(n, ast.Name)]
    if not isinstance(source, (ast.Name, ast.Attribute)) or not one.over or one.path not in names:
        return ""
    made = {**_made(loop), one.path: one.text}
    parts = ", ".join(made.get(name, name) for name in names)
    what = f"({parts})" if isinstance(target, ast.Tuple) else parts
    each = f"{what} for {', '.join(names)} in {ast.unparse(source)}"
    return f"{ast.unparse(source)} = {f'[{each}]' if one.over == 'list' else f'tuple({each})'}  # {_where(loop)}"


def _made(loop: ast.For, line: int | None = None) -> dict[str, str]:
    """What the statements of a loop, or of a line of it, make of its variables and throw away."""
    body = [node for node in loop.body if line in (None, node.lineno)]
    calls = [node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    owned = [(call.func.value, call) for call in calls if isinstance(call.func, ast.Attribute)]
    own = _names(loop.target)
    return {n.id: ast.unparse(call) for n, call in owned if isinstance(n, ast.Name) and n.id in own}


def _where(loop: ast.For) -> str:
    return "in place of the loop" if len(_made(loop)) == len(loop.body) else "before the loop"
