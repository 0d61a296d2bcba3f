"""A model, or its parameters, that gets a second name as the best so far, in a loop that goes on to train it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

from torch import nn

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe import swapped
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.shallow import copied_shallowly, copies_itself, is_one_module
from torch_inspector.observe.source import dotted
from torch_inspector.observe.taken import copied, shown_in

# Names for what should stay as it is then.
_BEST = re.compile(r"best|snap|backup", re.IGNORECASE)
# Functions that keep what they are given, as it is now.
_KEEPS = re.compile(r"copy|clone|save|dump|state_dict", re.IGNORECASE)
_TRAINS = re.compile(r"^(step|backward|fit)$|^train_|_train$")
_PARAMETERS = {"dict": "named_parameters", "list": "parameters"}
_Loop = ast.For | ast.While


def second_names(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`best_model = model`, `best = dict(model.named_parameters())` under an `if` of a loop."""
    for kept, model, detail in _kept(scope, node, statement):
        value = node.value if isinstance(node, ast.Assign) and shown_in(node.value) is not None else node
        known = value is not node or isinstance(node, ast.Call) or _is_model(scope, kept, model)
        if isinstance(value, (ast.Attribute, ast.Call)) and value is not node:
            known = is_a(scope.names.value(model), nn.Parameter)
        if known and _BEST.search(ast.unparse(kept)) and _is_trained_on(scope, statement, model):
            if value is not node and not _outlives_its_turn(scope, kept, statement):
                continue
            if swapped.is_swapped(scope.node, kept, statement) or swapped.is_last_turn(scope.node, statement):
                continue
            names = (ast.unparse(kept), ast.unparse(model))
            sure = not _is_of_the_last_turn(scope, statement)
            yield scope.fact("second-name", value, statement, names=names, detail=detail, sure=sure)


def _shallow(scope: Scope, value: ast.AST) -> ast.expr | None:
    """`model` of a shallow copy, also by `from copy import copy`."""
    if not isinstance(value, ast.Call):
        return None
    bare = isinstance(value.func, ast.Name) and scope.names.value(value.func) is copy.copy
    return copied_shallowly(value, bare=bare)


def _kept(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """What keeps it, the model, and how a copy of it is made."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and (shown := shown_in(node.value)) is not None:
        yield node.targets[0], shown, copied(node.value)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        for target, value in pairs(node.targets[0], node.value):
            model = _shallow(scope, value) or value
            if dotted(model):
                yield target, model, f"copy.deepcopy({ast.unparse(model)})"
    elif isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Call):
        asked = node.args[0].func
        wanted = _PARAMETERS.get(dotted(node.func))
        if isinstance(asked, ast.Attribute) and asked.attr == wanted and (owner := _owner(statement)) is not None:
            yield owner, asked.value, _copies(wanted, ast.unparse(asked.value))


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each name that an assignment gives something, with what it gives."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    elif not isinstance(target, ast.Tuple):
        yield target, value


def _copies(asked: str, model: str) -> str:
    if asked == "parameters":
        return f"[p.detach().clone() for p in {model}.parameters()]"
    return f"{{n: p.detach().clone() for n, p in {model}.named_parameters()}}"


def _owner(statement: ast.stmt) -> ast.expr | None:
    """`best` of `best = …` and of `best.update(…)`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    call = statement.value if isinstance(statement, ast.Expr) else None
    updates = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "update"
    return call.func.value if updates else None  # type: ignore[union-attr]


def _is_model(scope: Scope, kept: ast.expr, model: ast.expr) -> bool:
    """True for a model that is known, and that the other name still leads to where both are the notebook's."""
    if scope.function or not isinstance(kept, ast.Name) or not isinstance(model, ast.Name):
        found = scope.names.value(model)
        return is_a(found, nn.Module) and not copies_itself(found)
    now = scope.reading.names.get(model.id)
    return is_a(now, nn.Module) and is_one_module(scope.reading.names.get(kept.id), now)


def _is_trained_on(scope: Scope, statement: ast.stmt, model: ast.expr) -> bool:
    """True under an `if` of a loop that keeps the model, and neither ends there nor keeps what it is now."""
    own = syntax.own_expressions(scope.node)
    loops = [one for one in own if isinstance(one, _Loop) and _holds(one.body, statement)]
    branches = [one for one in own if isinstance(one, ast.If) and _holds(one.body, statement)]
    inner = [one for one in branches if any(_holds(loop.body, one) for loop in loops)]
    if not inner or not any(_trains(scope, loop) for loop in loops):
        return False
    if any(_is_given(loop, model) for loop in loops) or _is_given_by_methods(scope, model):
        return False
    return not any(_ends_or_keeps(scope, one) for branch in inner for part in branch.body for one in syntax.walk(part))


def _outlives_its_turn(scope: Scope, kept: ast.expr, statement: ast.stmt) -> bool:
    """True if it is read after the loop that trains, or above its assignment; or, a notebook's, by no line so far."""
    nodes = list(syntax.walk(scope.node))
    loops = [one for one in nodes if isinstance(one, _Loop) and _holds(one.body, statement) and _trains(scope, one)]
    tests = [one for one in nodes if isinstance(one, ast.Compare) and isinstance(one.ops[0], (ast.Is, ast.IsNot))]
    asked = [part for one in tests for part in syntax.walk(one)]
    found = [one for one in nodes if isinstance(one, ast.expr) and _reads(one, kept) and one not in asked]
    anew = swapped.after_new_values(scope.node, kept, statement)
    reads = [one.lineno for one in found if one not in anew]
    if not found:
        return not scope.function and isinstance(kept, ast.Name) and not _is_read_by_a_function(scope, kept)
    last = loops[-1] if loops else statement  # the innermost
    return any(line > (last.end_lineno or 0) or last.lineno <= line < statement.lineno for line in reads)


def _reads(node: ast.AST, kept: ast.expr) -> bool:
    if type(node) is not type(kept) or not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    name = dotted(kept)
    return dotted(node) == name if name else ast.unparse(node) == ast.unparse(kept)


def _is_read_by_a_function(scope: Scope, kept: ast.expr) -> bool:
    """True if a function of another cell reads it, which the turn may call."""
    trees = (file.tree for file in scope.reading.places.latest() if file.tree is not None)
    functions = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    return any(_reads(part, kept) for one in functions for part in syntax.walk(one))


def _is_of_the_last_turn(scope: Scope, statement: ast.stmt) -> bool:
    """True if a plain number that was kept beside it is what the last turn has measured: no step came after."""
    if scope.function:
        return False
    own = [one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.If) and _holds(one.body, statement)]
    beside = [one for branch in own for part in branch.body for one in syntax.walk(part) if isinstance(one, ast.Assign)]
    named = (pair for one in beside if len(one.targets) == 1 for pair in pairs(one.targets[0], one.value))
    values = ([scope.reading.names.get(dotted(one)) for one in pair] for pair in named)
    return any(type(kept) is type(now) and is_one_of(now, (int, float)) and kept == now for kept, now in values)


def _trains(scope: Scope, loop: ast.AST) -> bool:
    """True if a loop makes steps, or calls a function that does, or whose name says so."""
    calls = [one.func for one in syntax.walk(loop) if isinstance(one, ast.Call)]
    names = {one.attr if isinstance(one, ast.Attribute) else dotted(one) for one in calls}
    if any(_TRAINS.search(name) for name in names):
        return True
    trees = (file.tree for file in (scope.file, *scope.reading.places.latest()) if file.tree is not None)
    return any(
        isinstance(one, ast.FunctionDef) and one.name in names and _makes_steps(one)
        for tree in trees
        for one in syntax.walk(tree)
    )


def _makes_steps(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in {"step", "backward"} for one in syntax.walk(function))


def _holds(block: list[ast.stmt], statement: ast.stmt) -> bool:
    return any(inner is statement for one in block for inner in syntax.walk(one))


def _is_given(loop: ast.AST, model: ast.expr) -> bool:
    """True if the loop makes the model anew, so that each turn has its own."""
    name = dotted(model)
    stored = (one for one in syntax.walk(loop) if isinstance(getattr(one, "ctx", None), ast.Store))
    return any(dotted(one) == name or dotted(one) == name.partition(".")[0] for one in stored)


def _is_given_by_methods(scope: Scope, model: ast.expr) -> bool:
    """True for `self.model` that other functions than `__init__` set, and for a name that a function makes global."""
    tree = scope.file.tree
    functions = [one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)] if tree is not None else []
    others = [one for function in functions if function.name != "__init__" for one in syntax.walk(function)]
    if isinstance(model, ast.Attribute):
        return any(
            isinstance(one, ast.Attribute) and one.attr == model.attr and isinstance(one.ctx, ast.Store)
            for one in others
        )
    return any(isinstance(one, ast.Global) and dotted(model) in one.names for one in others)


def _ends_or_keeps(scope: Scope, node: ast.AST) -> bool:
    if isinstance(node, (ast.Break, ast.Return, ast.Raise)):
        return True
    called = node.func if isinstance(node, ast.Call) and _shallow(scope, node) is None else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return bool(_KEEPS.search(name))
