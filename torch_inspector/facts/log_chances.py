"""Logarithms of probabilities of actions with several parts, which nobody adds up to one number for each action."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.words_behind import words_behind

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Somebody adds them up, or the distribution does.
_ADDED_UP = re.compile(
    r"log_?p\w*(\([^()]*\))?\.(sum|mean|prod)\(|(torch\.|F\.)?sum\(\s*log_?p|Independent\(|Multivariate"
)
# What a module runs when it is called.
_CALLED = frozenset(["forward", "__call__"])


def added_up(run: Run, target: str) -> tuple[str, Place] | None:
    """The only `return` of such logarithms, with their sum in it, and where, if a target is computed from it.

    None where somebody adds them up.
    """
    cells = {past.cell.source: past.cell.number for past in (*run.earlier, run)}
    if any(_ADDED_UP.search(source) for source in cells):
        return None
    found = [(Place(cell, one.line), one) for source, cell in cells.items() for one in _returns(source)]
    if len(found) != 1 or not target or found[0][1].called not in words_behind(run, target):
        return None
    place, name = found[0][0], found[0][1].name
    new = in_statement(run, place, name, f"{name}.sum(1, keepdim=True)")
    return (new, place) if new.startswith("return ") else None


class _Return(NamedTuple):
    """A `return` that names what a call of `log_prob` gave."""

    line: int
    name: str
    called: str
    """What has to be called for it: the function, or the class of a `forward`."""


def _returns(source: str) -> Iterator[_Return]:
    tree = syntax.parse(source)
    classes = [one for one in syntax.walk(tree) if isinstance(one, ast.ClassDef)] if tree is not None else []
    owners = {id(part): one.name for one in classes for part in one.body}
    for function in syntax.walk(tree) if tree is not None else ():
        if isinstance(function, ast.FunctionDef):
            own = list(syntax.own_statements(function))
            names = {name for one in own if isinstance(one, ast.Assign) and (name := _given(one))}
            called = owners.get(id(function), "") if function.name in _CALLED else function.name
            returned = [(one, part.id) for one in own if isinstance(one, ast.Return) for part in _names(one)]
            yield from (_Return(one.lineno, name, called) for one, name in returned if name in names)


def _given(node: ast.Assign) -> str:
    value, target = node.value, node.targets[0]
    called = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    return target.id if called == "log_prob" and isinstance(target, ast.Name) else ""


def _names(node: ast.Return) -> list[ast.Name]:
    """What is returned by name: alone, or in a tuple."""
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return [one for one in parts if isinstance(one, ast.Name)]
