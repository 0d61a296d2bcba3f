"""Maps (batch, channels, height, width) that a view cuts into (batch, channels * width, height, 1): what says so."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.tensors import is_crossed
from torch_inspector.facts.viewed import cut_to

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import PatternFact
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.viewed import Cut

# Of a pattern: the view, what made the maps, and a layer that reads the result.
_WITH_READER = 3
_HEIGHT = 2


class Cause(Enum):
    """Why rows are thought to be cut."""

    NONE = "another view"
    CHANCE = "the sizes alone: groups of a few numbers of a row may be as long as there are rows"
    READER = "a layer takes the channels times the width for its features"
    TEXT = "the text gives the height"


def rows_cut(run: Run, pattern: PatternFact) -> Cause:
    """What tells that a view cuts the rows of maps."""
    if len(pattern.shapes) < 2 or not is_crossed(*pattern.shapes[:2]):  # noqa: PLR2004  (before and after)
        return Cause.NONE
    cut = cut_to(run, pattern.shapes[1])
    if cut is not None and _says_axis(run, cut, _HEIGHT):
        return Cause.TEXT
    return Cause.READER if len(pattern.nodes) >= _WITH_READER else Cause.CHANCE


def _says_axis(run: Run, cut: Cut, axis: int) -> bool:
    """True if a size of a view is written as that of the same axis: `h` after `b, c, h, w = x.shape`, `x.size(2)`."""
    tree, line = syntax.parse(run.source_of(cut.place.cell)), cut.place.line
    written = cut.sizes[axis] if axis < len(cut.sizes) else ""
    if tree is None or line is None:
        return False
    own = syntax.own_expressions(syntax.scope_at(tree, line))
    given = [one.targets[0] for one in own if isinstance(one, ast.Assign) and _asks_sizes(one.value)]
    names = [one.elts[axis] for one in given if isinstance(one, (ast.Tuple, ast.List)) and axis < len(one.elts)]
    return written in map(ast.unparse, names) or written.endswith((f".shape[{axis}]", f".size({axis})"))


def _asks_sizes(value: ast.expr) -> bool:
    return ast.unparse(value).endswith((".shape", ".size()"))
