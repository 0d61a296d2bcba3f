"""A learning rate that the text divides by the number of batches that it adds up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.own_numbers import counts_in, is_of_value

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_RATE = re.compile(r"(?<![a-z])(lr|rate|eta|alpha|step_?size)(?![a-z])|learning", re.IGNORECASE)
_LONGEST = 60


def divided_rate(run: Run, cell: int | None, number: int) -> str:
    """The text that divides a rate by a number, or by what a cell counts with: `0.1 / k`; empty if there is none."""
    kinds = {one.optimizer_kind for one in run.trace.steps}
    counted = counts_in(run, cell)
    for past in (run, *reversed(run.earlier)):
        tree = syntax.parse(past.cell.source)
        for value in _rates(tree, kinds) if tree is not None else ():
            for node in syntax.walk(value):
                by = _divisor(node)
                if by is not None and (ast.unparse(by).rpartition(".")[2] in counted or is_of_value(run, by, number)):
                    text = ast.unparse(node)
                    return text if len(text) <= _LONGEST else "the divided rate"
    return ""


def _rates(tree: ast.Module, kinds: set[str]) -> Iterator[ast.AST]:
    """What is given to variables, arguments and entries that are called a rate, and to optimizers by position."""
    for node in syntax.walk(tree):
        if isinstance(node, ast.keyword):
            yield from (node.value,) if _RATE.search(node.arg or "") else ()
        elif isinstance(node, ast.Assign):
            yield from (node.value,) if any(_RATE.search(ast.unparse(one)) for one in node.targets) else ()
        elif isinstance(node, ast.AugAssign):
            yield from (node,) if _RATE.search(ast.unparse(node.target)) else ()
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in kinds:
            yield from node.args[1:2]
        elif isinstance(node, ast.Dict):
            yield from (one for key, one in zip(node.keys, node.values, strict=True) if _is_rate(key))


def _is_rate(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and type(key.value) is str and _RATE.search(key.value) is not None


def _divisor(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node.right
    return node.value if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) else None
