"""What the test in front of a step divides its counter by: `self.every` of `if i % self.every == 0:`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import WindowFact
    from torch_inspector.facts.run import Run


def modulus(run: Run, window: WindowFact) -> str:
    """The name for the size of a window that the function around the backward call knows; the number if it is unsure.

    Empty where the test of the step tells nothing of it.
    """
    parts = [one for test in tests_of(run, window) for one in syntax.walk(test.test) if isinstance(one, ast.BinOp)]
    names = {ast.unparse(one.right) for one in parts if isinstance(one.op, ast.Mod) and _is_name(one.right)}
    return names.pop() if len(names) == 1 else str(window.usual) if names else ""


def tests_of(run: Run, window: WindowFact) -> list[ast.If]:
    """The tests in front of a step, and not in front of the backward calls of the same function."""
    step, call = window.place, window.backward_at
    tree = syntax.parse(run.source_of(step.cell))
    if tree is None or step.scope != call.scope or step.line is None:
        return []
    tests = [one for one in syntax.walk(tree) if isinstance(one, ast.If) and syntax.spans(one, step.line)]
    return [one for one in tests if not syntax.spans(one, call.line or 0)]


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_name(node.value))
