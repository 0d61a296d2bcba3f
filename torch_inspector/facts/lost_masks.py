"""Masks of an earlier cell whose number float16 does not hold: it became minus infinity, and a row has no softmax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import isfinite, isnan, prod
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.made_of import half_and_finite, made_by, variable_of
from torch_inspector.facts.place import Place
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact, LossFact

_LARGEST = 65_504
_SOFTMAXES = frozenset(["softmax", "log_softmax"])
_MEANT = re.compile(r"inf\b|finfo", re.IGNORECASE)


class LostMask(NamedTuple):
    """Such a mask, and what became NaN of it."""

    mask: ExtremeFact
    place: Place
    """Where it is made."""
    number: str
    """As written: `-1e15`."""
    spoiled: str
    """A variable with NaN."""
    in_loss: bool
    """True if that is a loss: rows of other variables may be left out later."""


def lost_mask(run: Run) -> LostMask | None:
    """The mask that this cell uses, if what it makes of it by a softmax has NaN."""
    bad = run.first_nonfinite_loss()
    weights = bad.spoiled_weights if bad is not None else run.after.failed_weights
    if run.before.failed_weights or weights or not _is_spoiled(run):
        return None
    words = set(re.findall(r"[^\W\d]\w*", run.cell.code))
    for at, past in reversed(list(enumerate(run.earlier))):
        for one in past.after.extremes:
            found = _made(past, one) if one.path in words and _is_lost(one) else None
            if found is not None and not _made_again(one.path, (*run.earlier[at + 1 :], run)):
                spoiled = _spoiled(run, one.path)
                return LostMask(one, *found, *spoiled) if spoiled is not None else None
    return None


def _is_spoiled(run: Run) -> bool:
    """True if something is NaN, and nothing is known to have made it so but a softmax."""
    operations = [loss.operation for _, loss in _losses(run) if loss.operation is not None]
    known = all(one.name in _SOFTMAXES and not one.cause for one in operations)
    return known and (bool(_halves(run)) or any(True for _ in _losses(run)))


def _losses(run: Run) -> Iterator[tuple[str, LossFact]]:
    """Losses and other single numbers that are NaN, with their names."""
    bad = run.first_nonfinite_loss()
    if bad is not None:
        yield next((call.root for call in run.trace.backwards_at(bad.place)), ""), bad
    single = {one.path for one in run.after.tensors if prod(one.shape) == 1}
    for result in run.after.results:
        if isnan(result.loss.value) and result.path in single:
            yield result.path, result.loss


def _halves(run: Run) -> list[ExtremeFact]:
    return [one for one in run.after.extremes if one.nan_count and not one.inf_count]


def _spoiled(run: Run, mask: str) -> tuple[str, bool] | None:
    """What is NaN by a mask, and whether it is a loss; None if there is none, or if the cell goes on without NaN."""
    made = made_by(run, mask, _SOFTMAXES)
    known = (*run.after.extremes, *(one for _, loss in _losses(run) for one in loss.origins))
    if any(one.nan_count and not one.computed and variable_of(one.path) not in made for one in known):
        return None  # which may be what others have it from
    halves = [one for one in _halves(run) if variable_of(one.path) in made]
    goes_on = bool(halves) and bool(half_and_finite(run, {one.path for one in halves}))
    for name, loss in _losses(run):
        if loss.operation is not None or (variable_of(name) in made and not goes_on):
            return name or "loss", True
    if not halves or goes_on:
        return None
    return halves[0].path, halves[0].count == 1 and says_loss(halves[0].path)


def _is_lost(one: ExtremeFact) -> bool:
    """True if minus infinity is all that is not finite, and there is a whole row of it."""
    only_low = one.negative_inf_count and not one.inf_count and not one.nan_count
    return bool(only_low and one.low_rows) and one.dtype == "float16" and not one.computed


def _made(past: Run, one: ExtremeFact) -> tuple[Place, str] | None:
    """The one assignment of a mask, if it has a number that float16 does not hold, and names no infinity."""
    nodes = _assigned(past, one.path)
    text = ast.unparse(nodes[0]) if len(nodes) == 1 else ""
    numbers = [number for node in nodes for number in syntax.walk(node.value) if _is_beyond(number)]
    if not text or _MEANT.search(text) or len(numbers) != 1:
        return None
    sign = "-" if "-" in text else ""
    written = ast.get_source_segment(past.cell.source, numbers[0]) or ast.unparse(numbers[0])
    return Place(past.cell.number, nodes[0].lineno), f"{sign}{written}"


def _is_beyond(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return type(value) in (int, float) and isfinite(value) and value > _LARGEST  # type: ignore[arg-type, operator]


def _made_again(path: str, runs: tuple[Run, ...]) -> bool:
    return any(_assigned(one, path) for one in runs)


def _assigned(run: Run, path: str) -> list[ast.Assign]:
    tree = syntax.parse(run.cell.source)
    nodes = (one for one in syntax.walk(tree) if isinstance(one, ast.Assign)) if tree is not None else ()
    return [one for one in nodes if any(isinstance(to, ast.Name) and to.id == path for to in one.targets)]


def mask_of(run: Run, path: str, masks: tuple[ExtremeFact, ...]) -> str:
    """The mask in the softmax that the cell gives a variable; empty if there is none."""
    for node in _assigned(run, path):
        words = {ast.unparse(one) for one in syntax.walk(node.value) if isinstance(one, (ast.Name, ast.Attribute))}
        named = [one.path for one in masks if one.path in words]
        if named and any(called(one) in _SOFTMAXES for one in syntax.walk(node.value)):
            return named[0]
    return ""
