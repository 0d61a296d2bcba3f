"""Whether code asks of what it has collected what only tensors have: then `.item()` is no way to keep it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.growth import Growth
from torch_inspector.observe.source import dotted

_Loop = ast.For | ast.comprehension
# Functions whose result is a tensor where the list has tensors.
_PICKS = frozenset(["sum", "max", "min"])
# Functions that take a list of tensors, or a tensor, and no number.
_JOINS = frozenset(["stack", "cat", "concat", "vstack", "hstack"])
_READS = frozenset(
    ["item", "detach", "cpu", "numpy", "tolist", "mean", "sum", "clone", "to", "data", "backward", "grad_fn", "float"]
)


def needs_tensors(tree: ast.AST, found: Growth) -> bool:
    """True if the code calls a method of tensors on the variable, or on what is in it, or joins what is in it."""
    target = _target(found.node)
    name = dotted(target) if target is not None else ""
    return bool(name) and name in _needed(tree)


def _target(node: ast.AST) -> ast.AST | None:
    """`losses` of `losses.append(x)`, `log['a'][k] = x`, `total += x`."""
    target: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value
    elif isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign):
        target = node.targets[0]
    return syntax.whole_of(target) if target is not None else None


@lru_cache(maxsize=32)
def _needed(tree: ast.AST) -> frozenset[str]:
    """Names of variables, or of what they hold, of which that is asked."""
    nodes = list(syntax.walk(tree))
    elements = dict(pair for node in nodes if isinstance(node, _Loop) for pair in _elements(node))
    asked = [name for node in nodes for name in _asked(node)]
    summed = {
        (target.id, name)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        for name in _summed(node.value)
    }
    asked += [name for target, name in summed if target in asked]
    return frozenset((*asked, *(elements[name] for name in asked if name in elements)))


def _elements(loop: ast.For | ast.comprehension) -> Iterator[tuple[str, str]]:
    """Variables of a loop with what it goes through: `e` and `losses`."""
    sources = loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]
    for target in syntax.walk(loop.target):
        if isinstance(target, ast.Name):
            yield from (
                (target.id, dotted(syntax.whole_of(source))) for source in sources if dotted(syntax.whole_of(source))
            )


def _asked(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and node.attr in _READS:
        yield dotted(syntax.whole_of(node.value))
        yield from _summed(node.value)
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _JOINS and node.args:
        yield dotted(syntax.whole_of(node.args[0]))


def _summed(value: ast.expr) -> Iterator[str]:
    """`losses` of `sum(losses)`, `sum(losses) / n` and `sum(losses[1:])`, and of `max` and `min` of them."""
    for node in syntax.walk(value):
        if isinstance(node, ast.Call) and dotted(node.func) in _PICKS and node.args:
            parts = node.args[0].generators[0].iter if isinstance(node.args[0], ast.GeneratorExp) else node.args[0]
            yield dotted(syntax.whole_of(parts))
