"""Views that, by the text itself, bring sizes into another order: `q.view(b, n, h, -1)`, then `q.view(b, h, n, -1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.sole import Written, written
from torch_inspector.facts.worked_out import names_worked_out

if TYPE_CHECKING:
    from torch_inspector.facts.place import Cell, Shape
    from torch_inspector.facts.run import Run

_METHODS = frozenset(["view", "reshape"])
_FEWEST = 3
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WORKED_OUT = (ast.BinOp, ast.UnaryOp)


class Viewed(NamedTuple):
    """A variable that one view gives some sizes, and the next the same ones in another order."""

    name: str
    place: Place
    text: str
    order: tuple[int, ...]
    """For each axis, where it was before."""


def viewed_again(run: Run) -> tuple[Viewed, ...]:
    """All of them in the functions of the cells so far, each once."""
    cells = {past.cell.source: past.cell for past in (*run.earlier, run)}
    return tuple(dict.fromkeys(one for cell in cells.values() for one in _viewed_in(cell)))


def computes_sizes(run: Run, after: Shape) -> bool:
    """True if a view in the texts works out one of its sizes in front: `h.reshape(-1, segment, width)`.

    Args:
        run: Its cell is read, and those before it.
        after: What the view came to; one to another number of sizes, or to others, is not meant.
    """
    sources = dict.fromkeys(past.cell.source for past in (*run.earlier, run))
    trees = [tree for source in sources if (tree := syntax.parse(source)) is not None]
    scopes = (node for tree in trees for node in syntax.walk(tree) if isinstance(node, _SCOPES))
    return any(_computes_in(scope, trees, after) for scope in scopes)


def sizes_written(text: str) -> tuple[str, ...]:
    """The sizes in `x.view(b * t, c, -1)`; none for other expressions, and where one may stand for several."""
    call = syntax.expression(text)
    sizes = _sizes(call) if isinstance(call, ast.Call) else []
    return () if any(isinstance(one, ast.Starred) for one in sizes) else tuple(map(ast.unparse, sizes))


def _computes_in(scope: ast.AST, trees: list[ast.Module], after: Shape) -> bool:
    """The same in one scope; a name that is given a product or a quotient there is worked out as well."""
    calls = (node for node in syntax.own_expressions(scope) if isinstance(node, ast.Call))
    views = [sizes for node in calls if (sizes := _sizes(node))]
    names = names_worked_out(scope, trees) if views else set()
    return any(_computes(sizes, after, names) for sizes in views)


def _computes(sizes: list[ast.expr], after: Shape, names: set[str]) -> bool:
    if any(isinstance(one, ast.Starred) for one in sizes):
        return True
    pairs = list(zip(sizes, after, strict=False)) if len(sizes) == len(after) else []
    fits = all(type(one.value) is not int or one.value == n for one, n in pairs if isinstance(one, ast.Constant))
    return fits and any(isinstance(one, _WORKED_OUT) or ast.unparse(one) in names for one, _ in pairs[:-1])


def _sizes(call: ast.Call) -> list[ast.expr]:
    """The sizes that a view is given; none for other calls."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _METHODS:
        return []
    of_torch = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    sizes = call.args[1:] if of_torch else call.args
    return sizes[0].elts if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)) else sizes


def _viewed_in(cell: Cell) -> Iterator[Viewed]:
    tree = syntax.parse(cell.source)
    scopes = [one for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef)] if tree is not None else []
    for scope in scopes:
        sizes: dict[str, list[str]] = {}
        for node in sorted(_stores(scope), key=lambda one: one.lineno):
            name, value = node.targets[0].id, node.value  # type: ignore[attr-defined]
            source, after = _view(value)
            before = sizes.get(source, [])
            if len(after) >= _FEWEST and sorted(before) == sorted(after) != before and len(set(after)) == len(after):
                order = tuple(before.index(one) for one in after)
                if order != tuple(range(len(order))):
                    yield Viewed(source, Place(cell.number, node.lineno, scope.name), ast.unparse(value), order)
            sizes[name] = after


def _stores(scope: ast.FunctionDef) -> Iterator[ast.Assign]:
    for node in syntax.own_expressions(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node


def _view(value: ast.expr) -> tuple[str, list[str]]:
    """The variable that is viewed, if it is one, and the sizes as written."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr not in _METHODS:
        return "", []
    source = value.func.value
    return source.id if isinstance(source, ast.Name) else "", [ast.unparse(one) for one in value.args]


class Cut(NamedTuple):
    """A call of `view` or `reshape` in the text."""

    name: str
    """What is viewed, as written: `out`, `lin(x)`."""
    text: str
    place: Place
    sizes: tuple[str, ...]
    """As written; empty where they are one value, such as `y.shape`."""

    def fits(self, after: Shape) -> bool:
        """True if there are as many sizes, and those written as numbers are the same."""
        pairs = zip(self.sizes, after, strict=False)
        same = (one in (str(size), "-1") or not one.lstrip("-").isdigit() for one, size in pairs)
        return len(self.sizes) == len(after) and all(same)


def cut_to(run: Run, after: Shape) -> Cut | None:
    """The only view in the text that can have given these sizes: of this cell, or else of functions before it."""
    found = [_cut(one) for one in written(run, _is_cut)]
    own = [one for one in found if one.place.cell == run.cell.number] or found
    fitting = [one for one in own if one.fits(after)]
    if len(fitting) == 1:
        return fitting[0]
    return own[0] if len(own) == 1 and not own[0].sizes else None


def _is_cut(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    return named and ast.unparse(node.func.value) not in ("torch", "np", "numpy")  # type: ignore[attr-defined]


def _cut(one: Written) -> Cut:
    node: Any = ast.parse(one.text, mode="eval").body
    given = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
    plain = len(given) > 1 and not any(isinstance(size, ast.Starred) for size in given)
    sizes = tuple(map(ast.unparse, given)) if plain else ()
    name = ast.unparse(node.func.value)
    closed = isinstance(node.func.value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return Cut(name if closed else f"({name})", one.text, one.place, sizes)
