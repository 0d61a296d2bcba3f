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
from torch_inspector.observe import kinds, origins, private
from torch_inspector.observe.history import node_of
from torch_inspector.observe.lines import assignment_line
from torch_inspector.observe.source import dotted
from torch_inspector.observe.values import extremes_of, number_of

if TYPE_CHECKING:
    from torch_inspector.facts import ExtremeFact
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.snapshot import Look

# Results that are read, the seconds for the graph behind one, and variables that are named as the origin.
_RESULTS, _GRAPH_S, _NAMES = 64, 0.02, 8
_ANY_LINE = 1 << 30


class _Result(NamedTuple):
    """A tensor that the cell has made."""

    path: str
    tensor: Any
    node: Any
    line: int | None


def results(names: Names, look: Look, cell: int | None, reader: GraphReader) -> tuple[ResultFact, ...]:
    """The first single number of a cell that is not finite: one with a history, or a loss of what was given as NaN."""
    tree = syntax.parse(look.code)
    if tree is None:
        return ()
    if private.sequence_number() != look.since:
        made = sorted(_made(names, look, cell, tree), key=lambda one: private.node_number(one.node))[:_RESULTS]
        bad = next((one for one in made if _is_bad_number(one)), None)
        if bad is not None:
            return (_fact(bad, names, look, reader),)
    return _without_history(names, look)


def _made(names: Names, look: Look, cell: int | None, tree: ast.Module) -> Iterator[_Result]:
    """Tensors with history of this cell that its text gives a name, and the one that it shows."""
    for path, tensor in names.tensors:
        node = node_of(tensor) if type(tensor) is torch.Tensor else None
        if node is not None and private.node_number(node) >= look.since:
            line = assignment_line(tree, path, _ANY_LINE)
            if line is not None:
                yield _Result(path, tensor, node, line)
    shown = dict.get(look.history, cell) if type(look.history) is dict else None
    node = node_of(shown) if type(shown) is torch.Tensor else None
    if node is not None and tree.body and private.node_number(node) >= look.since:
        yield _Result(f"Out[{cell}]", shown, node, tree.body[-1].lineno)


def _is_bad_number(one: _Result) -> bool:
    """True for NaN, and for an infinite loss: minus infinity is a logarithm of 0, as masks have it."""
    value = number_of(one.tensor)
    return value is not None and (math.isnan(value) or (value == math.inf and "loss" in one.path.lower()))


def _without_history(names: Names, look: Look) -> tuple[ResultFact, ...]:
    """A loss under `no_grad` that is NaN, where a variable that it was given holds NaN."""
    losses = [one for one in _named_calls(look.code) if _is_loss(one[1], look)]
    by_path = dict(names.tensors) if losses else {}
    for name, call in losses:
        value = number_of(by_path.get(name))
        if value is not None and math.isnan(value):
            result = _Result(name, by_path[name], None, call.lineno)
            around = _extremes(result, names, frozenset(map(dotted, syntax.walk(call))))
            if any(one.nan_count for one in around):
                return (ResultFact(name, _loss(result, look, around)),)
    return ()


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


def _fact(one: _Result, names: Names, look: Look, reader: GraphReader) -> ResultFact:
    walk = reader.walk([one.node], min(look.deadline, thread_time() + _GRAPH_S))
    origin = origins.origin(walk) if walk is not None else origins.Origin(None)
    loss = _loss(one, look, _extremes(one, names, _words(look.code)))
    return ResultFact(one.path, loss._replace(operation=origin.operation, given=origin.given))


def _loss(one: _Result, look: Look, around: tuple[ExtremeFact, ...]) -> LossFact:
    line = one.line + look.line_offset if one.line is not None else None
    return LossFact(0, Place(None, line), 0, number_of(one.tensor) or 0.0, origins=around)


def _extremes(result: _Result, names: Names, words: frozenset[str]) -> tuple[ExtremeFact, ...]:
    """Variables that some text speaks of which are not finite, but the result."""
    said = [(path, one) for path, one in names.tensors if path in words and path != result.path]
    return extremes_of([one for one in said if type(one[1]) is torch.Tensor])[:_NAMES]


@lru_cache(maxsize=8)
def _words(code: str) -> frozenset[str]:
    """What the text of a cell names: `x`, `batch.x`."""
    tree = syntax.parse(code)
    return frozenset(dotted(one) for one in syntax.walk(tree)) if tree is not None else frozenset()
