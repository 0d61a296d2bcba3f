"""The variable behind a loss without history that a model computed while gradients were off."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import reading, syntax

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

# From a loss to the prediction, and a few names on the way.
_STEPS = 6
# What has no history anyway: with gradients on it would be the same.
_WITHOUT = re.compile(r"\barg(max|min|sort)\(|\.(item|detach|long|int|numpy|tolist)\(|\.data\b")


class Blind(NamedTuple):
    """A value that a model gave while gradients were off."""

    run: Run
    """The cell that computed it."""
    name: str
    """The variable that was given it; empty for the loss itself where that has no name."""


class _Spot(NamedTuple):
    """Where a name is read."""

    run: Run
    scope: ast.AST
    line: int
    seen: set[tuple[int, int, str, int]]
    """Where the search has been, by scope, line, name and steps left."""


def made_blind(run: Run) -> Blind | None:
    """Follows the loss of a failed `backward()` through what gives it, and its first tensor, their values.

    Returns:
        None where the way ends at something that no model without gradients gave.
    """
    error = run.error
    at = next((one for one in (run, *run.earlier) if error and one.cell.number == error.place.cell), None)
    tree = syntax.parse(at.cell.source) if at is not None else None
    if error is None or at is None or tree is None or error.place.line is None:
        return None
    spot = _Spot(at, syntax.scope_at(tree, error.place.line), error.place.line, set())
    loss = syntax.expression(error.root) or syntax.expression(reading.differentiated(run, error.place))
    if isinstance(loss, ast.Name):
        return _given(run, spot, loss.id, _STEPS)
    own = next((one for one in syntax.own_statements(spot.scope) if one.lineno == spot.line), None)
    called = own is not None and at is run and _is_blind(run, own)
    return Blind(run, "") if called else _followed(run, spot, loss, _STEPS)


def _followed(run: Run, spot: _Spot, value: ast.expr | None, steps: int) -> Blind | None:
    """The same for an expression, whose first tensor is what history comes through."""
    name = _first_name(value, {one.path.partition(".")[0] for one in run.after.modules}) if value is not None else ""
    return _given(run, spot, name, steps - 1) if name and steps else None


def _given(run: Run, spot: _Spot, name: str, steps: int) -> Blind | None:
    """The same for a variable: its last value before a line, and what was added to that."""
    key = (id(spot.scope), spot.line, name, steps)
    if key in spot.seen:
        return None
    spot.seen.add(key)
    stores = [one for one in _stores(spot.scope, name) if one.lineno < spot.line]
    last = max((one.lineno for one in stores if not isinstance(one, ast.AugAssign)), default=0)
    for one in (one for one in stores if one.lineno >= last):
        if _is_blind(spot.run, one):
            return Blind(spot.run, name)
        found = _followed(run, spot._replace(line=one.lineno), one.value, steps)
        if found is not None:
            return found
    if last or name in syntax.parameters_of(spot.scope):
        return None
    return _given_before(run, spot, name, steps)


def _given_before(run: Run, spot: _Spot, name: str, steps: int) -> Blind | None:
    """The same in the latest cell that gives the variable a value, before another one if that is given."""
    runs, at = [*run.earlier, run], spot.run if isinstance(spot.scope, ast.Module) else None
    end = next((index for index, one in enumerate(runs) if one is at), len(runs))
    for past in reversed(runs[:end]):
        tree = syntax.parse(past.cell.source)
        ends = [one.lineno for one in _stores(tree, name)] if tree is not None else []
        if tree is not None and ends:
            return _given(run, _Spot(past, tree, max(ends) + 1, spot.seen), name, steps)
    return None


def _stores(scope: ast.AST, name: str) -> list[ast.Assign | ast.AnnAssign | ast.AugAssign]:
    """The statements of a scope that give a variable a value, in their order."""
    found = []
    for one in syntax.own_statements(scope):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        stored = any(isinstance(part, ast.Name) and part.id == name for target in targets for part in _parts(target))
        if isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and stored:
            found.append(one)
    return sorted(found, key=lambda one: one.lineno)


def _parts(target: ast.AST | None) -> list[ast.AST]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target] if target is not None else []


def _is_blind(run: Run, statement: ast.stmt) -> bool:
    """True if a statement calls a model that can learn, without gradients, and no model with them."""
    if _WITHOUT.search(ast.unparse(statement)):
        return False
    inside = [call for call in run.trace.forwards if _leads_from(call, run, statement)]
    blind = any(call.trainable_count and not call.grad_enabled for call in inside)
    return blind and not any(call.output_requires_grad for call in inside)


def _leads_from(call: ForwardFact, run: Run, statement: ast.stmt) -> bool:
    places = (call.place, *(one.place for one in call.callers))
    ends = statement.lineno, statement.end_lineno or statement.lineno
    return any(one.cell == run.cell.number and one.line and ends[0] <= one.line <= ends[1] for one in places)


def _first_name(node: ast.AST, known: set[str]) -> str:
    """`pred` of `F.mse_loss(pred.squeeze(), y)` and of `((pred - y) ** 2).mean()`.

    Args:
        node: An expression.
        known: Names that are modules, as `torch` and `F` are.
    """
    if isinstance(node, ast.BinOp):
        return _first_name(node.left, known) or _first_name(node.right, known)
    if isinstance(node, ast.Call):
        return _of_call(node, known)
    inner = getattr(node, "value", getattr(node, "operand", None)) or next(iter(getattr(node, "elts", ())), None)
    if isinstance(node, ast.Name) or not isinstance(inner, ast.AST):
        return node.id if isinstance(node, ast.Name) else ""
    return _first_name(inner, known)


def _of_call(call: ast.Call, known: set[str]) -> str:
    """What a method is called of, or what a function is given first: functions are of modules, or names themselves."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    root = _first_name(owner, known) if owner is not None else ""
    function = owner is None or root in known or root in ("torch", "F", "nn", "self", "functional")
    first = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg in ("input", "x")), None)
    return root if not function else _first_name(first, known) if first is not None else ""
