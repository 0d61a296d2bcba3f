"""What a failing expression was given in one place: as an index, or as one side of a product."""

from __future__ import annotations

import ast
import re

from torch_inspector.facts import syntax
from torch_inspector.facts.receiver import receiver

_TORCH = ("torch", "F", "nn.functional", "torch.nn.functional")
# Place of the index among all operands; the input and the dimension stand before it in most.
_PLACES = {"one_hot": 0, "take": 1, "take_along_dim": 1, "embedding": 0, "embedding_bag": 0}
_USUAL = 2
# torch says "indices" of what an embedding is given, whatever the expression around it is.
_OF_EMBEDDING = re.compile(r"argument #\d+ '(indices|offsets)' to have one of the following scalar types")
_SIDES = ("mm", "matmul", "bmm", "mv", "dot", "vdot", "inner")
_BOTH = 2


def is_of_embedding(message: str) -> bool:
    """True for the numbers of rows that an embedding was given."""
    return _OF_EMBEDDING.search(message) is not None


def index_in(expression: str, message: str) -> ast.expr | None:
    """The part of an expression that is used as an index; None where the text does not tell."""
    node = syntax.expression(expression)
    if isinstance(node, ast.Subscript):
        return node.slice
    if not isinstance(node, ast.Call):
        return None
    named = [one.value for one in node.keywords if one.arg in ("index", "indices", "input")]
    if is_of_embedding(message):
        return next(iter(node.args[ast.unparse(node.func) == "torch.embedding" :] or named), None)
    if not isinstance(node.func, ast.Attribute):
        return None
    # Of a method the first operand stands before it.
    inputs = [] if ast.unparse(node.func.value) in _TORCH else [node.func.value]
    place = _PLACES.get(node.func.attr.rstrip("_"), _USUAL)
    return next(iter(named or [*inputs, *node.args][place:]), None)


def sides_of(expression: str) -> list[ast.expr]:
    """Both operands of a product of matrices; none for any other expression."""
    node = syntax.expression(expression)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _SIDES:
        return []
    sides = [*([] if ast.unparse(node.func.value) in _TORCH else [node.func.value]), *node.args]
    return sides if len(sides) == _BOTH else []


def with_call(expression: str, part: ast.expr, call: str) -> str:
    """The expression with a call behind one part of it: `table(rows.long())`."""
    node, own = syntax.expression(expression), ast.unparse(part)
    return ast.unparse(_With(own, ast.parse(f"{receiver(own)}{call}", mode="eval").body).visit(_again(node)))


def _again(node: ast.expr | None) -> ast.AST:
    return ast.parse(ast.unparse(node), mode="eval").body if node is not None else ast.Constant("")


class _With(ast.NodeTransformer):
    """Puts another expression in the place of the first that reads so."""

    def __init__(self, text: str, new: ast.expr) -> None:
        self._text, self._new, self._done = text, new, False

    def visit(self, node: ast.AST) -> ast.AST:
        if not self._done and isinstance(node, ast.expr) and ast.unparse(node) == self._text:
            self._done = True
            return self._new
        return self.generic_visit(node)
