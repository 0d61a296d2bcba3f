"""Results of a cell that are not finite, on which nobody called `backward()`: losses that are only shown or kept.

Read after the cell, on the CPU and within bounds: what the user's variables hold of it, and what the cell showed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import LossFact, Place, ResultFact, syntax
from torch_inspector.observe import as_torch, kinds, origins, private
from torch_inspector.observe.history import node_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.values import extremes_of, number_of

if TYPE_CHECKING:
    from torch_inspector.facts import ExtremeFact
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.snapshot import Look

# Results that are read, the newest, and seconds for the graph behind one.
_RESULTS, _GRAPH_S = 64, 0.02


class _Result(NamedTuple):
    """A tensor that the cell has made."""

    path: str
    tensor: Any
    number: int
    """Of its node."""
    line: int


def results(
    names: Names, look: Look, cell: int | None, reader: GraphReader, new: frozenset[str]
) -> tuple[ResultFact, ...]:
    """The first number of a cell that is not finite: one with a history, or a loss of what was given as NaN.

    Without one, the first tensor in float16 with NaN in it.

    Args:
        names: What the user's variables lead to.
        look: What to look at.
        cell: Number of the cell.
        reader: Reads the graph behind it.
        new: Paths of tensors that were not there before.
    """
    if private.sequence_number() != look.since:
        made = sorted(_made(names, look, cell), key=lambda one: one.number)[-_RESULTS:]
        bad = next((one for one in made if _is_bad(one)), None) or next(filter(_is_spoiled_half, made), None)
        if bad is not None:
            return (_fact(bad, names, look, reader),)
    return _without_history(names, look, new)


def _fact(one: _Result, names: Names, look: Look, reader: GraphReader) -> ResultFact:
    walk = reader.walk([as_torch.grad_fn(one.tensor)], min(look.deadline, thread_time() + _GRAPH_S))
    origin = origins.origin(walk) if walk is not None else origins.Origin(None)
    around = _given(one, names, look, origin.given) if origin.given else ()
    return ResultFact(one.path, _loss(one, look, around)._replace(operation=origin.operation, given=origin.given))


def _without_history(names: Names, look: Look, new: frozenset[str]) -> tuple[ResultFact, ...]:
    """A new loss under `no_grad` that is NaN, where a variable that it was given holds NaN."""
    losses = [one for one in _named_calls(look.code) if one[0] in new and _is_loss(one[1], look)]
    by_path = dict(names.tensors) if losses else {}
    for name, call in losses:
        value = number_of(by_path.get(name))
        if value is not None and math.isnan(value):
            around = extremes_of([(path, by_path[path]) for path in _given_names(call) if path in by_path])
            if any(one.nan_count for one in around):
                result = _Result(name, by_path[name], 0, call.lineno)
                return (ResultFact(name, _loss(result, look, around)),)
    return ()


def _given_names(call: ast.Call) -> Iterator[str]:
    """What a call is given as it is, also through other calls: `x` and `y` of `loss(net(x), y)`."""
    for one in call.args:
        if isinstance(one, ast.Call):
            yield from _given_names(one)
        elif dotted(one):
            yield dotted(one)


def _made(names: Names, look: Look, cell: int | None) -> Iterator[_Result]:
    """Tensors with history of this cell that its text gives a name, and the one that it shows."""
    lines = _lines(look.code)
    for path, tensor in names.tensors:
        node = node_of(tensor) if type(tensor) is torch.Tensor and path in lines else None
        if node is not None and private.node_number(node) >= look.since:
            yield _Result(path, tensor, private.node_number(node), lines[path])
    shown = dict.get(look.history, cell) if type(look.history) is dict else None
    node = node_of(shown) if type(shown) is torch.Tensor and "" in lines else None
    if node is not None and private.node_number(node) >= look.since:
        yield _Result(f"Out[{cell}]", shown, private.node_number(node), lines[""])


@lru_cache(maxsize=8)
def _lines(code: str) -> dict[str, int]:
    """The last line of a cell that gives each variable its value; under no name that of its last statement."""
    tree = syntax.parse(code)
    statements = syntax.own_statements(tree) if tree is not None else ()
    stored = (
        (dotted(one), node.lineno)
        for node in statements
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for one in syntax.walk(node)
        if isinstance(getattr(one, "ctx", None), ast.Store)
    )
    found = {"": tree.body[-1].lineno} if tree is not None and tree.body else {}
    for name, line in stored:
        if name:
            found[name] = max(line, found.get(name, 0))
    return found


def _is_bad(one: _Result) -> bool:
    """True for NaN, and for an infinite loss: minus infinity is a logarithm of 0, as masks have it."""
    value = number_of(one.tensor)
    return value is not None and (math.isnan(value) or (value == math.inf and "loss" in one.path.lower()))


def _is_spoiled_half(one: _Result) -> bool:
    return one.tensor.dtype is torch.float16 and any(fact.nan_count for fact in extremes_of([(one.path, one.tensor)]))


def _loss(one: _Result, look: Look, around: tuple[ExtremeFact, ...]) -> LossFact:
    place = Place(None, one.line + look.line_offset)
    value = number_of(one.tensor)
    return LossFact(0, place, 0, math.nan if value is None else value, origins=around)


def _given(result: _Result, names: Names, look: Look, kind: str) -> tuple[ExtremeFact, ...]:
    """The one variable that the cell speaks of, not computed, which holds what the graph was given from outside."""
    words = _words(look.code)
    said = [(path, one) for path, one in names.tensors if path in words and path != result.path]
    facts = extremes_of([one for one in said if type(one[1]) is torch.Tensor])
    bad = [one for one in facts if not one.computed and (one.nan_count if kind == "nan" else one.inf_count)]
    masks = [one for one in facts if one.negative_inf_count and not one.inf_count and not one.nan_count]
    return (*bad, *masks) if len(bad) == 1 else ()


@lru_cache(maxsize=8)
def _words(code: str) -> frozenset[str]:
    """What the text of a cell names: `x`, `batch.x`."""
    tree = syntax.parse(code)
    return frozenset(map(dotted, syntax.walk(tree))) if tree is not None else frozenset()


@lru_cache(maxsize=8)
def _named_calls(code: str) -> tuple[tuple[str, ast.Call], ...]:
    """The calls of a cell whose result gets a name, and the name."""
    tree = syntax.parse(code)
    given = [one for one in syntax.own_statements(tree) if isinstance(one, ast.Assign)] if tree is not None else []
    pairs = ((one.targets[0], one.value) for one in given if len(one.targets) == 1)
    return tuple((to.id, call) for to, call in pairs if isinstance(to, ast.Name) and isinstance(call, ast.Call))


def _is_loss(call: ast.Call, look: Look) -> bool:
    """True for a call of one of torch's losses, as a function or as a module."""
    name = dotted(call.func)
    owner, _, function = name.rpartition(".")
    if owner in ("F", "nn.functional", "torch.nn.functional"):
        return function.endswith("_loss") or "entropy" in function
    return bool(name) and kinds.module_of(type(look.names.get(name))) == "torch.nn.modules.loss"
