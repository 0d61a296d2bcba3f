"""Whether what a loop goes through has a length, by its text and the tensors that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_SEQUENCES = frozenset(["list", "tuple", "sorted", "range"])
_CUTS = frozenset(["split", "chunk", "unbind", "tensor_split"])
_LITERALS = (ast.List, ast.Tuple, ast.ListComp)
# Data sets that hand out one thing after the other, whatever their loader is.
_ENDLESS = re.compile(r"IterableDataset|IterDataPipe|streaming|webdataset", re.IGNORECASE)


def has_length(run: Run, cell: int | None, line: int, node: ast.expr) -> bool:
    """True if a name at a line of a cell is sure to have one.

    It does if each text that gives it a value makes a sequence or a loader of a data set that is known, or if it is a
    tensor that is there. What a function is handed may be anything.
    """
    tree = syntax.parse(run.source_of(cell))
    scope = syntax.scope_at(tree, line) if tree is not None else None
    name = ast.unparse(node)
    if scope is None or syntax.root_of(node) in syntax.parameters_of(scope):
        return False
    if isinstance(scope, ast.Module) and any(one.path == name and one.shape for one in run.after.tensors):
        return True
    given = list(_given(run, name))
    return bool(given) and all(value is not None and _is_sized(run, value) for value in given)


def _given(run: Run, name: str) -> Iterator[ast.expr | None]:
    """What the texts give a name; None for a value that is not told, as one of several of a call."""
    for tree in _trees(run):
        for one in syntax.walk(tree):
            if isinstance(one, ast.Assign):
                yield from (value for target in one.targets for value in _matched(target, one.value, name))
            else:
                yield from [None] * (name in _bound(one))


def _matched(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr | None]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield from [value] * (ast.unparse(target) == name)
        return
    parts: list[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
        parts = list(value.elts)
    for one, part in zip(target.elts, parts, strict=True):
        if part is None:
            yield from [None] * (ast.unparse(one) == name)
        else:
            yield from _matched(one, part, name)


def _bound(node: ast.AST) -> list[str]:
    """The names that something other than a plain assignment gives a value."""
    if isinstance(node, (ast.For, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.comprehension)):
        target = node.target
        return [ast.unparse(one) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [ast.unparse(node.optional_vars)] if isinstance(node, ast.withitem) and node.optional_vars else []


def _is_sized(run: Run, value: ast.expr) -> bool:
    if isinstance(value, _LITERALS):
        return True
    if not isinstance(value, ast.Call):
        return False
    last = syntax.last_part(value.func)
    return last in _SEQUENCES | _CUTS or (last == "DataLoader" and _has_known_data(run, value))


def _has_known_data(run: Run, loader: ast.Call) -> bool:
    """True if a loader shuffles, which no data set without a length allows, or goes through what has a length."""
    if any(_ENDLESS.search(past.cell.source) for past in (*run.earlier, run)):
        return False
    shuffles = [one.value for one in loader.keywords if one.arg == "shuffle"]
    if any(isinstance(one, ast.Constant) and one.value is True for one in shuffles):
        return True
    data = [*loader.args[:1], *(one.value for one in loader.keywords if one.arg == "dataset")]
    made = [value for one in data for value in (_given(run, ast.unparse(one)) if isinstance(one, ast.Name) else [one])]
    return bool(made) and all(one is not None and _is_data(one) for one in made)


def _is_data(value: ast.expr) -> bool:
    named = isinstance(value, ast.Call) and syntax.last_part(value.func) in {"TensorDataset", "Subset", "list"}
    return named or isinstance(value, _LITERALS)


def _trees(run: Run) -> list[ast.Module]:
    trees = (syntax.parse(past.cell.source) for past in (*run.earlier, run))
    return [tree for tree in trees if tree is not None]
