"""A plain container of layers, written again as one that a module counts as its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# A longer line is not read at a glance.
_LONGEST = 110


def contained(run: Run, place: Place | None, attribute: str, kind: str) -> str:
    """`self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])`; empty if the line makes no such container.

    Args:
        run: The run that knows the text.
        place: The line that gives the attribute its value.
        attribute: Without the object that it is of.
        kind: What is to hold the layers: `nn.ModuleList`.
    """
    if place is None:
        return ""
    tree = syntax.parse(run.source_of(place.cell))
    for node in syntax.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assign) or node.lineno != place.line or len(node.targets) > 1:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and target.attr == attribute and _holds_calls(value):
            inside = "" if isinstance(value, (ast.List, ast.Dict)) and not _parts(value) else ast.unparse(value)
            line = f"{ast.unparse(target)} = {kind}({inside})"
            return line if len(line) <= _LONGEST else ""
    return ""


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else [value]


def _holds_calls(value: ast.expr) -> bool:
    """True for a container of what calls give, or an empty one: no pairs, no containers."""
    kinds = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
    return isinstance(value, kinds) and all(isinstance(part, ast.Call) for part in _parts(value))
