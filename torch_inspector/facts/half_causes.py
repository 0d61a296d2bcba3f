"""Why a result in float16 is NaN: the operation or the expression that went past an end of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.made_of import half_and_finite
from torch_inspector.facts.place import Place

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# Below it float16 has zero only.
_SMALLEST = 6e-8
_MEANT = re.compile(r"\binf\b|\binfty?\b|\bInf\b|isinf|masked_fill")


class HalfCause(NamedTuple):
    """A variable with NaN, and the step that is to blame."""

    path: str
    nan_count: int
    count: int
    place: Place
    said: str
    """What happened: `torch.sum(p)` is 2.5e+05."""
    name: str
    """The operation or the expression."""
    is_sure: bool = True
    """False for a mask: a row without anything to attend to may be meant to be left out."""


class HalfZero(NamedTuple):
    """A variable with NaN, and the divisor that is zero in float16 alone."""

    path: str
    nan_count: int
    count: int
    place: Place
    text: str
    number: str
    """The small number in it, as written; empty if there is none."""
    value: float
    """What it is, or the whole."""


def overflows(run: Run) -> Iterator[HalfCause]:
    """Results with NaN where a step went beyond 65,504, as its statement computed again or its graph tells."""
    for fact in run.expressions("half-step"):
        if fact.names[1:] == ("over",) and not half_and_finite(run, {fact.names[0]}):
            (count, total), path = fact.shapes[0], fact.names[0]
            low = fact.detail.startswith("-")
            said = f"`{fact.text}` {'goes down' if low else 'goes up'} to {float(fact.detail):,.0f}"
            yield HalfCause(path, count, total, fact.place, said, fact.text, not low or says_loss(path))
    yield from _of_graphs(run)


def _of_graphs(run: Run) -> Iterator[HalfCause]:
    halves = {one.path: one for one in run.after.extremes if one.dtype == "float16" and one.nan_count}
    for path, loss in run.after.results:
        made, result = loss.operation, halves.get(path)
        known = made is not None and made.half and made.result == "inf" and not made.cause
        if made is None or result is None or not known or _means_infinity(run) or half_and_finite(run, {path}):
            continue
        said = f"on the way to it `{made.name}` gave {made.bad_count} infinite of {made.count} values"
        place = Place(run.cell.number, loss.place.line)
        yield HalfCause(path, result.nan_count, result.count, place, said, made.name)


def _means_infinity(run: Run) -> bool:
    """True if the texts write an infinity down."""
    return any(_MEANT.search(source) for source in (run.cell.source, *(past.cell.source for past in run.earlier)))


def zeros(run: Run) -> Iterator[HalfZero]:
    """Results with NaN where a divisor, or what a logarithm is taken of, is zero in float16 alone."""
    for fact in run.expressions("half-step"):
        if fact.names[1:] == ("under",) and not half_and_finite(run, {fact.names[0]}):
            (count, total), value = fact.shapes[0], float(fact.detail)
            number = _number(syntax.expression(fact.text))
            yield HalfZero(fact.names[0], count, total, fact.place, fact.text, number, value)


def _number(node: ast.expr | None) -> str:
    """The number that is to keep something from zero: `1e-8`, `eps`."""
    nodes = list(syntax.walk(node)) if node is not None else []
    numbers = [one for one in nodes if isinstance(one, ast.Constant) and type(one.value) is float]
    small = [one for one in numbers if 0 < one.value < _SMALLEST]  # type: ignore[operator]
    if small:
        return ast.unparse(small[0])
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and isinstance(node.right, (ast.Name, ast.Attribute))
    ):
        return ast.unparse(node.right)
    floor = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if isinstance(node, ast.Call) and floor is not None and floor.attr in ("clamp", "clamp_min", "clip"):
        given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "min")]
        return ast.unparse(given[0]) if given and isinstance(given[0], (ast.Name, ast.Attribute)) else ""
    return ""
