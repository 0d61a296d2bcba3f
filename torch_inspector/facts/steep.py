"""Roots and spreads whose slope at zero is infinite, where the text adds nothing to what they are taken of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.sole import Written, called, operand, written

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_ROOTS = frozenset(["sqrt", "std"])
_HALF = 0.5
# What keeps a number away from zero.
_FLOORS = frozenset(["clamp", "clamp_min", "clamp_", "clip", "maximum", "where"])
# Spaces of functions, and names that stand for a space of numbers rather than a tensor.
_SPACE = frozenset(["torch"])


def steep_roots(run: Run) -> list[Written]:
    """Those of the cell and of functions of earlier ones, if all are of one kind; else none."""
    found = written(run, _is_steep)
    kinds = {called(ast.parse(one.text, mode="eval").body) for one in found}
    return found if len(kinds) == 1 else []


def with_more(run: Run, roots: list[Written]) -> str:
    """The statement of some roots with a small number added to what they are taken of; of one where it is long."""
    first = roots[0]
    statement = in_statement(run, first.place, first.text, _moved(first.text))
    if statement == _moved(first.text):
        return f"{statement}  # in place of {first.text}"
    for one in {other.text: other for other in roots[1:] if other.place == first.place}.values():
        statement = statement.replace(one.text, _moved(one.text))
    return statement


def _moved(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp):
        new = f"({ast.unparse(node.left)} + 1e-12) ** 0.5"
    elif called(node) == "std":
        new = f"({text.replace('.std(', '.var(', 1)} + 1e-12).sqrt()"
    else:
        new = f"({operand(text)} + 1e-12).sqrt()"
    return ast.unparse(ast.parse(new))


def _is_steep(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        half = isinstance(node.right, ast.Constant) and node.right.value == _HALF
        return half and _is_of_tensors(node.left) and not _is_kept(node.left)
    method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not isinstance(node, ast.Call) or not method or called(node) not in _ROOTS:
        return False
    of_torch = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    of_torch = of_torch and node.func.value.id in _SPACE  # type: ignore[attr-defined]
    given = (node.args[0] if node.args else None) if of_torch else node.func.value  # type: ignore[attr-defined]
    return given is not None and not _is_kept(given) and not (called(node) == "std" and of_torch)


def _is_of_tensors(node: ast.expr) -> bool:
    """True for `d.pow(2).sum(1)`; a plain name under `** 0.5` is as often a number of channels."""
    return any(isinstance(one, ast.Call) and called(one) in {"sum", "mean", "var"} for one in syntax.walk(node))


def _is_kept(node: ast.expr) -> bool:
    """True where a number is added or a bound is set: `d + 1e-8`, `d.clamp(min=0)`; and for plain numbers."""
    if isinstance(node, ast.Constant):
        return True
    parts = list(syntax.walk(node))
    added = (one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add))
    return any(called(one) in _FLOORS for one in parts) or any(True for _ in added)
