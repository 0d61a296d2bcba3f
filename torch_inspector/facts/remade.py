"""Calls that make a new value of a number: `torch.tensor(b.item())` would make one of `b`, too, without its history."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax

_MAKERS = frozenset(["torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.Tensor", "float", "np.array"])


class Made(NamedTuple):
    """A call that makes a value of another."""

    text: str
    by: str
    """`torch.tensor`."""
    given: str
    """What it makes that of."""
    many: bool = False
    """True if it stands in a list: `torch.tensor([b.item()])`."""


def made_around(source: str, line: int | None, text: str) -> Made | None:
    """The outermost such call of a line around an expression; None where the expression stands by itself."""
    tree = syntax.parse(source)
    for node in syntax.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and node.lineno == line and _leads_to(node, text):
            return _made(node)
    return None


def made_again(term: str) -> Made | None:
    """Such a call on a name: `torch.tensor(reg)`."""
    tree = syntax.parse(term)
    for node in syntax.walk(tree) if tree is not None else ():
        made = _made(node) if isinstance(node, ast.Call) else None
        if made is not None and made.given.isidentifier():
            return made
    return None


def _made(node: ast.Call) -> Made | None:
    if ast.unparse(node.func) not in _MAKERS or not node.args:
        return None
    inner = node.args[0]
    many = isinstance(inner, ast.List) and len(inner.elts) == 1
    given = inner.elts[0] if isinstance(inner, ast.List) and many else inner
    return Made(ast.unparse(node), ast.unparse(node.func), ast.unparse(given), many)


def _leads_to(node: ast.expr, text: str) -> bool:
    made = _made(node) if isinstance(node, ast.Call) else None
    if made is None or ast.unparse(node) == text:
        return False
    inner = ast.parse(made.given, mode="eval").body
    return made.given == text or _leads_to(inner, text)
