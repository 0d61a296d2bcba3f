"""What the text of a cell gives its variables, and what it divides by there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_DIVIDES = frozenset(["div", "div_", "divide", "divide_", "true_divide", "true_divide_"])
_INVERTS = frozenset(["reciprocal", "reciprocal_", "rsqrt", "rsqrt_"])
_SPACES = frozenset(["torch", "F"])
# Methods by which what they are given goes into their owner.
_TAKES = frozenset(["append", "extend", "insert", "add_", "mul_", "div_", "copy_", "sub_", "reciprocal_"])
_SIZES = frozenset(["shape", "size", "len", "numel", "dim"])


class Giver(NamedTuple):
    """A statement that gives a variable, or a part of it, a value."""

    statement: ast.AST
    target: str
    """As written: `means`, `stats['inv']`."""
    value: ast.expr
    whole: bool
    """True if the value is all that the target is then."""
    looped: frozenset[str]
    """Names that the loop around it gives values."""

    @property
    def line(self) -> int:
        """Where it is."""
        return int(getattr(self.statement, "lineno", 0))

    def divisors(self) -> list[ast.expr]:
        """All that is divided by there."""
        found = [one for node in syntax.walk(self.value) if (one := divisor_of(node)) is not None]
        by = divisor_of(self.statement)
        return found if by is None or by in found else [by, *found]


def givers_in(tree: ast.Module) -> dict[str, list[Giver]]:
    """The statements of a cell by the variable that they give a value, in the order of the text."""
    found: dict[str, list[Giver]] = {}
    inside = _looped(tree)
    for node in sorted(syntax.own_expressions(tree), key=lambda one: getattr(one, "lineno", 0)):
        for target, value, whole in _given(node):
            giver = Giver(node, ast.unparse(target), value, whole, inside.get(id(node), frozenset()))
            found.setdefault(syntax.root_of(target), []).append(giver)
    return found


def divisor_of(node: ast.AST) -> ast.expr | None:
    """`b` of `a / b`, `a /= b`, `torch.div(a, b)`, `a.div(b)` and `b.reciprocal()`."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        by = node.right if isinstance(node, ast.BinOp) else node.value
        return by if isinstance(node.op, ast.Div) else _inverted(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    of_torch = dotted(node.func.value) in _SPACES
    given = [*node.args] if of_torch else [node.func.value, *node.args]
    if node.func.attr in _DIVIDES and len(given) > 1:
        return given[1]
    return given[0] if node.func.attr in _INVERTS and given else None


def _inverted(node: ast.BinOp | ast.AugAssign) -> ast.expr | None:
    """`b` of `b ** -1`."""
    negative = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.UnaryOp)
    return node.left if negative and isinstance(node, ast.BinOp) else None


def names_of_numbers(divisor: ast.expr) -> set[str]:
    """Names in a divisor but for those of which only a size is read."""
    nodes = list(syntax.walk(divisor))
    sizes = [
        one for one in nodes if isinstance(one, (ast.Attribute, ast.Call)) and syntax.last_part(_callee(one)) in _SIZES
    ]
    left_out = {id(inner) for one in sizes for inner in syntax.walk(one)}
    called = {id(inner) for one in nodes if isinstance(one, ast.Call) for inner in _space_of(one)}
    return {one.id for one in nodes if isinstance(one, ast.Name) and id(one) not in left_out | called}


def _callee(node: ast.Attribute | ast.Call) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _space_of(call: ast.Call) -> list[ast.AST]:
    """`math` of `math.sqrt(d)`, and `sqrt` of `sqrt(d)`."""
    root = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    named = isinstance(call.func, ast.Name) or dotted(root) in (*_SPACES, "math", "np")
    return [root] if named else []


def _given(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _parts(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value, True
    elif isinstance(node, ast.AugAssign):
        yield node.target, node.value, False
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from ((target, value, False) for target, value, _ in _parts(node.target, node.iter))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKES:
        yield node.func.value, node, False


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value, True
        return
    same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
    for place, one in enumerate(target.elts):
        if same and isinstance(value, (ast.Tuple, ast.List)):
            yield from _parts(one, value.elts[place])
        else:
            yield from ((part, value, False) for part, _, _ in _parts(one, value))


def _looped(tree: ast.Module) -> dict[int, frozenset[str]]:
    """What is inside of loops, each with the names that the loops around it give values."""
    found: dict[int, frozenset[str]] = {}
    for loop in syntax.own_expressions(tree):
        if isinstance(loop, syntax.LOOPS):
            inner = list(syntax.walk(loop))
            stored = frozenset(one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
            found.update((id(one), found.get(id(one), frozenset()) | stored) for one in inner)
    return found
