"""The loop that gives a name its values, repeated at an earlier line where the name has none yet."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place


def each_of(source: str, name: str, here: Place, there: Place) -> str:
    """`for opt in self.opts:`, if a name is the variable of a loop around one line and not around another.

    Args:
        source: Text of the cell that has both lines.
        name: What is called that in `there`.
        here: The line where it is wanted.
        there: The line where it has its value.
    """
    tree, line, last = syntax.parse(source), here.line or 0, there.line or 0
    root = name.partition(".")[0].partition("[")[0]
    # Lambdas and comprehensions have frames of their own, and are part of the function that they stand in.
    together = tree is not None and syntax.scope_at(tree, line) is syntax.scope_at(tree, last)
    for node in syntax.walk(tree) if tree is not None and together else ():
        parts = _loops(node)
        if not parts or not _spans(node, last) or _spans(node, line):
            continue
        own = [one for one in parts if root in syntax.names_in(one.target)]
        if own:
            return f"for {ast.unparse(own[0].target)} in {ast.unparse(own[0].iter)}:"
    return ""


def _loops(node: ast.AST) -> list[ast.For | ast.comprehension]:
    if isinstance(node, ast.For):
        return [node]
    return list(node.generators) if isinstance(node, syntax.COMPREHENSIONS) else []


def _spans(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", None) or 0)
