"""The only expression of its kind in the text: of the cell, and of the functions that earlier cells define."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_SPACES = ("torch.", "F.", "nn.functional.")
_OTHERS = frozenset(["math", "np", "numpy"])


class Written(NamedTuple):
    """An expression as the text has it, and where."""

    text: str
    place: Place
    inside: bool
    """True if it stands in a function or class."""


def sole(run: Run, fits: Callable[[ast.AST], bool]) -> Written | None:
    """The expression that fits, if the texts have exactly one; what ran at the top of earlier cells is not asked."""
    found = written(run, fits)
    return found[0] if len(found) == 1 else None


def written(run: Run, fits: Callable[[ast.AST], bool]) -> list[Written]:
    """All of them, in the order of the texts."""
    cells = {past.cell.source: past.cell for past in (*run.earlier, run)}
    found: list[Written] = []
    for source, cell in cells.items():
        tree = syntax.parse(source)
        for statement in tree.body if tree is not None else ():
            inside = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            nodes = syntax.walk(statement) if inside or source == run.cell.source else ()
            fitting = (node for node in nodes if isinstance(node, ast.expr) and fits(node))
            found += [Written(ast.unparse(node), Place(cell.number, node.lineno), inside) for node in fitting]
    return found


def called(node: ast.AST) -> str:
    """The last part of what is called, `sqrt` of `x.sqrt()` and `torch.sqrt(x)`; empty for functions of NumPy's."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        root = function.value
        return "" if isinstance(root, ast.Name) and root.id in _OTHERS else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def operand(text: str) -> str:
    """What an operation is applied to, ready for a method: `d` of `d.sqrt()` and `torch.sqrt(d)`."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    of_torch = isinstance(function, ast.Name) or ast.unparse(function).startswith(_SPACES)
    given = node.args[0] if of_torch and node.args else None if of_torch else getattr(function, "value", None)
    if given is None:
        return ""
    plain = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return ast.unparse(given) if plain else f"({ast.unparse(given)})"
