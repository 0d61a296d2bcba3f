"""Code that wakes the normalisation of a trained model in order to adapt it to what is asked."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.taken_apart import given_in

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact, ModeFact
    from torch_inspector.facts.run import Run

# Methods whose whole purpose is the call: what they do to a model, they do for it.
_CALLS = ("forward", "__call__")
# What a normalisation has for its statistics.
_STATISTICS = frozenset(
    ["momentum", "track_running_stats", "reset_running_stats", "running_mean", "running_var", "num_batches_tracked"]
)


def adapts(call: ForwardFact, awake: ModeFact, run: Run) -> bool:
    """True if nothing but normalisation is awake, and the function that wakes it is made for that.

    It is if it picks these layers out by their class, handles their statistics, puts the state back that was kept
    before, or is the call itself of an object around the model.
    """
    tree, line = syntax.parse(run.source_of(awake.place.cell)), awake.place.line
    function = syntax.function_around(tree, line) if tree is not None and line is not None else None
    if tree is None or function is None or not call.only_norms:
        return False
    kind = _class_around(tree, function)
    own = [function, *_helpers(function, kind)]
    itself = function.name in _CALLS and kind is not None and _asks_itself(call, awake)
    return itself or any(_handles_norms(one) for one in own) or _puts_back(own, kind or function)


def _asks_itself(call: ForwardFact, awake: ModeFact) -> bool:
    return awake.place.scope in {call.place.scope, *(caller.place.scope for caller in call.callers)}


def _class_around(tree: ast.AST, function: ast.AST) -> ast.ClassDef | None:
    kinds = (one for one in syntax.walk(tree) if isinstance(one, ast.ClassDef))
    return next((one for one in kinds if any(part is function for part in one.body)), None)


def _helpers(function: ast.AST, kind: ast.ClassDef | None) -> list[ast.FunctionDef]:
    """Methods of the same class that a method names."""
    named = {one.attr for one in syntax.own_expressions(function) if isinstance(one, ast.Attribute)}
    return [one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name in named] if kind else []


def _handles_norms(function: ast.AST) -> bool:
    """True for `isinstance(layer, nn.BatchNorm2d)`, also of what is not to wake, and for a use of the statistics."""
    nodes = syntax.own_expressions(function)
    tests = (one for one in nodes if isinstance(one, ast.Call) and syntax.name_of(one.func) == "isinstance")
    named = {syntax.name_of(part) for one in tests for kind in one.args[1:] for part in syntax.walk(kind)}
    return any("Norm" in one or "Drop" in one for one in named) or any(
        isinstance(one, ast.Attribute) and one.attr in _STATISTICS for one in nodes
    )


def _puts_back(functions: Iterable[ast.AST], scope: ast.AST) -> bool:
    """True if one of some functions loads a state that the scope around them has taken of a module."""
    kept = {name for name, values in given_in(scope).items() if any(_takes_state(one) for one in values)}
    calls = (one for function in functions for one in syntax.own_expressions(function) if isinstance(one, ast.Call))
    loads = (one for one in calls if syntax.name_of(one.func) == "load_state_dict")
    return any(_text(part) in kept for one in loads for given in one.args for part in syntax.walk(given))


def _takes_state(value: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "state_dict" for one in syntax.walk(value))


def _text(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
