"""Copies that `torch.tensor` makes on the way to a loss, found in the text of a cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from torch_inspector.facts import CopyFact, syntax
from torch_inspector.observe.source import dotted

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_LONGEST = 80


def copy_facts(tree: ast.Module, offset: int) -> tuple[CopyFact, ...]:
    """All such calls, by line."""
    if not any(map(_is_copy, syntax.walk(tree))):
        return ()
    scopes = [tree, *(n for n in syntax.walk(tree) if isinstance(n, _FUNCTIONS))]
    found = [fact for scope in scopes for fact in _in_scope(scope)]
    moved = (f._replace(line=f.line + offset, differentiated_line=f.differentiated_line + offset) for f in found)
    return tuple(sorted(moved, key=lambda fact: fact.line))


def _in_scope(scope: ast.AST) -> Iterator[CopyFact]:
    statements = sorted(syntax.own_statements(scope), key=lambda s: s.lineno)
    function = getattr(scope, "name", "")
    told = set[int]()
    for end, root in _differentiated(statements):
        for statement in _behind(statements, root, end):
            for call in _calls(statement):
                target = next(iter(_stored(statement)), "")
                is_root = root is call or _is_given(statement, call, dotted(root))
                names = _given(call) or (_computed(call) if is_root else ())
                if names and call.lineno not in told:
                    told.add(call.lineno)
                    text = " ".join(ast.unparse(call).split())[:_LONGEST]
                    yield CopyFact(call.lineno, text, names, target, function, end.lineno, is_root)


def _differentiated(statements: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements `x.backward()`, and `x`."""
    for statement in statements:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            yield statement, call.func.value


def _behind(statements: list[ast.stmt], root: ast.expr, end: ast.stmt) -> Iterator[ast.stmt]:
    """The statements before a `backward()` that give a value to what it goes back to; the statement itself first."""
    wanted = _loaded(root)
    yield end
    for statement in reversed([s for s in statements if s.lineno < end.lineno]):
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and _stored(statement) & wanted:
            if not isinstance(statement, ast.AugAssign):
                wanted -= _stored(statement)
            wanted |= _loaded(statement)
            yield statement


def _loaded(node: ast.AST) -> set[str]:
    return {dotted(n) for n in syntax.walk(node) if isinstance(getattr(n, "ctx", None), ast.Load)} - {""}


@lru_cache(maxsize=2_048)
def _stored(node: ast.AST) -> frozenset[str]:
    return frozenset(dotted(n) for n in syntax.walk(node) if isinstance(getattr(n, "ctx", None), ast.Store)) - {""}


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    parts = [p for p in syntax.children(statement) if isinstance(p, ast.expr)]
    yield from (cast("ast.Call", node) for part in parts for node in syntax.walk(part) if _is_copy(node))


def _is_copy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "torch.tensor" and bool(node.args)


def _is_given(statement: ast.stmt, call: ast.Call, name: str) -> bool:
    """True for `name = <the call>`."""
    return bool(name) and name in _stored(statement) and getattr(statement, "value", None) is call


def _computed(call: ast.Call) -> tuple[str, ...]:
    """The argument itself, if it is computed: `net(x).mean().item()`."""
    text = ast.unparse(call.args[0])
    return (text,) if any(isinstance(n, ast.Call) for n in syntax.walk(call.args[0])) and len(text) <= _LONGEST else ()


def _given(call: ast.Call) -> tuple[str, ...]:
    """Names of what is copied: the argument, elements of a list, what a comprehension goes through."""
    argument = call.args[0]
    parts = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
    if isinstance(argument, ast.ListComp) and isinstance(argument.elt, ast.Name):
        parts = [generator.iter for generator in argument.generators]
    return tuple(name for name in map(dotted, parts) if name and not name.endswith((".data", ".shape")))
