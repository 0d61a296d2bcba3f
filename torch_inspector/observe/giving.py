"""Statements as what they are to a reader who looks for a name: which names they speak of, and give a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.comparing import SIGNS
from torch_inspector.observe.source import dotted


class Line(NamedTuple):
    """A statement without others inside, or a lambda."""

    node: ast.AST
    names: frozenset[str]
    """Names and attributes in it."""
    compares: bool
    """True if a comparison is in it, in whichever way it is written."""

    @classmethod
    def of(cls, node: ast.AST) -> Line:
        """The same, gone through once."""
        names = frozenset(named_in(node))
        compares = bool(names & SIGNS) or any(type(one) is ast.Compare for one in syntax.walk(node))
        return cls(node, names, compares)


def named_in(node: ast.AST) -> Iterator[str]:
    """Names and attributes in a part of the text."""
    for one in syntax.walk(node):
        if type(one) is ast.Name:
            yield one.id
        elif type(one) is ast.Attribute:
            yield one.attr


def last_of(name: str) -> str:
    """`ok` of `self.ok`, `out` of `out['c']`."""
    return name.partition("[")[0].rpartition(".")[2]


def called(value: ast.AST) -> str:
    """What a name, an attribute or an entry by a constant is called; "" for anything else."""
    entry = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
    return ast.unparse(value) if entry else dotted(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""


def given(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives a value, each with its own."""
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
        pairs: list[tuple[ast.expr, ast.expr]] = [(statement.target, statement.value)]
    else:
        pairs = [(one, statement.value) for one in statement.targets] if isinstance(statement, ast.Assign) else []
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from ((called(one), own) for one, own in zip(target.elts, value.elts, strict=False) if called(one))
        elif called(target):
            yield called(target), value
