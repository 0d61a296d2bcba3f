"""Logarithms of probabilities of actions with several parts, which nobody adds up to one number for each action."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Somebody adds them up, or the distribution does.
_ADDED_UP = re.compile(
    r"log_?p\w*(\([^()]*\))?\.(sum|mean|prod)\(|(torch\.|F\.)?sum\(\s*log_?p|Independent\(|Multivariate"
)


def added_up(run: Run) -> tuple[str, Place] | None:
    """The only `return` of such logarithms, with their sum in it, and where; None where somebody adds them up."""
    cells = {past.cell.source: past.cell.number for past in (*run.earlier, run)}
    if any(_ADDED_UP.search(source) for source in cells):
        return None
    found = [(Place(cell, one.lineno), name) for source, cell in cells.items() for one, name in _returns(source)]
    if len(found) != 1:
        return None
    place, name = found[0]
    new = in_statement(run, place, name, f"{name}.sum(1, keepdim=True)")
    return (new, place) if new.startswith("return ") else None


def _returns(source: str) -> Iterator[tuple[ast.Return, str]]:
    """Each `return` of a function that names what a call of `log_prob` gave, and that name."""
    tree = syntax.parse(source)
    for function in syntax.walk(tree) if tree is not None else ():
        if isinstance(function, ast.FunctionDef):
            own = list(syntax.own_statements(function))
            names = {name for one in own if isinstance(one, ast.Assign) and (name := _given(one))}
            returned = [(one, part.id) for one in own if isinstance(one, ast.Return) for part in _names(one)]
            yield from ((one, name) for one, name in returned if name in names)


def _given(node: ast.Assign) -> str:
    value, target = node.value, node.targets[0]
    called = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    return target.id if called == "log_prob" and isinstance(target, ast.Name) else ""


def _names(node: ast.Return) -> list[ast.Name]:
    """What is returned by name: alone, or in a tuple."""
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return [one for one in parts if isinstance(one, ast.Name)]
