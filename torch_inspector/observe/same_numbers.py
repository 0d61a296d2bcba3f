"""What an expression shows number by number: the image of `torch.from_numpy(image).float().div(255)`."""

from __future__ import annotations

import ast

from torch_inspector.observe.shapes import SAME_SHAPE
from torch_inspector.observe.source import dotted

_MADE = frozenset(["torch.from_numpy", "torch.as_tensor", "torch.tensor", "torch.asarray", "torch.FloatTensor"])
_WITH_NUMBER = frozenset(["div", "mul", "sub", "add", "div_", "mul_", "sub_", "add_", "astype"])
_DEPTH = 8


def shown_by(expression: ast.expr) -> tuple[ast.expr, bool]:
    """What is behind conversions and calculations with one number, and whether a tensor was made of it on the way."""
    node, made = expression, False
    for _ in range(_DEPTH):
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            node = node.left
        elif isinstance(node, ast.Call) and dotted(node.func) in _MADE and node.args:
            node, made = node.args[0], True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _keeps_places(node, node.func):
            node = node.func.value
        else:
            break
    return node, made


def _keeps_places(call: ast.Call, function: ast.Attribute) -> bool:
    if function.attr in _WITH_NUMBER:
        return function.attr == "astype" or all(isinstance(one, ast.Constant) for one in call.args)
    return function.attr in SAME_SHAPE and dotted(function.value) not in {"torch", "np", "F"}
