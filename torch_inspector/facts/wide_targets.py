"""Targets of a binary loss that lie outside of 0 to 1: what they are called, and what brings them inside."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.replaced import assigned_at

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

OUTSIDE = "targets-outside"
# The brightest of a picture, of bytes: one batch need not have white in it, but comes near.
_WHITE, _NEARLY_WHITE = 255, 240
_PERCENT = 100
# Beyond so many, whole numbers are no classes of which a threshold would make two, but many classes, or amounts.
_CLASSES = 32
_ARGUMENTS = 2
_OF_CLASSES = "for class numbers take CrossEntropyLoss"
_OTHERWISE = "for quantities take MSELoss"
# Written behind a word, these stay together with it.
_CLOSED = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


class Extent(NamedTuple):
    """The smallest and the largest target of all losses of a line that were looked at."""

    low: float
    high: float


def extent_at(run: Run, place: Place, first: tuple[float, float]) -> Extent:
    """Of one batch it may be less than that of all: a batch may have one class only."""
    witnesses = (one.witness for one in run.trace.patterned if one.made_at == place and one.witness is not None)
    found = [one.extent for each in witnesses for one in each.patterns if one.name == OUTSIDE and one.extent]
    return Extent(min(low for low, _ in (first, *found)), max(high for _, high in (first, *found)))


def into_unit(run: Run, place: Place, name: str, extent: Extent) -> str:
    """The line with such targets from 0 to 1; in words where no name is known, or all targets are alike."""
    form, words = _form(extent)
    if form and name:
        return assigned_at(run, place, name, form, f"0 to 1; {_OTHERWISE}")
    return f"{words}; {_OTHERWISE}"


def _form(extent: Extent) -> tuple[str, str]:
    low, high = extent
    if (low, high) == (-1, 1):
        return "({} + 1) / 2", "add 1 to the targets and divide them by 2"
    if low >= 0 and high > _CLASSES:
        return _of_many(high)
    if low < 0 and not (float(low).is_integer() and float(high).is_integer()):
        return "", "leave the targets as they were before they were normalised, 0 to 1"
    # What divides two classes must have one on each side.
    edge = 0 if low <= 0 < high else low
    if low == high:
        return "", "make the targets 0 and 1"
    return f"({{}} > {edge:g}).float()", f"make the targets 0 and 1: 1 for those above {edge:g}"


def _of_many(high: float) -> tuple[str, str]:
    """Of numbers too large for classes of which a threshold would make two."""
    most = _WHITE if _NEARLY_WHITE <= high <= _WHITE else _PERCENT if high == _PERCENT else 0
    if most:
        return f"{{}} / {most}", f"divide the targets by {most}"
    return "", f"divide the targets by the largest number that they can be; {_OF_CLASSES}"


def target_at(run: Run, place: Place) -> str:
    """What the only call of two arguments on a line is given second: `mask` of `criterion(net(x), mask)`.

    Of calls inside one another the outer one counts. As the code has it, if it has a name or an index in it.
    """
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None:
        return ""
    calls = [one for one in syntax.walk(tree) if isinstance(one, ast.Call) and one.lineno == place.line]
    pairs = [one for one in calls if _second(one) is not None]
    inner = {id(part) for one in pairs for given in (*one.args, one.func) for part in syntax.walk(given)}
    found = [second for one in pairs if id(one) not in inner and (second := _second(one)) is not None]
    return ast.unparse(found[0]) if len(found) == 1 and isinstance(found[0], _CLOSED) else ""


def _second(call: ast.Call) -> ast.expr | None:
    named = [one.value for one in call.keywords if one.arg == "target"]
    given = [*call.args, *named]
    return given[1] if len(given) == _ARGUMENTS else None
