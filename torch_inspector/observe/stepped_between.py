"""Parameters that the lines of a cell between two others have stepped: by steps of their own, or by calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from torch_inspector.facts import Place, StepFact, syntax
from torch_inspector.facts.leading import Leading, leading_to
from torch_inspector.observe import kinds
from torch_inspector.observe.operands import at
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.shapes import UNKNOWN
from torch_inspector.observe.source import dotted

# Statements of a cell whose calls may not run, or not now.
_PERHAPS = (ast.If, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Steps = Mapping[Place, frozenset[frozenset[int]]]
"""The parameters of each optimizer that stepped at a place."""


def steps_by_place(steps: Iterable[StepFact]) -> Steps:
    """The steps of a cell; a line of a function may step several optimizers, one for each call."""
    found: dict[Place, frozenset[frozenset[int]]] = {}
    for one in steps:
        found[one.place] = found.get(one.place, frozenset()) | {one.parameter_keys}
    return found


class Lines(NamedTuple):
    """The lines of a cell between two others."""

    file: CodeFile
    first: int
    last: int

    def holds(self, line: int) -> bool:
        """True for a line that is none of the two, but between them."""
        return self.first < line < self.last


def stepped_between(
    lines: Lines, steps: Steps, files: list[CodeFile], model: str, names: Mapping[str, Any]
) -> frozenset[int]:
    """Parameters that were stepped there, by keys.

    Args:
        lines: Where.
        steps: All steps of that cell.
        files: Code of the cells, which define the functions.
        model: The model that is asked for: where a line steps several, a call must name it.
        names: The user's variables.
    """
    trees = [file.tree for file in files if file.tree is not None]
    found = frozenset[int]()
    for place, sets in steps.items():
        if place.cell == lines.file.cell and not place.function:
            between = lines.holds((place.line or 0) - lines.file.offset)
        else:
            between = _is_called(lines, leading_to([place.function], trees), model if len(sets) > 1 else "", names)
        found = found.union(*sets) if between else found
    return found


def _is_called(lines: Lines, leading: Leading, model: str, names: Mapping[str, Any]) -> bool:
    calls = [one for one in _calls(lines.file) if _runs(one, leading, names)]
    between = [one for one in calls if lines.holds(one.lineno)]
    if not model or len(between) == len(calls):
        return bool(between)
    return any(model in syntax.names_in(one) for one in between)


def _calls(file: CodeFile) -> Iterator[ast.Call]:
    for statement in file.tree.body if file.tree is not None else ():
        if not isinstance(statement, _PERHAPS):
            nodes = (statement, *syntax.own_expressions(statement))
            yield from (one for one in nodes if isinstance(one, ast.Call))


def _runs(call: ast.Call, leading: Leading, names: Mapping[str, Any]) -> bool:
    """True if a call may run one of these functions: `sched.step()` does not run the `step` of the user's trainer."""
    if not leading.named_in(call.func):
        return False
    path = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    owner: Any = at(names, path) if path else UNKNOWN
    if owner is UNKNOWN or owner is None:
        return True
    kind = owner if kinds.is_a(owner, type) else type(owner)
    own = [kinds.class_fields(one) for one in kinds.mro_of(kind) if kinds.module_of(one) == "__main__"]
    return any(syntax.name_of(call.func) in one for one in own)
