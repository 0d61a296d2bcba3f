"""Which expressions of a function are arrays that were made of its tensors, and which are plain numbers."""

from __future__ import annotations

import ast

ARRAY, NUMBER = "array", "number"
NUMPY = ("np", "numpy")
# Arrays that go together into the first argument.
LISTED = frozenset(["concatenate", "hstack", "stack", "vstack"])
_NUMBERS = frozenset(["len", "int", "float"])
_CONSTANTS = frozenset(["pi", "e", "inf"])
# Functions that make arrays of plain numbers.
_MAKERS = frozenset(
    ["arange", "array", "asarray", "empty", "eye", "full", "identity", "linspace", "logspace", "ones", "zeros"]
)


def kind_of(node: ast.AST, known: dict[str, str]) -> str:
    """What an expression is; empty where that is not known.

    Args:
        node: The expression.
        known: What the names are, as far as they were given a value above.
    """
    if isinstance(node, (ast.Constant, ast.Name)):
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        return NUMBER if number else known.get(getattr(node, "id", ""), "")
    if isinstance(node, ast.UnaryOp):
        return kind_of(node.operand, known)
    if isinstance(node, (ast.BinOp, ast.Compare)):
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        return _together([kind_of(side, known) for side in sides])
    if isinstance(node, ast.Subscript):
        sizes = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return NUMBER if sizes and isinstance(node.slice, (ast.Constant, ast.UnaryOp)) else _of(node.value, known)
    if isinstance(node, ast.Attribute):
        return NUMBER if of_numpy(node) in _CONSTANTS else _of(node.value, known) if node.attr == "T" else ""
    return _of_call(node, known) if isinstance(node, ast.Call) else ""


def of_numpy(node: ast.expr) -> str:
    """`exp` of `np.exp`; empty for anything else."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in NUMPY
    return node.attr if own and isinstance(node, ast.Attribute) else ""


def is_abs(call: ast.Call) -> bool:
    """True for `abs(x)`, which takes arrays and tensors alike."""
    return isinstance(call.func, ast.Name) and call.func.id == "abs" and len(call.args) == 1


def _together(kinds: list[str]) -> str:
    return ARRAY if ARRAY in kinds else NUMBER if set(kinds) == {NUMBER} else ""


def _of(node: ast.expr, known: dict[str, str]) -> str:
    return ARRAY if kind_of(node, known) == ARRAY else ""


def _of_call(call: ast.Call, known: dict[str, str]) -> str:
    if isinstance(call.func, ast.Name):
        return kind_of(call.args[0], known) if is_abs(call) else NUMBER if call.func.id in _NUMBERS else ""
    name = of_numpy(call.func)
    if name:
        first = call.args[1:2] if name == "einsum" else call.args[:1]
        listed = name in LISTED and isinstance(first[0], (ast.List, ast.Tuple)) if first else False
        parts = first[0].elts if listed and isinstance(first[0], (ast.List, ast.Tuple)) else first
        kinds = {kind_of(part, known) for part in parts}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return "" if name in _MAKERS and kind == NUMBER else kind
    if not isinstance(call.func, ast.Attribute):
        return ""
    if call.func.attr == "numpy" and not call.args:
        return ARRAY
    sizes = call.func.attr == "size" and len(call.args) == 1
    return NUMBER if sizes else _of(call.func.value, known)
