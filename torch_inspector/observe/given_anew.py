"""Names that each turn of a loop gives another value before it reads them."""

from __future__ import annotations

import ast
from bisect import bisect_left
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted


def given_anew(path: str, line: int, around: ast.AST) -> bool:
    """True if the last assignment before a line, in the loop or cell around it, takes its value from elsewhere.

    Then what the turn before has left in the name, or an earlier run of the cell, is not what the line reads.

    Args:
        path: What is read.
        line: Where.
        around: The innermost loop that holds the line, or the whole cell.
    """
    lines, anew = _stores(around).get(path, ([], []))
    before = bisect_left(lines, line)
    return before > 0 and anew[before - 1]


@lru_cache(maxsize=64)
def _stores(around: ast.AST) -> dict[str, tuple[list[int], list[bool]]]:
    """Lines that assign each name, in order, and whether the value is another leaf or of other things."""
    found: dict[str, tuple[list[int], list[bool]]] = {}
    statements = [one for one in syntax.own_statements(around) if isinstance(one, ast.Assign)]
    for statement in sorted(statements, key=lambda one: one.lineno):
        for target in statement.targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                lines, anew = found.setdefault(dotted(one), ([], []))
                lines.append(statement.lineno)
                anew.append(_is_anew(dotted(one), statement.value))
    return found


def _is_anew(path: str, value: ast.expr) -> bool:
    """`x.clone()`, `w.detach().clone()`, not `w * 2` or `torch.rand(3, requires_grad=True) * 2`."""
    node: ast.AST = value
    while isinstance(node, ast.Call):
        if any(one.arg == "requires_grad" for one in node.keywords):
            return True
        if not isinstance(node.func, ast.Attribute):
            break
        if node.func.attr in ("detach", "requires_grad_"):
            return True
        # A calculation makes no leaf of what comes before it.
        node = node.func.value if node.func.attr in ("clone", "to", "contiguous") else node.func
    asks = any(isinstance(one, ast.keyword) and one.arg == "requires_grad" for one in syntax.walk(value))
    return not asks and path.partition(".")[0] not in syntax.names_in(value)
