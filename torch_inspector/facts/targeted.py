"""Which part of its batches a training loop gives a loss as the targets: `batch["speaker"]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

Part = str | int
"""A key of a dictionary, or a place in a tuple."""
_WHOLE = ""
"""Stands for the batch itself."""
# Losses over classes: a regression has none that it could forget.
_LOSSES = r"((binary_)?cross_entropy(_with_logits)?|nll_loss|(CrossEntropy|NLL|BCE(WithLogits)?)Loss)\b"
_LOSS = re.compile(_LOSSES)
# What the text calls them: `criterion = nn.CrossEntropyLoss()`.
_CALLED = re.compile(rf"\b(\w+)\s*=\s*[\w.]*\b{_LOSSES}")
_COUNTED = frozenset(["enumerate", "tqdm", "trange", "iter"])
# What leaves each target in its place.
_KEPT = frozenset(
    ["to", "long", "cuda", "cpu", "float", "int", "view", "reshape", "squeeze", "flatten", "unsqueeze", "clone"]
)
_FAR = 8


def targets_of(run: Run, place: Place) -> frozenset[Part]:
    """The parts that the loop in a line gives losses over classes, itself or in a function that it gives the batch."""
    tree = syntax.parse(run.source_of(place.cell))
    loops = [one for one in syntax.walk(tree) if isinstance(one, ast.For)] if tree is not None else []
    loop = next((one for one in loops if one.iter.lineno == place.line), None)
    if loop is None:
        return frozenset()
    names, losses = dict(_unpacked(_target(loop), _WHOLE)), _losses_of(run)
    return frozenset((*_given(loop, names, losses), *_given_inside(run, loop, names, losses)))


def _losses_of(run: Run) -> frozenset[str]:
    """What the notebook calls its losses over classes."""
    return frozenset(found[1] for source in _sources(run) for found in _CALLED.finditer(source))


def _target(loop: ast.For) -> ast.expr:
    """What stands for the batch: `batch` of `for i, batch in enumerate(loader)`."""
    target, value = loop.target, loop.iter
    while isinstance(value, ast.Call) and value.args and _last(value.func) in _COUNTED:
        if _last(value.func) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        value = value.args[0]
    return target


def _unpacked(target: ast.expr, part: Part) -> Iterator[tuple[str, Part]]:
    """The names of a batch, or of its parts, after `x, y, name = batch`."""
    if isinstance(target, ast.Name):
        yield target.id, part
    elif isinstance(target, (ast.Tuple, ast.List)) and part == _WHOLE:
        yield from ((one.id, place) for place, one in enumerate(target.elts) if isinstance(one, ast.Name))


def _given(scope: ast.AST, names: dict[str, Part], losses: frozenset[str]) -> Iterator[Part]:
    """What a loss gets second, or as its target; `names` are those of the batch and of its parts."""
    names = dict(names)
    for node in syntax.walk(scope):
        if isinstance(node, ast.Assign):
            for name, part in _stored(node, names):
                names.setdefault(name, part)
    for node in syntax.walk(scope):
        if isinstance(node, ast.Call) and _is_loss(node.func, losses):
            given = [one.value for one in node.keywords if one.arg == "target"] or node.args[1:2]
            parts = [_part(one, names) for one in given]
            yield from (part for part in parts if part not in (None, _WHOLE))


def _stored(node: ast.Assign, names: dict[str, Part]) -> Iterator[tuple[str, Part]]:
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for one, value in pairs:
            part = _part(value, names)
            yield from _unpacked(one, part) if part is not None else ()


def _part(node: ast.expr, names: dict[str, Part]) -> Part | None:
    """The part of a batch that an expression is; None for any other."""
    for _ in range(_FAR):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEPT:
            break
        node = node.func.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
        return key if isinstance(key, (str, int)) and _part(node.value, names) == _WHOLE else None
    return None


def _given_inside(run: Run, loop: ast.For, names: dict[str, Part], losses: frozenset[str]) -> Iterator[Part]:
    """The same in functions of the notebook that the loop gives the batch, as a `training_step(batch)`."""
    handed = {
        (_last(call.func), place): names[one.id]
        for call in syntax.walk(loop)
        if isinstance(call, ast.Call) and not _is_loss(call.func, losses)
        for place, one in enumerate(call.args)
        if isinstance(one, ast.Name) and one.id in names
    }
    functions = {name for name, _ in handed}
    for function in _functions(run) if handed else ():
        if function.name in functions:
            given = [one.arg for one in function.args.args if one.arg != "self"]
            known = {arg: handed[function.name, n] for n, arg in enumerate(given) if (function.name, n) in handed}
            yield from _given(function, known, losses)


def _functions(run: Run) -> Iterator[ast.FunctionDef]:
    for source in _sources(run):
        tree = syntax.parse(source)
        yield from (one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)) if tree is not None else ()


def _sources(run: Run) -> Iterable[str]:
    return dict.fromkeys(past.cell.source for past in (*run.earlier, run))


def _is_loss(function: ast.expr, losses: frozenset[str]) -> bool:
    name = _last(function.func if isinstance(function, ast.Call) else function)
    return _LOSS.fullmatch(name) is not None or name in losses


def _last(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]
