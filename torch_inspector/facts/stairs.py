"""Functions without a slope in the text of a detached value: rounding, signs, comparisons, choices of the largest."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.receiver import receiver

_FLAT = ("round", "floor", "ceil", "trunc", "sign", "sgn")
_CHOICES = ("argmax", "argmin", "heaviside", "bucketize", "searchsorted", "one_hot", "multinomial", "bernoulli")
_MODULES = ("torch", "F", "nn.functional", "torch.nn.functional")
_LONG = 24


class Stair(NamedTuple):
    """A value that goes in steps, and the same without the steps."""

    hard: str
    soft: str
    """Empty where it cannot be said from the text."""

    @property
    def passed(self) -> str:
        """The value with the slope of what it is made of."""
        if not self.soft:
            return "let the slope past it: soft + (hard - soft).detach()"
        if len(self.soft) > _LONG:
            return f"soft = {self.soft}\nsoft + ({self.hard} - soft).detach()"
        soft = receiver(self.soft)
        return f"{soft} + ({self.hard} - {soft}).detach()"


def stair_in(text: str, source: str, line: int | None) -> Stair | None:
    """The stair behind `x.detach()` or `x.data`, if `x` or what the line above gives that name is one."""
    node = syntax.expression(text)
    node = node.func if isinstance(node, ast.Call) else node
    if not isinstance(node, ast.Attribute):
        return None
    hard = ast.unparse(node.value)
    value = _given(hard, source, line) if isinstance(node.value, ast.Name) else node.value
    stair = next(filter(_is_stair, _spine(value)), None)
    if value is None or stair is None:
        return None
    return Stair(hard, _softened(value, stair))


def _softened(value: ast.expr, stair: ast.expr) -> str:
    """The text of a value with the argument of `round` in place of the call; empty for a choice."""
    if not isinstance(stair, ast.Call) or _name(stair) not in _FLAT:
        return ""
    argument = _operand(stair)
    inner = ast.unparse(argument) if argument is not None else ""
    if any(map(_is_stair, _spine(argument))) or not inner:
        return ""
    text, whole = ast.unparse(value), ast.unparse(stair)
    wrapped = f"({inner})" if isinstance(argument, (ast.BinOp, ast.UnaryOp)) and isinstance(value, ast.BinOp) else inner
    return text.replace(whole, wrapped) if text.count(whole) == 1 and value is not stair else inner


def _spine(node: ast.expr | None) -> list[ast.expr]:
    """What an expression hands on the values of, the outermost first; masks and indices are not among it."""
    if isinstance(node, ast.Call):
        return [node, *_spine(_operand(node))]
    if isinstance(node, ast.BinOp):
        sides = (_spine(node.left), ast.unparse(node.right)), (_spine(node.right), ast.unparse(node.left))
        return [node, *(one for spine, other in sides for one in spine if _is_pure(one, other))]
    return [node] if node is not None else []


def _is_pure(node: ast.expr, other: str) -> bool:
    """False for a sign or a mask that something else is multiplied with."""
    argument = _operand(node) if isinstance(node, ast.Call) else None
    return argument is not None and not isinstance(node, ast.Compare) and ast.unparse(argument) != other


def _operand(call: ast.Call) -> ast.expr | None:
    """`x` in `x.round()` and in `torch.round(x)`."""
    if not isinstance(call.func, ast.Attribute) or _name(call) == "where":
        return None
    if ast.unparse(call.func.value) in _MODULES:
        return call.args[0] if call.args else None
    return call.func.value


def _name(node: ast.AST) -> str:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.attr.rstrip("_") if named else ""  # type: ignore[attr-defined]


def _is_stair(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) or _name(node) in (*_FLAT, *_CHOICES)


def _given(name: str, source: str, line: int | None) -> ast.expr | None:
    """What the nearest line above gives a name."""
    tree = syntax.parse(source)
    nodes = syntax.walk(tree) if tree is not None and line is not None else ()
    above = [node for node in nodes if isinstance(node, ast.Assign) and node.lineno < (line or 0)]
    named = [node for node in above if any(isinstance(one, ast.Name) and one.id == name for one in node.targets)]
    return max(named, key=lambda node: node.lineno).value if named else None
