"""What the texts compute a variable from: every name that stands in its assignments, and in those of these names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_Words = frozenset[str]


def words_behind(run: Run, name: str) -> _Words:
    """Names of variables, attributes and functions; `name` may be an expression such as `batch['y']`."""
    sources = dict.fromkeys(past.cell.source for past in (*run.earlier, run))
    indices = [_index(source) for source in sources]
    node = syntax.expression(name)
    found, waiting = set[str](), set(_words(node)) if node is not None else {name}
    while waiting:
        found |= waiting
        waiting = {word for one in waiting for index in indices for word in index.get(one, ())} - found
    return frozenset(found)


@lru_cache(maxsize=64)
def _index(source: str) -> dict[str, _Words]:
    """What each name of a text is assigned, or given as an argument, or returns."""
    tree, found = syntax.parse(source), dict[str, set[str]]()
    nodes = list(syntax.walk(tree)) if tree is not None else []
    functions = {one.name: one for one in nodes if isinstance(one, ast.FunctionDef)}
    for node in nodes:
        for name, words in (*_assigned(node), *_passed(node, functions)):
            found.setdefault(name, set()).update(words)
        if isinstance(node, ast.FunctionDef):
            returned = (one for one in syntax.own_statements(node) if isinstance(one, ast.Return))
            found.setdefault(node.name, set()).update(*map(_words, returned))
    return {name: frozenset(words) for name, words in found.items()}


def _assigned(node: ast.AST) -> Iterator[tuple[str, _Words]]:
    """Each target of an assignment with the words of its value; of `a, b = f(), g()` each has its own."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    value = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension)):
        return
    for target in targets:
        yield from _pairs(target, value)


def _pairs(target: ast.expr | None, value: ast.expr | None) -> Iterator[tuple[str, _Words]]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    matching = values if len(values) == len(parts) and len(parts) > 1 else [value] * len(parts)
    for part, one in zip(parts, matching, strict=True):
        name = getattr(part, "id", "") or getattr(part, "attr", "")
        if name and one is not None:
            yield name, _words(one)


def _passed(node: ast.AST, functions: dict[str, ast.FunctionDef]) -> Iterator[tuple[str, _Words]]:
    """The parameters of a function of the same text with what a call gives them."""
    called = (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    if called in functions and isinstance(node, ast.Call):
        names = [one.arg for one in functions[called].args.args if one.arg != "self"]
        yield from ((name, _words(one)) for name, one in zip(names, node.args, strict=False))


def _words(node: ast.AST) -> _Words:
    parts: Iterable[ast.AST] = syntax.walk(node)
    return frozenset(word for one in parts if (word := getattr(one, "id", "") or getattr(one, "attr", "")))
