"""What the text of a scope does: which names it gives values, its loops and calls, its expressions to be judged."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Operators that somebody judges.
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_JUDGED = (
    ast.Compare, ast.Call, ast.Assign, ast.AugAssign, ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.Return,
)  # fmt: skip
# What gives a name a value that stands there as text only.
_CAPTURES = (ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.ExceptHandler)
IN_ELEMENTS = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare)
"""What may stand in the element of a comprehension, and is judged there."""
# A cell with more is generated.
_MOST = 200


_Apart = Callable[[ast.Assign], Iterator[ast.Assign]]


class Candidate(NamedTuple):
    """An expression that may be a mistake, and the statement that it stands in."""

    node: ast.AST
    statement: ast.stmt


@lru_cache(maxsize=64)
def stores_in(scope: ast.AST) -> dict[str, list[int]]:
    """Lines that give each name a value, in a scope; those of functions inside it have their own names."""
    found: dict[str, list[int]] = {}
    for node in syntax.own_expressions(scope):
        if type(node) is ast.Name and type(node.ctx) is not ast.Load:
            found.setdefault(node.id, []).append(node.lineno)
        elif type(node) in _CAPTURES and (name := getattr(node, "name", None) or getattr(node, "rest", None)):
            found.setdefault(name, []).append(node.lineno)  # type: ignore[attr-defined]
    return found


def late_at(scope: ast.AST, line: int) -> frozenset[str]:
    """Names that a line of the scope, or a later one, gives a value."""
    return frozenset(name for name, lines in stores_in(scope).items() if max(lines) >= line)


@lru_cache(maxsize=64)
def plain_stores(scope: ast.AST) -> dict[tuple[str, int], ast.Assign]:
    """Statements `name = …` that run whenever the scope does, by name and line; those in branches and loops may not.

    Of `q, k = first, second` each part stands for itself, of `q, k = both` it is `both[0]` and `both[1]`.
    """
    body = getattr(scope, "body", [])
    return {**_plain_in([body], _picked_apart), **_plain_in([body], _apart)}


@lru_cache(maxsize=64)
def loop_stores(scope: ast.AST) -> dict[tuple[str, int], ast.Assign]:
    """The same of those that run in each turn of a `for` loop of the scope."""
    return _plain_in([loop.body for loop in loops_in(scope)], _apart)


def _plain_in(blocks: list[Any], apart: _Apart) -> dict[tuple[str, int], ast.Assign]:
    found: dict[tuple[str, int], ast.Assign] = {}
    while blocks:
        block = blocks.pop()
        for one in block if isinstance(block, list) else []:  # the body of a lambda is one expression
            if isinstance(one, ast.With):
                blocks.append(one.body)
            elif isinstance(one, ast.Assign) and len(one.targets) == 1:
                parts = apart(one)
                found.update(((part.targets[0].id, one.lineno), part) for part in parts)  # type: ignore[attr-defined]
    return found


def given_apart(statement: ast.Assign) -> dict[str, ast.expr]:
    """What `q, k = first, second` gives each name, if each is given one expression of its own."""
    return {part.targets[0].id: part.value for part in _apart(statement)} if len(statement.targets) == 1 else {}  # type: ignore[attr-defined]


def _apart(statement: ast.Assign) -> Iterator[ast.Assign]:
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        yield statement
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for name, part in zip(target.elts, value.elts, strict=True):
            if isinstance(name, ast.Name) and not isinstance(part, ast.Starred):
                yield ast.copy_location(ast.Assign([name], part), statement)


def _picked_apart(statement: ast.Assign) -> Iterator[ast.Assign]:
    """What `q, k = both` gives each name: `both[0]` and `both[1]`."""
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and not isinstance(value, (ast.Tuple, ast.List)):
        for at, name in enumerate(target.elts):
            if isinstance(name, ast.Starred):
                return
            if isinstance(name, ast.Name):
                part = ast.copy_location(ast.Subscript(value, ast.Constant(at), ast.Load()), value)
                yield ast.copy_location(ast.Assign([name], part), statement)


@lru_cache(maxsize=64)
def loops_in(scope: ast.AST) -> tuple[ast.For, ...]:
    """`for` loops of a scope."""
    return tuple(node for node in syntax.own_expressions(scope) if type(node) is ast.For)


@lru_cache(maxsize=64)
def runs_in(scope: ast.AST) -> tuple[tuple[ast.Name, ast.expr], ...]:
    """Variables of loops of a scope, with what they go through."""
    return tuple((one.target, one.iter) for one in loops_in(scope) if isinstance(one.target, ast.Name))


@lru_cache(maxsize=64)
def comprehended_in(scope: ast.AST) -> dict[int, list[tuple[ast.Name, ast.expr]]]:
    """The same of the comprehensions around calls, operations and subscripts of a scope, by identity of the node."""
    found: dict[int, list[tuple[ast.Name, ast.expr]]] = {}
    for whole in syntax.own_expressions(scope):
        if not isinstance(whole, syntax.COMPREHENSIONS):
            continue
        targets = ((name, one.iter) for one in whole.generators for name in syntax.walk(one.target))
        heads = [(name, source) for name, source in targets if isinstance(name, ast.Name)]
        for node in syntax.walk(whole):
            if isinstance(node, IN_ELEMENTS):
                found.setdefault(id(node), []).extend(heads)
    return found


@lru_cache(maxsize=64)
def definitions_in(scope: ast.AST) -> dict[str, list[int]]:
    """Lines that define a function or class of each name."""
    found: dict[str, list[int]] = {}
    for one in syntax.own_expressions(scope):
        if isinstance(one, (*syntax.FUNCTIONS, ast.ClassDef)):
            found.setdefault(one.name, []).append(one.lineno)
    return found


def is_defined_below(scope: ast.AST, call: ast.Call) -> bool:
    """True if a function or method is defined anew after it was called: it was another one."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    lines = [*definitions_in(scope).get(name, ()), *stores_in(scope).get(name, ())] if name else []
    if isinstance(call.func, ast.Attribute):
        lines = _fields_stored_in(scope).get(call.func.attr, [])
    return max(lines, default=0) > getattr(call, "lineno", 0)


@lru_cache(maxsize=64)
def _fields_stored_in(scope: ast.AST) -> dict[str, list[int]]:
    """Lines that give an attribute of each name a value."""
    found: dict[str, list[int]] = {}
    for one in syntax.own_expressions(scope):
        if type(one) is ast.Attribute and type(one.ctx) is not ast.Load:
            found.setdefault(one.attr, []).append(one.lineno)
    return found


@lru_cache(maxsize=64)
def _loop_spans(scope: ast.AST) -> tuple[tuple[int, int], ...]:
    loops = [node for node in syntax.own_expressions(scope) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    return tuple((one.lineno, one.end_lineno or one.lineno) for one in loops)


def given_around(scope: ast.AST, name: str, line: int) -> bool:
    """True if a loop around a line gives a name a value: which of them it has there, the text does not tell."""
    around = [span for span in _loop_spans(scope) if span[0] <= line <= span[1]]
    return any(first <= store <= last for first, last in around for store in stores_in(scope).get(name, ()))


@lru_cache(maxsize=64)
def _statements_in_loops(scope: ast.AST) -> frozenset[int]:
    loops = [node for node in syntax.own_expressions(scope) if isinstance(node, (ast.For, ast.While))]
    return frozenset(id(inner) for loop in loops for inner in syntax.walk(loop) if isinstance(inner, ast.stmt))


def is_in_loop(scope: ast.AST, statement: ast.stmt) -> bool:
    """True for a statement of a scope that runs again and again."""
    return id(statement) in _statements_in_loops(scope)


@lru_cache(maxsize=64)
def given_in(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """Right sides that a scope assigns to each name, the parts of tuples one by one."""
    found: dict[str, list[ast.expr]] = {}
    for node in syntax.own_expressions(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in _parts(target, node.value):
                    found.setdefault(name, []).append(value)
    return found


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names of a target with the part of the value that each is given, or all of it."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for i, one in enumerate(target.elts):
            yield from _parts(one, cast("Any", value).elts[i] if same else value)


@lru_cache(maxsize=64)
def calls_in(scope: ast.AST) -> tuple[ast.Call, ...]:
    """Calls of a scope, those of functions inside it left out."""
    return tuple(node for node in syntax.own_expressions(scope) if type(node) is ast.Call)[:_MOST]


@lru_cache(maxsize=128)
def candidates(scope: ast.AST) -> tuple[Candidate, ...]:
    """Expressions of a scope that somebody may judge, in the order of the text."""
    found: list[Candidate] = []
    stack: list[tuple[ast.AST, ast.stmt | None]] = [(child, None) for child in _parts_of(scope)]
    while stack:
        node, statement = stack.pop()
        statement = node if isinstance(node, ast.stmt) else statement
        if statement is not None and _may_matter(node):
            found.append(Candidate(node, statement))
        if not isinstance(node, syntax.INNER):
            stack.extend([(child, statement) for child in syntax.children(node)])
    return tuple(sorted(found, key=lambda one: getattr(one.node, "lineno", 0))[:_MOST])


def _parts_of(scope: ast.AST) -> Iterable[ast.AST]:
    """Statements of a scope; a lambda has one that it gives back."""
    if isinstance(scope, ast.Lambda):
        return [ast.copy_location(ast.Return(scope.body), scope.body)]
    return syntax.children(scope)


def _may_matter(node: ast.AST) -> bool:
    if type(node) is ast.BinOp:
        return type(node.op) in _OPERATORS
    if type(node) is ast.Subscript:
        # `x[:, numbers]`, `x[torch.arange(n), 2]`: other subscripts are many, and nobody judges them.
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        return len(parts) == 2 and isinstance(parts[0], (ast.Slice, ast.Call)) and type(node.ctx) is ast.Load  # noqa: PLR2004
    return type(node) in _JUDGED


def target_of(statement: ast.stmt) -> str:
    """The one variable that a statement gives its value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return dotted(targets[0]) if len(targets) == 1 and targets[0] is not None else ""


def stored_last(node: ast.AST) -> set[str]:
    """The last name of what a node gives a value."""
    return {syntax.name_of(node)} if isinstance(getattr(node, "ctx", None), ast.Store) else set()
