"""What becomes of an answer of a model: a function that asks may hand its result to nobody, and tell no one."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.shown import shown

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# Functions that show or write what they are given, and methods that keep it.
_TELLS = re.compile(
    r"^(p?print|display|info|debug|warning|write\w*|log|log_\w*metric\w*|add_scalars?|set_(postfix|description)\w*"
    r"|dump|save|plot|show)$"
)
_KEEPS = frozenset(["append", "appendleft", "extend", "add", "update", "insert", "setdefault", "put"])
_SIZES = frozenset(["shape", "size", "ndim", "dim"])
_OF_NUMBERS = frozenset(["torch", "math", "np", "numpy", "F"])
_DROPPED, _SHOWN, _USED = "dropped", "shown", "used"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_dropped(run: Run, call: ForwardFact) -> bool:
    """True if nobody gets the result of the function that asked: then only what the model keeps can be meant."""
    return _use(run, call) == _DROPPED


def is_last_shown(run: Run, call: ForwardFact) -> bool:
    """True if the result is the last expression of the cell: whether anybody wants it nobody knows."""
    return _use(run, call) == _SHOWN


def is_only_run(run: Run, call: ForwardFact) -> bool:
    """True if the line that asks a model drops the answer, or wants the sizes of it only."""
    tree = syntax.parse(run.source_of(call.place.cell))
    if tree is None or not tree.body:
        return False
    nodes = [one for one in syntax.walk(tree) if getattr(one, "lineno", None) == call.place.line]
    asked = {id(one) for one in nodes if isinstance(one, ast.Call) and ast.unparse(one.func) == call.name}
    unasked: list[ast.Expr | ast.Assign | ast.Attribute] = [one for one in nodes if _is_unasked(one)]  # type: ignore[misc]
    return bool(asked) and asked <= {id(syntax.whole_of(one.value)) for one in unasked if one is not tree.body[-1]}


def is_only_measured(run: Run, call: ForwardFact) -> bool:
    """True if the line keeps the answer in a variable, of which the cell reads the sizes only."""
    tree = syntax.parse(run.source_of(call.place.cell))
    scope = syntax.scope_at(tree, call.place.line) if tree is not None and call.place.line is not None else None
    own = list(syntax.own_expressions(scope)) if scope is not None else []
    given = [one for one in own if isinstance(one, ast.Assign) and one.lineno == call.place.line]
    if not given or not all(
        isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == call.name for one in given
    ):
        return False
    names = {target.id for one in given for target in one.targets if isinstance(target, ast.Name)}
    measured = {id(one.value) for one in own if isinstance(one, ast.Attribute) and one.attr in _SIZES}
    reads = [one for one in own if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load)]
    return bool(reads) and all(id(one) in measured for one in reads)


def _is_unasked(node: ast.AST) -> bool:
    """True for `net(x)` as a statement, and for `net(x).shape`."""
    if isinstance(node, (ast.Expr, ast.Assign)):
        return _is_to_nobody(node)
    return isinstance(node, ast.Attribute) and node.attr in _SIZES


def _use(run: Run, call: ForwardFact) -> str:
    for inner, outer in zip(call.callers, call.callers[1:], strict=False):
        function = _function(run, inner.place)
        if function is None or any(_is_told(one, function) for one in syntax.own_expressions(function)):
            return _USED
        use = _use_at(run, outer.place, function.name) if _returns(function) else _DROPPED
        if use != _USED:
            return use
    return _USED


def _function(run: Run, place: Place) -> _Function | None:
    tree = syntax.parse(run.source_of(place.cell))
    return syntax.function_around(tree, place.line) if tree is not None and place.line is not None else None


def _returns(function: _Function) -> bool:
    own = syntax.own_expressions(function)
    return any(isinstance(one, ast.Return) and one.value is not None for one in own)


def _is_told(node: ast.AST, function: _Function) -> bool:
    """True for what prints or writes, and what keeps something where others find it."""
    if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)):
        return True
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        fields = [one for one in syntax.targets_of(node) if isinstance(one, (ast.Attribute, ast.Subscript))]
        return any(not _is_own(one, function) for one in fields)
    if not isinstance(node, ast.Call):
        return False
    name, owner = syntax.last_part(node.func), getattr(node.func, "value", None)
    if owner is not None and name in _KEEPS:
        return not _is_own(owner, function)
    of_numbers = owner is not None and (syntax.root_of(owner) in _OF_NUMBERS or not node.args)
    return bool(_TELLS.match(name)) and not (name == "log" and of_numbers)


def _is_own(node: ast.expr, function: _Function) -> bool:
    """True for a variable that the function makes itself."""
    names = (one for one in syntax.own_expressions(function) if isinstance(one, ast.Name))
    stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    return syntax.root_of(node) in stored - syntax.parameters_of(function)


def _use_at(run: Run, place: Place, name: str) -> str:
    """What becomes of the result of a function in a line that calls it."""
    source = run.source_of(place.cell)
    tree = syntax.parse(source)
    own = syntax.own_expressions(syntax.scope_at(tree, place.line)) if tree is not None and place.line else ()
    calls = [one for one in own if isinstance(one, ast.Call) and one.lineno == place.line]
    calls = [one for one in calls if syntax.last_part(one.func) == name]
    if tree is None or not calls:
        return _USED
    alone = {id(one.value): one for one in own if isinstance(one, (ast.Expr, ast.Assign)) and _is_to_nobody(one)}
    if not all(id(one) in alone for one in calls):
        return _USED
    last = shown(source) if place.cell == run.cell.number else None
    seen = last is not None and any(alone[id(one)].lineno == last.lineno for one in calls)
    return _SHOWN if seen else _DROPPED


def _is_to_nobody(node: ast.Expr | ast.Assign) -> bool:
    """True for `run()` and `_ = run()`."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return all(isinstance(one, ast.Name) and one.id == "_" for one in targets)
