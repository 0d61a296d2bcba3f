"""Batches that a loop cuts from data which lie class by class: `x[i:i + 32]`, one slice after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.class_order import LEAST, is_class_tensor
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.one_learner import goes_on
from torch_inspector.observe.ordered_loops import keeps_order, targets_of
from torch_inspector.observe.shapes import Sized, Unknown, is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.written_later import is_written_later

# Targets that are read, and runs of them that are told: of so many classes none is told.
_READ, _RUNS = 1_000_000, 1_000
_WRAPS = frozenset(["tqdm", "trange", "enumerate"])


class _Cut(NamedTuple):
    """What a loop cuts, and the size of a batch as written."""

    names: tuple[str, ...]
    size: ast.expr


def cut_batches(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A loop that cuts batches from several tensors and trains on each, with the runs of equal targets in one."""
    if not isinstance(node, ast.For) or not _trains(node):
        return
    cut = _split(node.iter) or _sliced(node)
    size = scope.names.value(cut.size) if cut is not None else None
    if cut is None or type(size) is not int or size < LEAST:
        return
    values = {name: scope.names.value(ast.Name(name, ast.Load())) for name in cut.names}
    name = _targets(values)
    learned = bool(name) and name in targets_of(scope, node) and not keeps_order(scope, node)
    runs = _runs(values[name]) if learned and goes_on(scope, node) else ()
    if runs and not is_written_later(scope, ast.Name(name, ast.Load()), node.lineno):
        lines = str((node.end_lineno or node.lineno) + scope.file.offset)
        names = (name, *(one for one in cut.names if one != name))
        more: dict[str, Any] = {"names": names, "shapes": ((size,), *runs), "detail": lines}
        yield scope.fact("cut-batches", node, statement, **more)._replace(text=ast.unparse(node.iter))


def _targets(values: dict[str, Any]) -> str:
    """The one tensor that has a class for each sample; empty if there is none, or a mask or a group beside it."""
    if any(not is_tensor(one) and not is_one_of(one, (Sized, Unknown)) for one in values.values()):
        return ""
    found = [name for name, one in values.items() if is_class_tensor(one, _READ)]
    return found[0] if len(found) == 1 else ""


def _trains(loop: ast.For) -> bool:
    """True if each turn of a loop goes back and takes a step, not only under a condition, and no turn within does."""
    own = [one for part in loop.body if not isinstance(part, (ast.If, ast.For, ast.While)) for one in syntax.walk(part)]
    methods = {one.func.attr for one in own if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)}
    return {"backward", "step"} <= methods


def _split(over: ast.expr) -> _Cut | None:
    """`x` and `y` of `zip(x.split(32), y.split(32))`."""
    while isinstance(over, ast.Call) and dotted(over.func).rpartition(".")[2] in _WRAPS and over.args:
        over = over.args[0]
    called = over.args if isinstance(over, ast.Call) and dotted(over.func) == "zip" else []
    parts = [_part(one) for one in called]
    found = [one for one in parts if one is not None]
    same = len({ast.unparse(size) for _, size in found}) == 1
    return _Cut(tuple(name for name, _ in found), found[0][1]) if same and len(found) == len(parts) > 1 else None


def _part(node: ast.expr) -> tuple[str, ast.expr] | None:
    """`x` and 32 of `x.split(32)` and `torch.split(x, 32)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "split":
        return None
    parts = node.args if dotted(node.func.value) == "torch" else [node.func.value, *node.args]
    return (parts[0].id, parts[1]) if len(parts) == 2 and isinstance(parts[0], ast.Name) else None  # noqa: PLR2004


def _sliced(loop: ast.For) -> _Cut | None:
    """What a loop over `range` cuts with one and the same slice in each turn."""
    over, target = loop.iter, loop.target
    while isinstance(over, ast.Call) and dotted(over.func).rpartition(".")[2] in _WRAPS and over.args:
        target = target.elts[-1] if isinstance(target, ast.Tuple) else target
        over = over.args[0]
    if not isinstance(over, ast.Call) or dotted(over.func) != "range" or not isinstance(target, ast.Name):
        return None
    cuts = [
        node
        for node in syntax.walk(loop)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and _begins_with(node.slice, target.id)
    ]
    same = len({ast.unparse(one.slice) for one in cuts}) == 1
    # In the order of the text: the inputs come before the targets as a rule.
    cuts.sort(key=lambda one: (one.lineno, one.col_offset))
    names = tuple(dict.fromkeys(one.value.id for one in cuts if isinstance(one.value, ast.Name)))
    size = _size(over, loop, target.id)
    return _Cut(names, size) if same and len(names) > 1 and size is not None else None


def _begins_with(cut: ast.Slice, name: str) -> bool:
    """True for `i:…`, and for `i * size:…`."""
    lower = cut.lower
    sides = [lower.left, lower.right] if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Mult) else [lower]
    return cut.step is None and any(isinstance(one, ast.Name) and one.id == name for one in sides)


def _size(over: ast.Call, loop: ast.For, name: str) -> ast.expr | None:
    """The third part of `range(0, n, size)`; else what the variable of the loop is multiplied with."""
    if len(over.args) == 3:  # noqa: PLR2004
        return over.args[2]
    for node in syntax.walk(loop):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and len(over.args) == 1:
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.Name) and one.id == name and isinstance(other, (ast.Name, ast.Constant)):
                    return other
    return None


def _runs(targets: Any) -> tuple[tuple[int, int], ...]:
    """Each class with its samples, in the order in which they lie; empty if a class comes back."""
    if not is_class_tensor(targets, _READ):
        return ()
    values, counts = torch.unique_consecutive(as_torch.detach(targets).reshape(-1), return_counts=True)
    if values.numel() > _RUNS or values.unique().numel() != values.numel():
        return ()
    return tuple(
        (int(value), int(count)) for value, count in zip(as_torch.tolist(values), as_torch.tolist(counts), strict=True)
    )
