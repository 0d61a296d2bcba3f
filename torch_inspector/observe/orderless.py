"""Views of which the order tells nothing: of values that were just drawn or are all alike, or reduced to one number."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_FILLED = frozenset(["rand", "randn", "randint", "zeros", "ones", "empty", "full"])
_MADE = frozenset([*_FILLED, *(f"{one}_like" for one in _FILLED), "random", "standard_normal"])
_LIBRARIES = frozenset(["torch", "np", "numpy", "np.random", "numpy.random"])
_PASSES = frozenset(["Parameter", "as_tensor", "from_numpy", "tensor"])
# They touch each number alone.
_EACH = frozenset(
    ["abs", "square", "sqrt", "exp", "log", "pow", "float", "double", "half", "to", "cpu", "detach", "clone"]
)
_KEEPS = _EACH | {"view", "reshape"}
_REDUCES = frozenset(
    ["mean", "sum", "norm", "std", "var", "max", "min", "amax", "amin", "any", "all", "prod", "median"]
)
_ASKED = ("shape", "size", "ndim")


def asks_shape(node: ast.AST, statement: ast.stmt) -> bool:
    """True for `x.view(3, 2).shape`: nobody uses the result."""
    asked = (one.value for one in syntax.walk(statement) if isinstance(one, ast.Attribute) and one.attr in _ASKED)
    return any(one is node for one in asked)


def is_drawn(node: ast.expr) -> bool:
    """True for `torch.rand(2, 54, 5) > 0.5` and `nn.Parameter(torch.zeros(1, 54, 5))`: no number has its own place."""
    if isinstance(node, ast.Compare):
        return _is_of_drawn(node.left, *node.comparators)
    if isinstance(node, ast.BinOp):
        return _is_of_drawn(node.left, node.right)
    if isinstance(node, ast.UnaryOp):
        return is_drawn(node.operand)
    return isinstance(node, ast.Call) and _draws(node)


def _is_of_drawn(*sides: ast.expr) -> bool:
    return any(map(is_drawn, sides)) and all(is_drawn(one) or _is_number(one) for one in sides)


def _draws(call: ast.Call) -> bool:
    """True for a call that draws, or passes on what was drawn; of a view of it nothing has a place, too."""
    owner, _, name = dotted(call.func).rpartition(".")
    if name in _MADE and owner in _LIBRARIES:
        return True
    if name in _PASSES and call.args:
        return is_drawn(call.args[0])
    return isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS and is_drawn(call.func.value)


def is_reduced(tree: ast.AST, node: ast.AST) -> bool:
    """True for `x.view(b, c, h, w).abs().mean()`: the same number comes of any order."""
    parents, here = syntax.parents(tree), node
    while (parent := parents.get(id(here))) is not None:
        if isinstance(parent, ast.BinOp) and all(one is here or _is_number(one) for one in (parent.left, parent.right)):
            here = parent
            continue
        call = parents.get(id(parent)) if isinstance(parent, ast.Attribute) else parent
        if not isinstance(call, ast.Call) or not _is_called_on(call, here):
            return False
        name = syntax.last_part(call.func)
        if name not in _EACH:
            return name in _REDUCES and len(call.args) == _given_first(call, here) and not call.keywords
        here = call
    return False


def _is_called_on(call: ast.Call, node: ast.AST) -> bool:
    """True for `node.abs()`, `torch.abs(node)` and `node.pow(2)`."""
    first = _given_first(call, node)
    others = call.args[first:] if syntax.last_part(call.func) != "to" else []
    return (first == 1 or getattr(call.func, "value", None) is node) and all(map(_is_number, others))


def _given_first(call: ast.Call, node: ast.AST) -> int:
    return int(call.args[:1] == [node] and dotted(call.func).startswith("torch."))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_number(node.operand))
