"""Whether a method gives the elements of a container out, or only what it makes of them."""

from __future__ import annotations

import ast

from torch_inspector.facts import called, syntax

# Calls that make something else of what they are given; those of torch compute, but for its optimizers.
_MEASURES = frozenset(
    ["len", "sum", "min", "max", "any", "all", "str", "repr", "print", "format", "join", "isinstance"]
)
_COMPUTES = ("torch.", "F.", "nn.functional.", "math.", "np.")
_OPTIMIZERS = "torch.optim."
# Methods of a container whose result has its elements.
_WHOLE = frozenset(["values", "items", "copy", "__iter__"])
_FILLS = frozenset(["append", "extend", "add", "insert", "update"])


class Carried:
    """What in one method stands for the elements of `self.attribute`.

    Args:
        attribute: Name of the container.
    """

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._wholes: set[str] = set()
        self._elements: set[str] = set()

    def leave(self, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """True if the method returns the elements, or yields some."""
        nodes = sorted(syntax.own_expressions(method), key=lambda one: getattr(one, "lineno", 0))
        for node in nodes:
            self._follow(node)
        return any(self._leaves(node) for node in nodes)

    def _leaves(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Yield) and node.value is not None:
            return self._is_part(node.value)
        gives = isinstance(node, (ast.Return, ast.YieldFrom)) and node.value is not None
        return gives and self._is_whole(node.value)  # type: ignore[attr-defined]

    def _follow(self, node: ast.AST) -> None:
        """Notes the names that a statement gives to the elements."""
        if isinstance(node, ast.For) and self._is_whole(node.iter):
            self._elements |= _names(node.target)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._wholes |= {name for one in syntax.targets_of(node) if self._takes(node, one) for name in _names(one)}
        function = node.func if isinstance(node, ast.Call) and any(map(self._is_part, node.args)) else None
        if isinstance(function, ast.Attribute) and function.attr in _FILLS:
            self._wholes |= _names(function.value)

    def _takes(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, target: ast.expr) -> bool:
        """True for `out = [*self.ws]`, `out += [w]` and `out[name] = w`; `x += f(w)` adds a number as a rule."""
        if isinstance(node, ast.AugAssign):
            return not isinstance(node.value, ast.Call) and self._is_whole(node.value)
        return self._is_part(node.value) if isinstance(target, ast.Subscript) else self._is_whole(node.value)

    def _is_part(self, node: ast.AST | None) -> bool:
        """True for an element, a tuple with one, or all of them."""
        if isinstance(node, ast.Name) and node.id in self._elements:
            return True
        return self._is_whole(node.value if isinstance(node, ast.Starred) else node)

    def _is_whole(self, node: ast.AST | None) -> bool:
        """True for the container, and for what has its elements in it."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._is_named(node)
        if isinstance(node, syntax.COMPREHENSIONS):
            return self._is_comprehended(node)
        if isinstance(node, ast.Call):
            return self._is_passed(node)
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and self._is_whole(node.value)
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Add) and (self._is_whole(node.left) or self._is_whole(node.right))
        return any(map(self._is_part, _parts(node)))

    def _is_named(self, node: ast.Name | ast.Attribute) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._wholes
        return ast.unparse(node) == f"self.{self._attribute}"

    def _is_comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        inner = Carried(self._attribute)
        inner._wholes, inner._elements = self._wholes, set(self._elements)
        for one in node.generators:
            if inner._is_whole(one.iter):
                inner._elements |= _names(one.target)
        return inner._is_part(node.value if isinstance(node, ast.DictComp) else node.elt)

    def _is_passed(self, call: ast.Call) -> bool:
        """True for a call that is given the elements and may give them on, or keep them: an optimizer."""
        if isinstance(call.func, ast.Attribute) and self._is_whole(call.func.value):
            return call.func.attr in _WHOLE
        text = ast.unparse(call.func)
        if called(call) in _MEASURES or (text.startswith(_COMPUTES) and not text.startswith(_OPTIMIZERS)):
            return False
        return any(map(self._is_part, (*call.args, *(one.value for one in call.keywords))))


def _parts(node: ast.AST | None) -> list[ast.expr]:
    """What a tuple, list, set or dictionary has in it, and what a choice is between."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    parts: list[ast.expr] = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return parts


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in syntax.walk(node) if isinstance(one, ast.Name)} - {"self"}
