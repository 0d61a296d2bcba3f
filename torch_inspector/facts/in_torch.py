"""Statements that go through NumPy, as they read where they stay in PyTorch."""

from __future__ import annotations

import ast
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.facts.arrays import ARRAY, LISTED, NUMBER, NUMPY, is_abs, kind_of, of_numpy

# Functions that torch has with the same meaning, as far as it takes tensors.
_SAME = frozenset(
    ["abs", "amax", "amin", "argmax", "argmin", "argsort", "clip", "cos", "cumprod", "cumsum", "diff", "einsum", "exp",
     "expm1", "floor", "hstack", "log", "log10", "log1p", "log2", "matmul", "mean", "outer", "prod", "sign", "sin",
     "sqrt", "square", "stack", "sum", "tan", "tanh", "vstack", "where", "zeros_like", "ones_like"]
)  # fmt: skip
_OTHER = {"absolute": "abs", "concatenate": "cat", "power": "pow", "fabs": "abs"}
# Without an axis, NumPy goes over all numbers in a row; torch wants one.
_ALONG = ("cumprod", "cumsum")
_KEYWORDS = ("axis", "keepdims")
# Makers of whole numbers and of ones, which come out alike.
_MAKERS = ("arange", "eye")
# Methods that tensors have with the same meaning, and what is called of what is one already.
_METHODS = frozenset(
    ["argmax", "argmin", "argsort", "backward", "clip", "cumprod", "cumsum", "flatten", "item", "mean", "prod", "ravel",
     "reshape", "squeeze", "sum"]
)  # fmt: skip
_MADE = ("from_numpy", "as_tensor", "tensor")
_PLAIN = ("float", "np.float32", "torch.FloatTensor")
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
    staying = _Staying()
    made = [(one.lineno, *_restated(one, staying)) for one in _statements(tree, line)]
    changed = [(number, new) for number, old, new in made if old != new]
    if not any(number == line for number, _ in changed) or len(changed) > _MOST or staying.refused:
        return ""
    return "\n".join(f"{new}  # line {number}" for number, new in changed)


def _statements(tree: ast.Module, line: int) -> list[ast.stmt]:
    """Assignments, results and expressions of the function around a line, or of the cell outside functions."""
    scope = syntax.scope_at(tree, line)
    kinds = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
    found = [one for one in syntax.own_expressions(scope) if isinstance(one, kinds)]
    return sorted(found, key=lambda one: one.lineno)


def _restated(statement: ast.stmt, staying: _Staying) -> tuple[str, str]:
    """A statement as it is and as it reads then; one that would say `c = c` as a comment."""
    text, staying.shown = ast.unparse(statement), isinstance(statement, ast.Expr)
    new = ast.unparse(staying.visit(ast.parse(f"def f():\n    {text}").body[0].body[0]))  # type: ignore[attr-defined]
    staying.note(statement)
    target, _, value = new.partition(" = ")
    return text, f"# {text}" if target == value and text != new else new


class _Staying(ast.NodeTransformer):
    """Leaves out the ways to NumPy and back, and takes functions of torch for its own, from the first line on."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.refused = self.shown = False
        self.beside = ""
        """Name of the array on the other side of an operator."""
        """`shown` is true in a statement that prints: `float(x)` and `x.item()` stay there as they are."""

    def note(self, statement: ast.stmt) -> None:
        """Remembers what a name is from here on."""
        if not isinstance(statement, (ast.Assign, ast.AugAssign)):
            return
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        plain = self._made_plain(statement.value)
        kind = ARRAY if plain is not None else kind_of(statement.value, self.known)
        if isinstance(targets[0], ast.Name) and len(targets) == 1:
            own = self.known.get(targets[0].id) if isinstance(statement, ast.AugAssign) else ""
            self.known[targets[0].id] = ARRAY if own == ARRAY else kind
        elif kind_of(targets[0], self.known) != ARRAY:
            self.refused = self.refused or self._holds_array(statement.value)

    def visit(self, node: ast.AST) -> Any:
        """A node without NumPy; what is done with plain numbers stays."""
        inner = None if self.shown else self._made_plain(node)
        if inner is not None:
            return self.visit(inner)
        return node if kind_of(node, self.known) == NUMBER else super().visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An operator, with what is made for one side on the device of the other."""
        arrays = [one for side in (node.left, node.right) if self._is_array(side) for one in syntax.walk(side)]
        names = [one.id for one in arrays if isinstance(one, ast.Name) and self._is_array(one)]
        outer, self.beside = self.beside, next(iter(names), "")
        made = self.generic_visit(node)
        self.beside = outer
        return made

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Gives up where NumPy is used in a way that is not known."""
        self.refused = self.refused or node.id in NUMPY
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """A call without NumPy."""
        function = node.func
        if not isinstance(function, ast.Attribute):
            foreign = not is_abs(node) and ast.unparse(function) != "print"
            self.refused = self.refused or (foreign and any(map(self._is_array, node.args)))
            return self.generic_visit(node)
        away = function.attr == "numpy" and not node.args
        if away or (function.attr == "requires_grad_" and self._is_made(function.value)):
            return self.visit(_attached(function.value) if away else function.value)
        if self._is_made(node):
            return self._as_it_is(node)
        if of_numpy(function):
            return self._of_torch(node, function.attr)
        if self._is_array(function.value):
            return self._method(node, function)
        self.refused = self.refused or any(map(self._holds_array, node.args))
        return self.generic_visit(node)

    def _of_torch(self, node: ast.Call, name: str) -> Any:
        """The same function of torch, of what was an array before."""
        if name in _MAKERS and self.beside and not node.keywords:
            on = ast.keyword("device", ast.parse(f"{self.beside}.device", mode="eval").body)
            return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load()), node.args, [on])
        given = [one for one in node.args if not isinstance(one, ast.Constant)]
        given = list(getattr(given[0], "elts", given)) if name in LISTED and given else given
        plain = all(kind_of(one, self.known) for one in given) and all(k.arg in _KEYWORDS for k in node.keywords)
        along = name not in _ALONG or len(node.args) > 1 or node.keywords
        own = _OTHER.get(name, name)
        fits = own in _SAME or name in _OTHER
        self.refused = self.refused or not (fits and along and plain and self._is_array(node))
        function = ast.Attribute(ast.Name("torch", ast.Load()), own, ast.Load())
        return ast.Call(function, [self.visit(one) for one in node.args], node.keywords)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Any:
        alone = function.attr in _ALONG and not node.args and not node.keywords
        whole = function.attr in ("max", "min") and not node.args and not node.keywords
        copied = function.attr == "copy"
        self.refused = self.refused or alone or not (function.attr in _METHODS or whole or copied)
        if copied:
            return ast.Call(ast.Attribute(self.visit(function.value), "clone", ast.Load()), [], [])
        return self.generic_visit(node)

    def _as_it_is(self, node: ast.Call) -> Any:
        """What was made a tensor again: it is one; its type of numbers or device may be another."""
        value = self.visit(node.args[0])
        moved = [one for one in node.keywords if one.arg != "requires_grad"]
        return ast.Call(ast.Attribute(value, "to", ast.Load()), [], moved) if moved else value

    def _made_plain(self, node: ast.AST) -> ast.expr | None:
        """`x` of `float(x)` and `x.item()`, where that is an array: it is a tensor then."""
        if not isinstance(node, ast.Call):
            return None
        by_name = len(node.args) == 1 and ast.unparse(node.func) in _PLAIN
        by_method = isinstance(node.func, ast.Attribute) and node.func.attr == "item"
        inner = node.args[0] if by_name else node.func.value if by_method else None  # type: ignore[attr-defined]
        return inner if inner is not None and self._holds_array(inner) else None

    def _is_made(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
        again = isinstance(called, ast.Attribute) and called.attr in _MADE
        return again and isinstance(node, ast.Call) and self._is_array(node.args[0])

    def _is_array(self, node: ast.expr) -> bool:
        return kind_of(node, self.known) == ARRAY

    def _holds_array(self, node: ast.expr) -> bool:
        return any(kind_of(one, self.known) == ARRAY for one in ast.walk(node))


def _attached(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu()`."""
    while (inner := syntax.attached(node) or _moved(node)) is not None:
        node = inner
    return node


def _moved(node: ast.expr) -> ast.expr | None:
    """`x` of `x.cpu()`."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) and function.attr == "cpu" else None
