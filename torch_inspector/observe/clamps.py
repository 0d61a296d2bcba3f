"""Lines that clip gradients by hand between `backward()` and the step, with `clamp_` and numbers: what texts say."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds

_IN_PLACE = frozenset(["clamp_", "clip_"])
_ANEW = frozenset(["clamp", "clip"])
_LIMITS = 2


class Clamp(NamedTuple):
    """One call as its text is."""

    call: ast.Call
    function: str
    owner: ast.expr
    """`p` of `p.grad.clamp_(-1, 1)`."""
    low: float
    high: float
    over: ast.expr | None = None
    """What is looped over, if the owner is a variable of that loop."""
    lasts: bool = True
    """False for the variable of a comprehension, of which nothing is left."""


def clamp_before(tree: ast.Module, line: int) -> Clamp | None:
    """The one clip between the last `backward()` of a scope and a line of it that no branch passes over."""
    nodes = list(syntax.own_expressions(syntax.scope_at(tree, line)))
    begin = max((one.lineno for one in nodes if _is_backward(one) and one.lineno < line), default=line)  # type: ignore[attr-defined]
    statements = [one for one in nodes if isinstance(one, (ast.Expr, ast.Assign)) and begin < one.lineno < line]
    found = [(one, clamp) for one in statements if (clamp := _clamp(one)) is not None]
    if len(found) != 1 or _may_be_passed_over(nodes, *found[0][:1], line):
        return None
    return found[0][1] if found[0][1].over is not None else _with_loop(nodes, *found[0])


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


def _clamp(statement: ast.Expr | ast.Assign) -> Clamp | None:
    """The clip that a statement makes: in place, for each of a comprehension, or given back to the gradient."""
    value = statement.value
    if isinstance(value, ast.ListComp):
        loop, clamp = value.generators[0], _call(value.elt, _IN_PLACE)
        plain = len(value.generators) == 1 and all(map(_is_about_presence, loop.ifs))
        return clamp._replace(over=loop.iter, lasts=False) if clamp is not None and plain else None
    clamp = _call(value, _IN_PLACE)
    if clamp is not None or isinstance(statement, ast.Expr):
        return clamp
    clamp, owner = _call(value, _ANEW), _owner(statement.targets[0])
    return clamp if clamp is not None and owner and ast.unparse(owner) == ast.unparse(clamp.owner) else None


def _call(node: ast.AST, names: frozenset[str]) -> Clamp | None:
    """`p.grad.data.clamp_(-1, 1)` or `torch.clamp_(p.grad, -1, 1)`: of variables the limit is not known."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute) or function.attr not in names:
        return None
    of_torch = isinstance(function.value, ast.Name) and function.value.id == "torch"
    given = node.args[int(of_torch) :]
    owner = _owner(node.args[0] if of_torch and node.args else function.value)
    low, high = _limits([*given, *(keyword.value for keyword in node.keywords)])
    return Clamp(node, function.attr, owner, low, high) if owner is not None and low < 0 < high else None


def _limits(given: list[ast.expr]) -> tuple[float, float]:
    """Two numbers, the lower one first; zeros for anything else."""
    try:
        limits = [ast.literal_eval(one) for one in given]
    except (ValueError, TypeError):
        return 0.0, 0.0
    plain = len(limits) == _LIMITS and all(kinds.is_one_of(one, (int, float)) for one in limits)
    return (float(min(limits)), float(max(limits))) if plain else (0.0, 0.0)


def _owner(node: ast.expr) -> ast.expr | None:
    """`p` of `p.grad` and `p.grad.data`."""
    gradient = syntax.attached(node) or node
    return gradient.value if isinstance(gradient, ast.Attribute) and gradient.attr == "grad" else None


def _is_about_presence(test: ast.expr) -> bool:
    """True for `p.grad is not None` and `p.requires_grad`, which leave out nothing that could be cut."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(map(_is_about_presence, test.values))
    return ast.unparse(test).endswith((".grad is not None", ".requires_grad"))


def _may_be_passed_over(nodes: Iterable[ast.AST], statement: ast.stmt, line: int) -> bool:
    """True if a statement stands in a branch that does not lead to the line."""
    branches = (branch for node in nodes for branch in _branches(node))
    return any(_holds(branch, statement.lineno) and not _holds(branch, line) for branch in branches)


def _branches(node: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If):
        yield from ([node.orelse] if _is_about_presence(node.test) else [node.body, node.orelse])
    elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
        yield node.body


def _holds(block: list[ast.stmt], line: int) -> bool:
    return bool(block) and block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno)


def _with_loop(nodes: Iterable[ast.AST], statement: ast.stmt, clamp: Clamp) -> Clamp:
    """The same with what the innermost loop goes over whose variable the owner is."""
    loops = [one for one in nodes if isinstance(one, ast.For) and _holds(one.body, statement.lineno)]
    name = clamp.owner.id if isinstance(clamp.owner, ast.Name) else ""
    own = [one for one in loops if name in {part.id for part in syntax.walk(one.target) if isinstance(part, ast.Name)}]
    return clamp._replace(over=max(own, key=lambda one: one.lineno).iter) if own else clamp
