"""Whether a statement of a cell that ended well surely ran, and nothing on the way to it was given up quietly."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe.conditions import outcome
from torch_inspector.observe.reached import is_reached
from torch_inspector.observe.shapes import UNKNOWN
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import late_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_inspector.observe.expressions import Scope

    ValueOf = Callable[[Scope, ast.expr, ast.stmt], Any]
    """What a test of a statement in a scope stands for."""

_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
# Who takes this as an answer stops the cell by hand.
_BY_HAND = frozenset(["KeyboardInterrupt"])
# Methods of the language, and what hands on every error.
_PLAIN = frozenset(["staticmethod", "classmethod", "property", "cached_property", "cache", "lru_cache"])
_TAKES_ALL = frozenset(["list", "tuple", "set", "sum", "max", "min", "sorted", "dict"])
_MAIN = "__name__ == '__main__'"
_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)


def surely_ran(scope: Scope, node: ast.AST, statement: ast.stmt, value: ValueOf | None = None) -> bool:
    """True if no branch that is not known, and nobody who takes an error for an answer, stands around an expression.

    The same is asked of the calls that led to its function.

    Args:
        scope: Of the expression.
        node: The expression.
        statement: Around it.
        value: What a test stands for, if not what it stands for now.
    """
    told = value or value_of
    if not is_reached(scope.node, statement, node, lambda test: told(scope, test, statement)):
        return False
    if _may_end_early(scope.node, statement) or not _is_plain(scope) or _may_be_left_out(scope.node, node):
        return False
    call, caller = scope.call, scope.caller
    if caller is None or call is None:
        return True
    site = getattr(call, "site", call)  # what a loader asks stands in no text, the loop over it does
    around = syntax.statement_of(site, syntax.parents(caller.node))
    return around is None or surely_ran(caller, site, around, value)


def _may_be_left_out(tree: ast.AST, node: ast.AST) -> bool:
    """True for the element of a comprehension with a filter, and for the right side of `and` and `or`."""
    parents, here = syntax.parents(tree), node
    while (parent := parents.get(id(here))) is not None and not isinstance(here, ast.stmt):
        if isinstance(parent, ast.BoolOp) and parent.values[0] is not here:
            return True
        first = isinstance(here, ast.comprehension)
        if isinstance(parent, syntax.COMPREHENSIONS) and not first and any(one.ifs for one in parent.generators):
            return True
        here = parent
    return False


def _may_end_early(tree: ast.AST, statement: ast.stmt) -> bool:
    """True if an error on the way to a statement, or in it, may have been taken for an answer."""
    parents = syntax.parents(tree)
    here: ast.AST | None = statement
    while here is not None:
        if _takes_errors(here):
            return True
        here = parents.get(id(here))
    return False


def _takes_errors(around: ast.AST) -> bool:
    if isinstance(around, _TRIES):
        return any(_is_quiet(one) for one in around.handlers)
    if not isinstance(around, (ast.With, ast.AsyncWith)):
        return False
    managers = (one.context_expr for one in around.items)
    return not all(_hands_on_errors(one) for one in managers)


def _is_quiet(handler: ast.ExceptHandler) -> bool:
    """True if what is caught ends there."""
    again = bool(handler.body) and isinstance(handler.body[-1], ast.Raise)
    return not again and not (handler.type is not None and dotted(handler.type) in _BY_HAND)


def _hands_on_errors(manager: ast.expr) -> bool:
    """True for `torch.no_grad()` and other ones of torch, for `open` and bars of progress."""
    name = dotted(manager.func if isinstance(manager, ast.Call) else manager)
    return name.partition(".")[0] in {"torch", "open", "tqdm", "warnings"} or name in {"autocast", "amp.autocast"}


def _is_plain(scope: Scope) -> bool:
    """False for a function whose body may not have run to the end when it was called."""
    function = scope.node
    names = (one.func if isinstance(one, ast.Call) else one for one in getattr(function, "decorator_list", ()))
    if any(dotted(one).partition(".")[0] != "torch" and dotted(one).rpartition(".")[2] not in _PLAIN for one in names):
        return False
    if not scope.function or not any(isinstance(one, _YIELDS) for one in syntax.own_expressions(function)):
        return True
    site = getattr(scope.call, "site", scope.call)
    return scope.caller is not None and site is not None and _is_taken_whole(scope.caller.node, site)


def _is_taken_whole(tree: ast.AST, call: ast.expr) -> bool:
    """True where a loop, or a function like `list`, goes through all that a generator gives."""
    parent = syntax.parents(tree).get(id(call))
    if isinstance(parent, ast.For) and parent.iter is call:
        return not any(isinstance(one, (ast.Break, ast.Return)) for one in syntax.own_expressions(parent))
    return isinstance(parent, ast.Await) or (isinstance(parent, ast.Call) and dotted(parent.func) in _TAKES_ALL)


def value_of(scope: Scope, test: ast.expr, statement: ast.stmt) -> Any:
    """What a test stands for, if nothing in it is given a value later."""
    if ast.unparse(test) == _MAIN:
        return True
    late = late_at(scope.node, statement.lineno)
    named = (one.id for one in syntax.walk(test) if isinstance(one, ast.Name))
    return UNKNOWN if any(one in late for one in named) else scope.names.value(test)


def compared_value(scope: Scope, test: ast.expr, statement: ast.stmt) -> Any:
    """The same; sizes and plain values are compared, too."""
    known = outcome(scope, test)
    return value_of(scope, test, statement) if known is UNKNOWN else known
