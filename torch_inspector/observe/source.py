"""The text of a cell as a tree, and all facts that follow from it alone."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import lru_cache

from torch_inspector.facts import CallFact, Cell, MentionFact, Trace, syntax

# `w = w + 1`, roughly: the tree is looked at only where the text may say so.
_REBINDS = re.compile(r"^ *([A-Za-z_][\w.]*) = .*\b\1\b", re.MULTILINE)
# Methods that keep what they are given.
KEEPS = frozenset(["append", "add", "insert", "extend", "appendleft", "setdefault", "update", "register", "submit"])


def source_trace(cell: Cell) -> Trace:
    """All that the text of a cell says."""
    return _trace_of(cell.code, cell.line_offset)


@lru_cache(maxsize=32)
def _trace_of(code: str, offset: int) -> Trace:
    """The same by the text alone: cells are run again and again."""
    from torch_inspector.observe.closures import loop_functions
    from torch_inspector.observe.indexing import indexing_facts

    tree = syntax.parse(code)
    if tree is None:
        return Trace()
    # A function in a loop is written with one of these words.
    functions = loop_functions(tree, code, offset) if "lambda" in code or "def" in code else ()
    indexings = indexing_facts(tree, offset) if "[" in code else ()
    trace = Trace(
        loop_functions=functions,
        calls=call_facts(tree, offset),
        indexings=indexings,
        mentions=mention_facts(tree, offset),
    )
    if "torch.tensor(" in code and "backward" in code:
        from torch_inspector.observe.copying import copy_facts

        trace = replace(trace, copies=copy_facts(tree, offset))
    if ".data" in code and "backward" in code:
        from torch_inspector.observe.data_edits import data_edits

        trace = replace(trace, data_edits=data_edits(tree, offset))
    if "grad" not in code and not _REBINDS.search(code):
        return trace
    from torch_inspector.observe.rebinding import grad_reads, rebind_facts

    return replace(trace, rebinds=rebind_facts(tree, offset), grad_reads=grad_reads(tree, offset))


def dotted(node: ast.AST) -> str:
    """`torch.nn.Linear` for the expression that says so; empty for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


def call_facts(tree: ast.Module, offset: int) -> tuple[CallFact, ...]:
    """Every call with a plain dotted name, by line."""
    calls = (node for node in syntax.walk(tree) if isinstance(node, ast.Call))
    named = ((dotted(call.func), call.lineno + offset) for call in calls)
    return tuple(sorted((CallFact(name, line) for name, line in named if name), key=lambda call: call.line))


def mention_facts(tree: ast.Module, offset: int) -> tuple[MentionFact, ...]:
    """Every statement that is only a dotted name, such as `model.eval`, by line."""
    found: list[MentionFact] = []
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, function = stack.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and (name := dotted(node.value)):
            shown = bool(tree.body) and node is tree.body[-1]
            found.append(MentionFact(name, node.lineno + offset, function, shown))
        inner = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        # Expressions hold no statements.
        stack.extend((child, inner) for child in syntax.children(node) if not isinstance(child, ast.expr))
    return tuple(sorted(found, key=lambda fact: fact.line))
