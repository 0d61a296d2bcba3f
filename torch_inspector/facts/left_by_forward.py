"""What the code of a module leaves on the module and no text reads."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.out_of_text import may_be_read_elsewhere
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_ATTRIBUTE = re.compile(r"(.*)\.(\w+)")


class Left(NamedTuple):
    """The statement that leaves it."""

    place: Place
    target: str
    """`self.activity`."""
    value: str
    """What it is given, ready for a method; None is left out."""


def left_by_forward(run: Run, path: str) -> Left | None:
    """The one statement that gives an attribute of a named module its value, if nothing else names it."""
    parts = _ATTRIBUTE.fullmatch(path)
    kind = next((one.kind for one in run.after.modules if parts is not None and one.path == parts[1]), "")
    if parts is None or not kind:
        return None
    name, sources = parts[2], {past.cell.source: past.cell.number for past in (*run.earlier, run)}
    if any(_is_named(source, name) for source in sources) or may_be_read_elsewhere(sources, re.split(r"\W", path)[0]):
        return None
    found = [one for source, cell in sources.items() for one in _given(source, cell, kind, name)]
    return found[-1] if len({(one.target, one.value) for one in found}) == 1 else None


def _is_named(source: str, name: str) -> bool:
    """True if a text has the name for anything but to give it a value: what reads it may stand anywhere."""
    return any(re.match(r"[ \t]*=(?!=)", source[one.end() :]) is None for one in re.finditer(rf"\b{name}\b", source))


def _given(source: str, cell: int | None, kind: str, name: str) -> list[Left]:
    """Of the class of the module, the assignments of something but a constant."""
    tree = syntax.parse(source)
    nodes = list(syntax.walk(tree)) if tree is not None and name in source else []
    classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == kind]
    made = [node for each in classes for node in syntax.walk(each) if isinstance(node, ast.Assign)]
    own = [node for node in made if [ast.unparse(one) for one in node.targets] == [f"self.{name}"]]
    return [
        Left(Place(cell, node.lineno), f"self.{name}", _closed(node.value))
        for node in own
        if not isinstance(node.value, ast.Constant)
    ]


def _closed(value: ast.expr) -> str:
    plain = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return ast.unparse(value) if plain else f"({ast.unparse(value)})"
