"""A value that an advantage is measured against, and that only its own loss is to train."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_LONGEST = 120


class _Difference(NamedTuple):
    """`returns - values`, and the statement that it stands in."""

    node: ast.BinOp
    statement: ast.Assign


def left_out(run: Run, place: Place, policy: str, value: str) -> str:
    """The statement with `values.detach()` in it; empty unless the text shows that `values` is a baseline.

    It does if one loss weighs logarithms of probabilities by `returns - values`, and the other one compares the two.

    Args:
        run: Its cells are read.
        place: Where one of the two losses is differentiated.
        policy: Name of the loss that may weigh.
        value: Name of the loss that may compare.
    """
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None:
        return ""
    assigns = [one for one in syntax.walk(syntax.scope_at(tree, place.line or 0)) if _is_assignment(one)]
    weighed, compared = _given_to(assigns, policy), _given_to(assigns, value)
    for one in weighed:
        for difference in _differences(one, assigns):
            sides = (ast.unparse(difference.node.left), ast.unparse(difference.node.right))
            if any(all(_has(other.value, side) for side in sides) for other in compared):
                return _mended(difference, policy)
    return ""


def _is_assignment(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


def _given_to(assigns: list[ast.AST], name: str) -> list[ast.Assign]:
    return [one for one in assigns if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name]


def _differences(loss: ast.Assign, assigns: list[ast.AST]) -> Iterator[_Difference]:
    """Differences by which a loss weighs logarithms: written in it, or given a name before."""
    products = [one for one in syntax.walk(loss.value) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
    for product in products:
        for weight, other in ((product.left, product.right), (product.right, product.left)):
            if not _is_logarithm(other, assigns):
                continue
            given = _given_to(assigns, weight.id) if isinstance(weight, ast.Name) else []
            for part, statement in ((weight, loss), *((one.value, one) for one in given)):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
                    yield _Difference(part, statement)


def _is_logarithm(node: ast.expr, assigns: list[ast.AST]) -> bool:
    """True where the text, or that of the statement that gave the name, speaks of a logarithm."""
    names = {one.id for one in syntax.walk(node) if isinstance(one, ast.Name)}
    texts = [ast.unparse(node), *(ast.unparse(one.value) for name in names for one in _given_to(assigns, name))]
    return any("log" in text.lower() for text in texts)


def _has(node: ast.AST, text: str) -> bool:
    return any(isinstance(one, ast.expr) and ast.unparse(one) == text for one in syntax.walk(node))


def _mended(one: _Difference, policy: str) -> str:
    right = one.node.right
    if not isinstance(right, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) or ".detach()" in ast.unparse(right):
        return ""
    old, new = ast.unparse(one.node), f"{ast.unparse(one.node.left)} - {ast.unparse(right)}.detach()"
    text = ast.unparse(one.statement).replace(old, new, 1)
    fits = len(text) <= _LONGEST and new in text
    return f"{text}  # line {one.statement.lineno}: a baseline, which {policy} is not to train" if fits else ""
