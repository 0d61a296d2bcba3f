"""Statements that go through NumPy, as they read where they stay in PyTorch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import syntax

# Functions that torch has with the same meaning, as far as it takes tensors.
_SAME = frozenset(
    ["abs", "amax", "amin", "argmax", "argmin", "argsort", "clip", "cos", "cumprod", "cumsum", "diff", "einsum", "exp",
     "expm1", "floor", "hstack", "log", "log10", "log1p", "log2", "matmul", "mean", "outer", "prod", "sign", "sin",
     "sqrt", "square", "stack", "sum", "tan", "tanh", "vstack", "where", "zeros_like", "ones_like"]
)  # fmt: skip
_OTHER = {"absolute": "abs", "concatenate": "cat", "power": "pow", "fabs": "abs"}
_NUMPY = ("np", "numpy")
_USED = re.compile(r"\b(np|numpy)\.|\.(numpy|astype|tolist)\(")
# More lines are no help as a correction.
_MOST = 6


def in_torch(source: str, line: int | None) -> str:
    """The statements around a line that use NumPy, without it; empty where it cannot be said of each of them.

    Args:
        source: The text of a cell.
        line: Where the history is lost.
    """
    tree = syntax.parse(source)
    if tree is None or line is None:
        return ""
    made = list(_restated_all(_statements(tree, line)))
    changed = [(number, new) for number, old, new in made if old != new]
    if not any(number == line for number, _ in changed) or len(changed) > _MOST or any(_stays(new) for *_, new in made):
        return ""
    return "\n".join(f"{new}  # line {number}" for number, new in changed)


def _statements(tree: ast.Module, line: int) -> list[ast.stmt]:
    """Assignments, results and expressions of the function around a line, or of the cell outside functions."""
    functions = [one for one in syntax.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around = [one for one in functions if one.lineno <= line <= (one.end_lineno or one.lineno)]
    scope = max(around, key=lambda one: one.lineno, default=tree)
    kinds = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
    found = [one for one in syntax.own_expressions(scope) if isinstance(one, kinds)]
    return sorted(found, key=lambda one: one.lineno)


def _restated_all(statements: list[ast.stmt]) -> Iterator[tuple[int, str, str]]:
    """Line, old and new text of each; what is made of what is a tensor now is no number either."""
    tensors = set[str]()
    for one in statements:
        text = ast.unparse(one)
        fresh = ast.parse(f"def f():\n    {text}").body[0].body[0]  # type: ignore[attr-defined]
        read = {node.id for node in syntax.walk(one) if isinstance(node, ast.Name)}
        shown = isinstance(one, ast.Expr)
        new = ast.unparse(_Staying(numbers=shown or not read & tensors).visit(fresh))
        if new != text and isinstance(one, ast.Assign):
            tensors |= {target.id for target in one.targets if isinstance(target, ast.Name)}
        yield one.lineno, text, new


def _stays(text: str) -> bool:
    """True if a statement uses NumPy still, or a method of its arrays."""
    return _USED.search(text) is not None


class _Staying(ast.NodeTransformer):
    """Leaves out the ways to NumPy and back, and takes functions of torch for its own."""

    def __init__(self, *, numbers: bool) -> None:
        self._numbers = numbers
        """True if `float(x)` and `x.item()` may stay as they are."""

    def visit_Call(self, node: ast.Call) -> Any:
        """A call without NumPy."""
        function = node.func
        inner = None if self._numbers else _made_plain(node)
        if inner is not None:
            return self.visit(inner)
        if not isinstance(function, ast.Attribute):
            return self.generic_visit(node)
        if function.attr == "numpy" and not node.args:
            return self.visit(_attached(function.value))
        if function.attr == "requires_grad_" and _is_from_numpy(function.value):
            return self.visit(function.value)
        if _is_from_numpy(node):
            return self.visit(node.args[0])
        name = _OTHER.get(function.attr, function.attr)
        if isinstance(function.value, ast.Name) and function.value.id in _NUMPY and name in (*_SAME, *_OTHER.values()):
            function = ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())
        return self.generic_visit(ast.Call(function, node.args, node.keywords))


def _made_plain(node: ast.Call) -> ast.expr | None:
    """`x` of `float(x)`, `x.item()` and `torch.tensor(x)`."""
    name = ast.unparse(node.func)
    if name in ("float", "torch.tensor", "np.float32", "torch.FloatTensor") and len(node.args) == 1:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "item" else None


def _attached(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("detach", "cpu"):
        node = node.func.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node


def _is_from_numpy(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
    return isinstance(called, ast.Attribute) and called.attr in ("from_numpy", "as_tensor")
