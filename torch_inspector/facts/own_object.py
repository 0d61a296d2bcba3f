"""What a method calls its object: `self` nearly always, and what its first parameter says in the end."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_SELF = re.compile(r"\bself\b")


def in_own_name(run: Run, place: Place | None, text: str) -> str:
    """A text that says `self`, in the words of the method that holds a line."""
    own = _own_name(run, place) if place is not None else "self"
    return _SELF.sub(own, text) if own != "self" else text


def _own_name(run: Run, place: Place) -> str:
    tree = syntax.parse(run.source_of(place.cell))
    function = syntax.function_around(tree, place.line) if tree is not None and place.line is not None else None
    if tree is None or function is None or not isinstance(syntax.parents(tree)[id(function)], ast.ClassDef):
        return "self"
    given = [*function.args.posonlyargs, *function.args.args]
    return given[0].arg if given else "self"
