"""A loop that only hands elements of tensors on, written for all of them: `out[:] = x[:]` for `out[i] = x[i]`."""

from __future__ import annotations

import ast
from copy import deepcopy

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.lengths import is_range, range_length
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.source import dotted

_Axes = tuple[int | None, ...]
_TURN = (None,)


def all_places(scope: Scope, loop: ast.AST) -> str:
    """The statements of such a loop without it; empty for a loop that does anything else."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not is_range(loop.iter):
        return ""
    count, name = range_length(scope, loop.iter), loop.target.id
    if len(loop.iter.args) != 1 or not count:  # type: ignore[attr-defined]
        return ""
    turned, pairs = _Turned(scope, name, count), [pair for one in loop.body for pair in _pairs(one)]
    if None in pairs or not all(pair is not None and turned.fits(*pair) for pair in pairs):
        return ""
    lines = [ast.unparse(turned.visit(deepcopy(one))) for one in loop.body]
    left = any(isinstance(one, ast.Name) and one.id == name for line in lines for one in syntax.walk(ast.parse(line)))
    return "" if left or turned.refused or not turned.count else "\n".join(lines)


def _pairs(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr] | None]:
    """What an assignment of elements, of names and of constants hands on, one by one; a None for anything else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [None]
    sides = (statement.targets[0], statement.value)
    targets, values = (list(one.elts) if isinstance(one, ast.Tuple) else [one] for one in sides)
    plain = all(isinstance(one, (ast.Subscript, ast.Name, ast.Constant)) for one in values)
    fits = plain and len(targets) == len(values) and all(isinstance(one, (ast.Subscript, ast.Name)) for one in targets)
    return [*zip(targets, values, strict=True)] if fits else [None]


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


class _Turned(ast.NodeTransformer):
    """Puts `:` in the place of a variable that goes over a whole axis."""

    def __init__(self, scope: Scope, name: str, count: int) -> None:
        self.scope, self.name, self.length = scope, name, count
        self.count, self.refused = 0, False
        self.given: dict[str, _Axes] = {}
        """Axes of the names that the loop gives a value."""

    def fits(self, target: ast.expr, value: ast.expr) -> bool:
        """True if what one turn writes goes to the same places where all is written at once."""
        given = self._axes(value)
        if given is None or isinstance(target, ast.Name):
            self.given |= {target.id: given} if given is not None and isinstance(target, ast.Name) else {}
            return given is not None
        to, picked = self._axes(target), isinstance(target, ast.Subscript) and any(map(self._picks, _parts(target)))
        if to is None or (picked and None in given):
            return False
        # What does not depend on the turn is stretched along the first axis.
        first = to[:1] == _TURN or None not in to
        return to == given or (first and None not in given and len(given) < max(len(to), 1))

    def _axes(self, node: ast.expr) -> _Axes | None:
        """Sizes of the axes that an expression has, with None for that of the turns; None if they are not known."""
        if isinstance(node, ast.Name) and node.id in self.given:
            return self.given[node.id]
        if not isinstance(node, ast.Subscript):
            value = node.value if isinstance(node, ast.Constant) else self.scope.names.value(node)
            return () if is_one_of(value, (int, float, bool)) else shape_of(value)
        shape, parts = shape_of(self.scope.names.value(node.value)) if dotted(node.value) else None, _parts(node)
        if not shape or len(parts) > len(shape):
            return None
        sizes = [self._size(part, size) for part, size in zip(parts, shape, strict=False)]
        picks = [at for at, part in enumerate(parts) if self._picks(part)]
        apart = bool(picks) and (picks[-1] - picks[0] >= len(picks) or sizes.count(None) > len(picks))
        if -1 in sizes or apart:
            return None
        left = [one for at, one in enumerate(sizes) if one != 0 and at not in picks[1:]]
        return (*left, *shape[len(parts) :])

    def _picks(self, index: ast.expr) -> bool:
        """True for a name that each turn gives another place: all of them together are taken in pairs."""
        return isinstance(index, ast.Name) and self.given.get(index.id) == _TURN

    def _size(self, index: ast.expr, size: int) -> int | None:
        """What is left of an axis: 0 for a number, None for the turn, -1 if it is not known."""
        if self._picks(index) or (isinstance(index, ast.Name) and index.id == self.name):
            return None
        if isinstance(index, ast.Slice):
            return size if ast.unparse(index) == ":" else -1
        alone = isinstance(index, ast.Name) and self.given.get(index.id) == ()
        return 0 if alone or type(self.scope.names.value(index)) is int else -1

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Looks at one index."""
        shape, parts = shape_of(self.scope.names.value(node.value)) if dotted(node.value) else None, _parts(node)
        own = [i for i, one in enumerate(parts) if isinstance(one, ast.Name) and one.id == self.name]
        if not shape or len(parts) > len(shape) or len(own) > 1 or any(shape[i] != self.length for i in own):
            self.refused = True
            return node
        self.count += len(own)
        for i in own:
            parts[i] = ast.Slice()
        node.slice = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return node
