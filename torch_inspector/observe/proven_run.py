"""Whether a line ran for certain: no test on the way may have changed since, and no loop around was without turns."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from torch.utils.data import DataLoader

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.grounds import Grounds, Read
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.ran import surely_ran, value_of
from torch_inspector.observe.shapes import UNKNOWN, is_tensor, shape_of
from torch_inspector.observe.source import dotted

_WRAPPERS = frozenset(["enumerate", "tqdm", "reversed"])


def is_proven_to_run(scope: Scope, node: ast.AST, statement: ast.stmt, grounds: Grounds) -> bool:
    """True if each loop around had a turn, here and in callers, and each test on the way has its value now.

    Args:
        scope: Of the expression.
        node: The expression.
        statement: Around it.
        grounds: Takes in what was tested: it is no proof unless that is as it was.
    """
    here: Scope | None = scope
    inner, around = node, statement
    while here is not None:
        if not _is_plain(here, inner) or not all(_has_turns(here, one) for one in _loops_around(here, around)):
            return False
        call, here = here.call, here.caller
        if here is not None and call is not None:
            outer = syntax.statement_of(call, syntax.parents(here.node))
            if outer is None:  # a loader may ask for no item at all
                return False
            inner, around = call, outer
    return surely_ran(scope, node, statement, partial(_tested, grounds))


def _tested(grounds: Grounds, scope: Scope, test: ast.expr, statement: ast.stmt) -> Any:
    value = value_of(scope, test, statement)
    if value is not UNKNOWN:
        grounds.add(Read(scope, test, statement.lineno))
    return value


def _is_plain(scope: Scope, node: ast.AST) -> bool:
    """False for items that a comprehension may leave out, and for what a generator works out only when it is asked."""
    parents, here = syntax.parents(scope.node), node
    while (parent := parents.get(id(here))) is not None and not isinstance(parent, ast.stmt):
        filtered = isinstance(parent, syntax.COMPREHENSIONS) and any(one.ifs for one in parent.generators)
        if filtered or _is_lazy(parent, parents):
            return False
        here = parent
    return True


def _is_lazy(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    return isinstance(node, ast.GeneratorExp) and not isinstance(parents.get(id(node)), ast.Call)


def _loops_around(scope: Scope, statement: ast.stmt) -> list[ast.AST]:
    """Of `for … else`, the loop counts as around both."""
    parents, found = syntax.parents(scope.node), list[ast.AST]()
    here: ast.AST | None = statement
    while (here := parents.get(id(here))) is not None:
        if isinstance(here, syntax.LOOPS):
            found.append(here)
    return found


def _has_turns(scope: Scope, loop: ast.AST) -> bool:
    """True for a loop over something that is known not to be empty."""
    return isinstance(loop, ast.For) and _is_filled(scope, loop.iter, loop.lineno)


def _is_filled(scope: Scope, source: ast.expr, line: int) -> bool:
    if isinstance(source, (ast.List, ast.Tuple)):
        return bool(source.elts)
    if isinstance(source, ast.Call):
        return _is_filled_call(scope, source, line)
    read = Read(scope, source, line)
    value = read.value()
    if is_a(value, DataLoader):
        return any(scope.reading.batches.values())
    lengths = shape_of(value) if is_tensor(value) else None
    return bool(lengths and lengths[0]) and Grounds(scope).add(read).is_sure


def _is_filled_call(scope: Scope, call: ast.Call, line: int) -> bool:
    """The same of `range(3)`, `enumerate(loader)` and `zip(a, b)`."""
    name = dotted(call.func)
    if name == "range":
        reads = [Read(scope, one, line) for one in call.args]
        bounds = [one.value() for one in reads]
        whole = all(type(one) is int for one in bounds) and 0 not in bounds[2:]
        return whole and len(range(*bounds)) > 0 and all(Grounds(scope).add(one).is_sure for one in reads)
    parts = call.args[:1] if name in _WRAPPERS else call.args if name == "zip" else []
    return bool(parts) and all(_is_filled(scope, one, line) for one in parts)
