"""A product of two tensors that is added up along axes which both have: one call of `einsum` computes it."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.place import Shape

_LETTERS = "abcdefgh"
_SHAPES = 4
_ROWS = re.compile(r"(\w)(\w+),(\w)\2->(\1\3|\3\1)")
_BATCHES = re.compile(r"(\w)(\w)(\w),\1(\w)\3->\1(\2\4|\4\2)")


def contraction(shapes: tuple[Shape, ...]) -> str:
    """`abd,acd->abc` for a table of four axes of which the last is added up; empty where the sizes do not tell.

    Args:
        shapes: Those of the table, its two operands with axes of length 1 where they are stretched, and the result.
    """
    table, *sides, result = shapes if len(shapes) == _SHAPES else ((), (), (), ())
    if not table or len(table) > len(_LETTERS) or 1 in table:
        return ""
    first, second = (_letters(side, table) for side in sides)
    ways = [left for left in combinations(range(len(table)), len(result)) if _sizes(table, left) == result]
    ways = [left for left in ways if all(_LETTERS[i] in first and _LETTERS[i] in second for i in _others(table, left))]
    if len(ways) != 1 or not first or not second:
        return ""
    return f"{first},{second}->{''.join(_LETTERS[i] for i in ways[0])}"


def is_of_rows(shapes: tuple[Shape, ...]) -> bool:
    """True for all pairs of rows, of which everything but the two numbers of the rows is added up."""
    return _ROWS.fullmatch(contraction(shapes)) is not None


def is_of_batches(shapes: tuple[Shape, ...]) -> bool:
    """True for all pairs of rows in each part of a batch."""
    return _BATCHES.fullmatch(contraction(shapes)) is not None


def _letters(side: Shape, table: Shape) -> str:
    """The axes of the table along which an operand is not stretched."""
    missing = len(table) - len(side)
    return "".join(_LETTERS[missing + i] for i, n in enumerate(side) if n != 1)


def _sizes(table: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(table[i] for i in axes)


def _others(table: Shape, axes: tuple[int, ...]) -> list[int]:
    return [i for i in range(len(table)) if i not in axes]
