"""Comprehensions in whose elements an instruction of some code is."""

from __future__ import annotations

import ast
from itertools import islice
from types import CodeType

from torch_inspector.facts import syntax
from torch_inspector.observe.turns import Comprehension, parts_of_turn

FRAMES = frozenset(("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"))
"""Names of the code of comprehensions that have a frame of their own: of lists, before Python 3.12."""


def around(tree: ast.AST, code: CodeType, lasti: int) -> list[Comprehension]:
    """The comprehensions around the call of an instruction, innermost first."""
    first, last = _position(code, lasti)
    nodes = [node for node in syntax.walk(tree) if isinstance(node, Comprehension)]
    holding = [node for node in nodes if any(_holds(part, first, last) for part in parts_of_turn(node))]
    return sorted(holding, key=lambda node: (-node.lineno, -node.col_offset))


def _holds(node: ast.AST, first: tuple[int, int], last: tuple[int, int]) -> bool:
    begins = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    ends = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
    return begins <= first and last <= ends


def is_outside(node: Comprehension, code: CodeType, lasti: int) -> bool:
    """True if the call stands in a lambda, which has a frame, in the comprehension."""
    first, last = _position(code, lasti)
    inner = [one for one in syntax.walk(node) if isinstance(one, ast.Lambda)]
    return any(_holds(one.body, first, last) for one in inner)


def _position(code: CodeType, lasti: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the call begins and ends; a place in no text where the code does not say it, as before Python 3.11."""
    positions = getattr(code, "co_positions", None)
    found = next(islice(positions(), lasti // 2, None), None) if positions is not None else None
    line, end_line, column, end_column = found or (None, None, None, None)
    if line is None or end_line is None or column is None or end_column is None:
        return (0, 0), (0, 0)
    return (line, column), (end_line, end_column)
