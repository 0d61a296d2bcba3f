"""Statements that are run to be measured, counted or refused: nobody wants their results."""

from __future__ import annotations

import ast

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
    """True for a statement of a cell that asks a clock before and after it, if the cell does not use the name later."""
    nodes = list(syntax.walk(tree))
    asked = [n.lineno for n in nodes if isinstance(n, ast.Call) and dotted(n.func).rpartition(".")[2] in _CLOCKS]
    if not any(one <= line for one in asked) or not any(one >= line for one in asked):
        return False
    uses = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) == name and n.lineno > line]
    return not uses
