"""A name that a comprehension gives out, what it gives it out from, and how that is changed."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax

_PLAIN = (ast.Name, ast.Attribute)


class Looped(NamedTuple):
    """Where the values of such a name come from."""

    whole: str
    """The container as written: `self.anchors`; empty where that is not one plain name."""
    keyed: bool
    """True for a dictionary whose values these are."""
    text: str
    """The comprehension."""

    def changed(self, made: str) -> str:
        """The container with a call on each value: `anchors = [one.to(device) for one in anchors]`."""
        if self.keyed:
            return f"{self.whole} = {{key: one{made} for key, one in {self.whole}.items()}}"
        return f"{self.whole} = [one{made} for one in {self.whole}]"


def looped(source: str, line: int | None, name: str) -> Looped | None:
    """The innermost comprehension around a line that gives out a name; None if none does."""
    tree = syntax.parse(source)
    nodes = [node for node in syntax.walk(tree) if isinstance(node, syntax.COMPREHENSIONS)] if tree is not None else []
    around = [node for node in nodes if line is not None and node.lineno <= line <= (node.end_lineno or node.lineno)]
    for node in reversed(around):
        for one in node.generators:
            if any(isinstance(part, ast.Name) and part.id == name for part in syntax.walk(one.target)):
                whole, keyed = _source(one.target, one.iter, name)
                return Looped(whole, keyed, ast.unparse(node))
    return None


def with_call(text: str, name: str, made: str) -> str:
    """A comprehension with a call on a name: `[net(x.to(device)) for x in rows]`."""
    node = ast.parse(text, mode="eval")
    return ast.unparse(_Called(name, made).visit(node))


class _Called(ast.NodeTransformer):
    def __init__(self, name: str, made: str) -> None:
        self._name, self._made = name, made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self._name or not isinstance(node.ctx, ast.Load):
            return node
        return ast.parse(f"{self._name}{self._made}", mode="eval").body


def _source(target: ast.expr, given: ast.expr, name: str) -> tuple[str, bool]:
    """The container whose values the name is given, and whether it is a dictionary."""
    if isinstance(target, ast.Name):
        whole = _of_dictionary(given, "values")
        return (whole, True) if whole else (ast.unparse(given), False) if isinstance(given, _PLAIN) else ("", False)
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if len(parts) == 2 and isinstance(parts[1], ast.Name) and parts[1].id == name:  # noqa: PLR2004
        whole = _of_dictionary(given, "items")
        if whole:
            return whole, True
    for part, one in _pairs(parts, given):
        if any(isinstance(inner, ast.Name) and inner.id == name for inner in syntax.walk(part)):
            return _source(part, one, name)
    return "", False


def _of_dictionary(given: ast.expr, method: str) -> str:
    called = given.func if isinstance(given, ast.Call) and not given.args else None
    own = isinstance(called, ast.Attribute) and called.attr == method and isinstance(called.value, _PLAIN)
    return ast.unparse(called.value) if isinstance(called, ast.Attribute) and own else ""


def _pairs(parts: list[ast.expr], given: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The parts of a target with what `zip` or `enumerate` gives each of them from."""
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Name):
        return []
    if given.func.id == "zip":
        return list(zip(parts, given.args, strict=False))
    return list(zip(parts[1:], given.args, strict=False)) if given.func.id == "enumerate" else []
