"""Statements that are run to be measured, counted or refused: nobody wants their results."""

from __future__ import annotations

import ast
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Blocks in which a statement is there for its result; in those of profilers, counters and tests it is not.
_PLAIN_BLOCKS = frozenset(
    ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "device", "stream", "tqdm", "open")
)
_CLOCKS = ("perf_counter", "perf_counter_ns", "time", "monotonic", "process_time", "thread_time", "record")


def is_measured(node: ast.AST) -> bool:
    """True for a block under a profiler, a mode or an expected error, and for a loop that only calls."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        calls = (item.context_expr for item in node.items)
        names = (dotted(call.func if isinstance(call, ast.Call) else call).rpartition(".")[2] for call in calls)
        return not all(name in _PLAIN_BLOCKS for name in names)
    if isinstance(node, (ast.For, ast.While)):
        return all(isinstance(one, ast.Expr) for one in node.body) and not _uses_what_it_binds(node)
    return False


def _uses_what_it_binds(loop: ast.For | ast.While) -> bool:
    """True for `for x in batch: x.to(device)`, where each turn has another one."""
    bound = {n.id for n in syntax.walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()
    return any(isinstance(n, ast.Name) and n.id in bound for one in loop.body for n in syntax.walk(one))


def is_timed(tree: ast.Module, line: int, name: str) -> bool:
    """True for a statement of a cell that asks a clock before and after it, if the cell does not use the name later.

    Of a variable in a function that asks one itself, what it returns at the end is no use: `return x, seconds`.
    """
    if _is_between(tree, line) and _last_uses(tree).get(name, 0) <= line:
        return True
    scope = syntax.function_around(tree, line)
    return scope is not None and _is_between(scope, line) and _last_uses(scope).get(name, 0) <= line


def _is_between(scope: ast.AST, line: int) -> bool:
    asked = _asked(scope)
    return bool(asked) and asked[0] <= line <= asked[-1]


@lru_cache(maxsize=64)
def _asked(scope: ast.AST) -> list[int]:
    """Lines of a scope that ask a clock."""
    calls = (one for one in syntax.walk(scope) if isinstance(one, ast.Call))
    return sorted(one.lineno for one in calls if dotted(one.func).rpartition(".")[2] in _CLOCKS)


@lru_cache(maxsize=64)
def _last_uses(scope: ast.AST) -> dict[str, int]:
    """The last line of a scope that uses each name; what a function returns by name is no use in itself."""
    returned = _returned(scope) if isinstance(scope, syntax.FUNCTIONS) else set()
    found: dict[str, int] = {}
    for one in syntax.walk(scope):
        if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in returned and (name := dotted(one)):
            found[name] = max(found.get(name, 0), one.lineno)
    return found


def _returned(scope: ast.AST) -> set[int]:
    values = (one.value for one in syntax.own_expressions(scope) if isinstance(one, ast.Return))
    return {id(part) for one in values for part in (one.elts if isinstance(one, ast.Tuple) else [one])}
