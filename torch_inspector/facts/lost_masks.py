"""Masks of an earlier cell whose number float16 does not hold: it became minus infinity, and a row has no softmax."""

from __future__ import annotations

import ast
import re
from math import isfinite, isnan
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.dealt_with import is_dealt_with
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.place import Place
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact

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


def lost_mask(run: Run) -> LostMask | None:
    """The mask that this cell uses, if something in it is NaN and a softmax may have made it so."""
    spoiled = _spoiled(run)
    weights = run.before.spoiled_weights or run.after.spoiled_weights
    if not spoiled or weights or not _takes_softmax(run):
        return None
    words = set(re.findall(r"[^\W\d]\w*", run.cell.code))
    for at, past in reversed(list(enumerate(run.earlier))):
        for one in past.after.extremes:
            found = _made(past, one) if one.path in words and _is_lost(past, one) else None
            if found is not None and not _made_again(one.path, (*run.earlier[at + 1 :], run)):
                return LostMask(one, *found, spoiled)
    return None


def _spoiled(run: Run) -> str:
    """A variable of the cell that is NaN; empty if there is none, or if the text does something about it."""
    bad = run.first_nonfinite_loss()
    halves = [one.path for one in run.after.extremes if one.nan_count and not one.inf_count]
    losses = [one.path for one in run.after.results if isnan(one.loss.value)]
    if any(is_dealt_with(run, path, 0) for path in dict.fromkeys(halves + losses)):
        halves, losses = [], [path for path in losses if says_loss(path)]
    spoiled = next(iter((*halves, *losses)), "")
    if spoiled or bad is None:
        return spoiled
    return next((b.root or "loss" for b in run.trace.backwards_at(bad.place)), "")


def _takes_softmax(run: Run) -> bool:
    """True if a softmax gave NaN first, or, where that is not known, if a text has one."""
    bad = run.first_nonfinite_loss()
    known = [one for one in (bad, *(result.loss for result in run.after.results)) if one is not None]
    operations = [one.operation for one in known if one.operation is not None]
    if operations:
        return all(one.name in _SOFTMAXES and not one.cause for one in operations)
    return any("softmax" in one.cell.source for one in (run, *run.earlier))


def _is_lost(past: Run, one: ExtremeFact) -> bool:
    """True if minus infinity is all that is not finite, and there is enough of it for a whole row."""
    only_low = one.negative_inf_count and not one.inf_count and not one.nan_count
    row = next((tensor.shape[-1:] for tensor in past.after.tensors if tensor.path == one.path), ())
    whole = one.negative_inf_count >= (row[0] if row else 1)
    return bool(only_low) and whole and one.dtype == "float16" and not one.computed


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
