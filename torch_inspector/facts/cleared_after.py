"""The statement that clears a gradient behind a step by hand, where the step may stand in a loop of one line."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


def cleared_after(run: Run, place: Place, owner: str) -> str:
    """`p.grad = None`, to stand behind the step; of a loop in one line, that line with it, or a loop of its own.

    Args:
        run: The run whose texts are read.
        place: The line of the step.
        owner: What the step changes.
    """
    clear = f"{owner}.grad = None"
    source = run.source_of(place.cell)
    tree, line = syntax.parse(source), place.line or 0
    here = [one for one in syntax.walk(tree) if getattr(one, "lineno", 0) == line] if tree is not None else []
    loop = next((one for one in here if isinstance(one, syntax.LOOPS)), None)
    if loop is not None and loop.body[0].lineno == line:
        return f"{_code_of(source, loop)}; {clear}  # in place of the line"
    head = next((_head(one, owner) for one in here if isinstance(one, syntax.COMPREHENSIONS)), "")
    if head:
        return f"{head} {clear}  # after each step"
    around = _loop_of_branch(tree, here) if tree is not None else None
    where = f"at the end of each turn of the loop in line {around.lineno}" if around is not None else "after each step"
    return f"{clear}  # {where}"


def _head(node: ast.AST, owner: str) -> str:
    """The loop that goes through what a comprehension does, if that gives the owner its name."""
    tree = syntax.expression(owner)
    names = syntax.names_in(tree) if tree is not None else set()
    for one in getattr(node, "generators", ()):
        if names & syntax.names_in(one.target):
            return f"for {ast.unparse(one.target)} in {ast.unparse(one.iter)}:"
    return ""


def _loop_of_branch(tree: ast.Module, here: list[ast.AST]) -> ast.stmt | None:
    """The loop around a step in the line of an `if`, behind which `else` follows and no statement can stand."""
    parents = syntax.parents(tree)
    node: ast.AST | None = next((one for one in here if isinstance(one, (ast.AugAssign, ast.Assign, ast.Expr))), None)
    branch = False
    while node is not None and not isinstance(node, (*syntax.LOOPS, *syntax.FUNCTIONS)):
        branch = branch or (isinstance(node, ast.If) and bool(node.orelse) and node.body[0].lineno == node.lineno)
        node = parents.get(id(node))
    return node if branch and isinstance(node, syntax.LOOPS) else None


def _code_of(source: str, loop: ast.stmt) -> str:
    """A loop of one line as written, without a comment behind it."""
    return (ast.get_source_segment(source, loop) or ast.unparse(loop)).rstrip("; ")
