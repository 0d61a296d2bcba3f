"""Layers with one output, by the number that the text gives them, whose result goes into a softmax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.sole import Written, called, written

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_LINEAR, _CONVOLUTIONS = frozenset(["Linear", "LazyLinear"]), frozenset(["Conv1d", "Conv2d", "Conv3d"])
_SOFTMAXES = frozenset(["softmax", "Softmax"])


class Scored(NamedTuple):
    """A softmax of what such a layer gives."""

    written: Written
    target: str
    """What is given its result; empty where it is used at once."""


def softmaxes_of_one(run: Run) -> list[Scored]:
    """The softmaxes of the texts that are given what a layer like `nn.Linear(8, 1)` computes."""
    layers = set(_layers(run))
    found = written(run, lambda node: called(node) in _SOFTMAXES)
    return [Scored(one, _target(run, one)) for one in found if _named(one.text, run) & layers]


def _target(run: Run, softmax: Written) -> str:
    tree = syntax.parse(run.source_of(softmax.place.cell))
    nodes = (one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, ast.Assign))
    own = [one.targets[0] for one in nodes if ast.unparse(one.value) == softmax.text and len(one.targets) == 1]
    return ast.unparse(own[0]) if own else ""


def _named(text: str, run: Run) -> set[str]:
    """What a softmax names, and what the names in it are computed with."""
    names = set(_calls(ast.parse(text, mode="eval")))
    words = {one.id for one in ast.walk(ast.parse(text, mode="eval")) if isinstance(one, ast.Name)}
    for one in _assignments(run):
        if any(isinstance(to, ast.Name) and to.id in words for to in one.targets):
            names |= set(_calls(one.value))
    return names


def _calls(node: ast.AST) -> Iterator[str]:
    yield from (called(one) for one in ast.walk(node) if isinstance(one, ast.Call))


def _layers(run: Run) -> Iterator[str]:
    """Names and attributes that are given a layer with one output, or layers of which that is the last."""
    for one in _assignments(run):
        targets, value = one.targets[0], one.value
        several = isinstance(targets, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(targets.elts, value.elts, strict=False) if several else [(targets, value)]  # type: ignore[attr-defined]
        for target, given in pairs:
            if _is_one(given):
                yield (
                    target.attr
                    if isinstance(target, ast.Attribute)
                    else target.id
                    if isinstance(target, ast.Name)
                    else ""
                )


def _assignments(run: Run) -> Iterator[ast.Assign]:
    for source in {one.cell.source for one in (run, *run.earlier)}:
        tree = syntax.parse(source)
        yield from (one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, ast.Assign))


def _is_one(node: ast.AST) -> bool:
    kind = called(node)
    if not isinstance(node, ast.Call):
        return False
    if kind == "Sequential":
        return bool(node.args) and _is_one(node.args[-1])
    place = 0 if kind == "LazyLinear" else 1
    named = [one.value for one in node.keywords if one.arg in ("out_features", "out_channels")]
    given = [*named, *node.args[place : place + 1]]
    one = isinstance(given[0], ast.Constant) and given[0].value == 1 if given else False
    return kind in _LINEAR | _CONVOLUTIONS and one
