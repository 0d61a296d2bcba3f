"""Parts that the text means to freeze by a field that PyTorch does not know: `p.require_grad = False`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Python lets any field be set on a parameter, and nobody reads these.
_WRONG = frozenset(
    ["require_grad", "require_grads", "required_grad", "requires_grads", "requires_gradient", "require_gradient",
     "requiers_grad", "requries_grad", "requires_gard", "requre_grad", "require_grad_", "requires_grad_"]
)  # fmt: skip


class Misspelt(NamedTuple):
    """The line, and what it should be."""

    place: Place
    field: str
    right: str


def misspelt(run: Run, name: str) -> Misspelt | None:
    """The latest line that sets such a field to False on a part of the variable, or on what a loop over it gives."""
    root = name.partition(".")[0].partition("[")[0]
    for past in (run, *reversed(run.earlier)):
        tree = syntax.parse(past.cell.source)
        for node in _set(tree) if tree is not None else ():
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and root in _owners(tree, target):
                right = ast.unparse(ast.Attribute(target.value, "requires_grad"))
                return Misspelt(Place(past.cell.number, node.lineno), target.attr, f"{right} = False")
    return None


def _set(tree: ast.AST) -> Iterator[ast.Assign]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False:
            target = node.targets[0]
            yield from (node,) if isinstance(target, ast.Attribute) and target.attr in _WRONG else ()


def _owners(tree: ast.AST | None, target: ast.Attribute) -> set[str]:
    """The variable whose field it is, and those that a loop around it goes through."""
    name = syntax.root_of(target)
    loops = [one for one in syntax.walk(tree) if isinstance(one, ast.For)] if tree is not None else []
    around = [one for one in loops if syntax.spans(one, target.lineno) and name in syntax.names_in(one.target)]
    return {name, *(each for one in around for each in syntax.names_in(one.iter))}
