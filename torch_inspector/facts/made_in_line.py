"""What a failing expression makes itself, by a call, of what meets the named tensors in it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax

# Functions of torch that take `device=`.
_FACTORIES = frozenset(
    ("arange", "zeros", "ones", "full", "empty", "eye", "tensor", "linspace", "rand", "randn", "randint", "randperm")
)
# Arguments that say where the result is, or that fit one device only; None stands for `**options`.
_BOUND = ("device", "generator", "out", "pin_memory", None)
_OF_TENSORS = ("T", "mT", "data")
_SHORT = 30


class Made(NamedTuple):
    """A call in an expression."""

    text: str
    """As it is written, or without its arguments where it is long: `sinusoid(...)`."""
    statement: str
    """The whole statement, with what the call makes moved."""


def made_in(expression: str, statement: str, known: list[str], device: str) -> Made | None:
    """The one operand of an expression that is a call, where the others are known.

    Args:
        expression: The text that failed, without what it is part of.
        statement: The statement around it.
        known: Tensors in it whose device is known.
        device: Where they are, as text.
    """
    node = syntax.expression(expression)
    others = [one for one in _operands(node) if _root(one) not in known and not isinstance(one, ast.Constant)]
    if len(others) != 1 or not isinstance(others[0], ast.Call) or not known:
        return None
    text = ast.unparse(others[0])
    if statement.count(text) != 1:
        return None
    name = ast.unparse(others[0].func)
    return Made(text if len(text) <= _SHORT else f"{name}(...)", statement.replace(text, _moved(others[0], device)))


def _operands(node: ast.AST | None) -> list[ast.expr]:
    """What meets in an operation: both sides, or the arguments of a call, with the elements of a list among them."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return []
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) and _root(node.func.value) != "torch" else []
    given = [one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one] for one in node.args]
    return [*owner, *(one for part in given for one in part)]


def _root(node: ast.expr) -> str:
    """`h` for `h.transpose(1, 2)[0]`, and `self.table` for `self.table[:n]`."""
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS):
        return _root(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _root(node.func.value)
    return ast.unparse(node)


def _moved(call: ast.Call, device: str) -> str:
    text, function = ast.unparse(call), call.func
    factory = isinstance(function, ast.Attribute) and _is_torch(function.value) and function.attr in _FACTORIES
    if factory and not any(keyword.arg in _BOUND for keyword in call.keywords):
        return f"{text[:-1]}, device={device})"
    return f"{text}.to({device})"


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"
