"""Comprehensions in whose elements a frame is at this moment."""

from __future__ import annotations

import ast
from itertools import islice
from types import FrameType

from torch_inspector.facts import syntax
from torch_inspector.observe.turns import Comprehension, parts_of_turn

FRAMES = frozenset(("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"))
"""Names of the code of comprehensions that have a frame of their own: of lists, before Python 3.12."""


def around(tree: ast.AST, frame: FrameType) -> list[Comprehension]:
    """The comprehensions around the call that a frame is making, innermost first."""
    first, last = _position(frame)
    nodes = [node for node in syntax.walk(tree) if isinstance(node, Comprehension)]
    holding = [node for node in nodes if any(_holds(part, first, last) for part in parts_of_turn(node))]
    return sorted(holding, key=lambda node: (-node.lineno, -node.col_offset))


def _holds(node: ast.AST, first: tuple[int, int], last: tuple[int, int]) -> bool:
    begins = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    ends = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
    return begins <= first and last <= ends


def _position(frame: FrameType) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the call begins and ends; a place in no text where the code does not say it, as before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    found = next(islice(positions(), frame.f_lasti // 2, None), None) if positions is not None else None
    line, end_line, column, end_column = found or (None, None, None, None)
    if line is None or end_line is None or column is None or end_column is None:
        return (0, 0), (0, 0)
    return (line, column), (end_line, end_column)
