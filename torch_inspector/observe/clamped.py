"""Gradients that a line clips by hand, with `clamp_` and numbers, between `backward()` and the step."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import called, syntax
from torch_inspector.observe import kinds, layers
from torch_inspector.observe.failing import Scope
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.place import CodeFile

_IN_PLACE = frozenset(["clamp_", "clip_"])
_ANEW = frozenset(["clamp", "clip"])
# Elements of gradients that are read.
_ELEMENTS = 300_000
_LIMITS = 2
_ASKS = ("parameters", "named_parameters")
_SAME_ELEMENTS = ("list", "tuple", "reversed")


class Clamped(NamedTuple):
    """Such a line."""

    line: int
    function: str
    limit: float


class _Clamp(NamedTuple):
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


def clamped(file: CodeFile, frame: FrameType, optimizer: Any) -> Clamped | None:
    """The line before the one that a frame is at, if it has cut gradients of an optimizer; None if there is none."""
    if file.tree is None or "grad" not in file.code:
        return None
    line = frame.f_lineno
    nodes = list(syntax.own_expressions(syntax.scope_at(file.tree, line)))
    begin = max((one.lineno for one in nodes if _is_backward(one) and one.lineno < line), default=line)  # type: ignore[attr-defined]
    statements = [one for one in nodes if isinstance(one, (ast.Expr, ast.Assign)) and begin < one.lineno < line]
    found = [(one, clamp) for one in statements if (clamp := _clamp(one)) is not None]
    if len(found) != 1 or _may_be_passed_over(nodes, *found[0][:1], line):
        return None
    clamp = found[0][1] if found[0][1].over is not None else _with_loop(nodes, *found[0])
    if not _is_at_limit(_touched(clamp, frame, optimizer), clamp):
        return None
    return Clamped(clamp.call.lineno, clamp.function, max(-clamp.low, clamp.high))


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


# text -------------------------------------------------------------------------


def _clamp(statement: ast.Expr | ast.Assign) -> _Clamp | None:
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


def _call(node: ast.AST, names: frozenset[str]) -> _Clamp | None:
    """`p.grad.data.clamp_(-1, 1)` or `torch.clamp_(p.grad, -1, 1)`: of variables the limit is not known."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute) or function.attr not in names:
        return None
    of_torch = isinstance(function.value, ast.Name) and function.value.id == "torch"
    given = node.args[int(of_torch) :]
    owner = _owner(node.args[0] if of_torch and node.args else function.value)
    low, high = _limits([*given, *(keyword.value for keyword in node.keywords)])
    return _Clamp(node, function.attr, owner, low, high) if owner is not None and low < 0 < high else None


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


def _with_loop(nodes: Iterable[ast.AST], statement: ast.stmt, clamp: _Clamp) -> _Clamp:
    """The same with what the innermost loop goes over whose variable the owner is."""
    loops = [one for one in nodes if isinstance(one, ast.For) and _holds(one.body, statement.lineno)]
    name = clamp.owner.id if isinstance(clamp.owner, ast.Name) else ""
    own = [one for one in loops if name in {part.id for part in syntax.walk(one.target) if isinstance(part, ast.Name)}]
    return clamp._replace(over=max(own, key=lambda one: one.lineno).iter) if own else clamp


# objects ----------------------------------------------------------------------


def _touched(clamp: _Clamp, frame: FrameType, optimizer: Any) -> list[torch.Tensor]:
    """Parameters of an optimizer that the line went over."""
    held = {id(p): p for group in parameters_of(optimizer) for p in group}
    with locals_of(frame) as values:
        scope = Scope(values, frame)
        keys = _keys(clamp.over, scope) if clamp.over is not None else None
        if keys is None and clamp.lasts:
            key = id(scope.value(clamp.owner)[1])
            # Of a loop over something unknown, the variable has its last value: it may have gone over all.
            keys = {key} if clamp.over is None else set(held) if key in held else None
        return [held[key] for key in keys or () if key in held]


def _keys(over: ast.expr, scope: Scope) -> set[int] | None:
    """Addresses of what is looped over; None if it is not known."""
    if isinstance(over, ast.Call) and len(over.args) == 1 and called(over) in _SAME_ELEMENTS:
        return _keys(over.args[0], scope)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _ASKS:
        module = scope.value(over.func.value)[1]
        known = kinds.is_a(module, torch.nn.Module)
        return {id(p) for _, p in layers.walk_parameters(module)} if known else None
    some = scope.value(over)[1]
    return set(map(id, some)) if kinds.is_one_of(some, (list, tuple)) else None


def _is_at_limit(parameters: list[torch.Tensor], clamp: _Clamp) -> bool:
    """True if no number in some gradients is beyond the limits and one is just there; False if it cannot be read."""
    left, reached = _ELEMENTS, False
    for parameter in parameters:
        gradient = parameter.grad if parameter.is_leaf else None
        if gradient is None or not gradient.numel():
            continue
        left -= gradient.numel()
        if left < 0 or not is_in_memory(gradient) or not gradient.is_floating_point():
            return False
        least, most = gradient.detach().aminmax()
        if not (bool(least >= clamp.low) and bool(most <= clamp.high)):
            return False
        reached = reached or bool(least == clamp.low) or bool(most == clamp.high)
    return reached
