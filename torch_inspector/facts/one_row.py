"""Classes whose text asks for one row, `h.view(1, -1)`, or for rows that it counts, `h.view(n, -1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.taken_apart import given_in

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_VIEWS = ("view", "reshape")
_COUNTS = ("numel", "nelement", "prod")
# Names in a row that are followed.
_DEEPEST = 4


def asks_for_one_row(run: Run, kind: str) -> bool:
    """True if a class of the user's, or a class or function that it names, may view something as one row.

    A field of its own, as in `self.bias.view(1, -1)`, is no batch. Of rows that are counted it is not known how many
    they are, unless they are as many as there are samples, or more.
    """
    trees = [syntax.parse(one.cell.source) for one in (run, *reversed(run.earlier))]
    nodes = [one for tree in trees if tree is not None for one in syntax.walk(tree)]
    scopes = [one for one in nodes if isinstance(one, (ast.ClassDef, ast.FunctionDef))]
    own = [one for one in scopes if one.name == kind]
    named = {syntax.name_of(part) for one in own for part in syntax.walk(one)}
    inside = ((part, one) for one in scopes if one in own or one.name in named for part in syntax.walk(one))
    return any(_is_of_one_row(part, scope) for part, scope in inside if isinstance(part, ast.Call))


def _is_of_one_row(call: ast.Call, scope: ast.AST) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _VIEWS:
        return False
    by_torch = syntax.name_of(call.func.value) == "torch"
    viewed = call.args[0] if by_torch and call.args else call.func.value
    field = isinstance(viewed, ast.Attribute) and syntax.name_of(viewed.value) == "self"
    return not field and any(_begins_with_one(sizes, scope) for sizes in _sizes(call, scope, by_torch=by_torch))


def _sizes(call: ast.Call, scope: ast.AST, *, by_torch: bool) -> Iterator[list[ast.expr]]:
    """What a view is given as sizes; by each of the statements that give a name a shape."""
    named = [one.value for one in call.keywords if one.arg in ("shape", "size")]
    sizes = call.args[by_torch:] or named
    first = sizes[0] if len(sizes) == 1 else None
    whole = first.value if isinstance(first, ast.Starred) else first
    if whole is None:
        yield sizes
        return
    bound = _bound(whole, scope)
    yield from (list(one.elts) for one in (whole, *bound) if isinstance(one, (ast.Tuple, ast.List)))
    if isinstance(whole, ast.Name) and not bound:
        # A shape that comes from elsewhere: nobody knows its first size.
        yield [whole, whole]


def _begins_with_one(sizes: list[ast.expr], scope: ast.AST) -> bool:
    """True for sizes of which the first may be 1; `(-1, h.numel())` leaves one row too."""
    if len(sizes) < 2 or isinstance(sizes[0], ast.Starred):  # noqa: PLR2004
        return False
    counts = [one for size in sizes[1:] for one in syntax.walk(size) if isinstance(one, ast.Call)]
    rest = isinstance(sizes[0], ast.UnaryOp) and any(syntax.name_of(one.func) in _COUNTS for one in counts)
    return rest or _may_be_one(sizes[0], scope)


def _may_be_one(size: ast.expr, scope: ast.AST, depth: int = 0) -> bool:
    """True for a 1, for what is given a 1, and for what nobody knows: an argument, a quotient."""
    if isinstance(size, ast.Constant):
        return size.value == 1
    if isinstance(size, ast.UnaryOp) or _is_batch(size, scope, depth):
        return False
    values = _bound(size, scope) if depth < _DEEPEST else []
    return not values or any(_may_be_one(one, scope, depth + 1) for one in values)


def _is_batch(size: ast.expr, scope: ast.AST, depth: int) -> bool:
    """True for the length of a first axis, and for a multiple of it: `x.size(0)`, `len(x)`, `b` of `b, c = x.shape`."""
    if isinstance(size, ast.BinOp) and isinstance(size.op, (ast.Mult, ast.Add)):
        return any(_is_batch(one, scope, depth) for one in (size.left, size.right))
    if isinstance(size, ast.Subscript):
        return _is_shape(size.value) and isinstance(size.slice, ast.Constant) and size.slice.value == 0
    if isinstance(size, ast.Call):
        whole = size.args[:1] if syntax.name_of(size.func) == "int" else []
        return _is_length(size) or any(_is_batch(one, scope, depth) for one in whole)
    values = _bound(size, scope) if depth < _DEEPEST else []
    return bool(values) and all(_is_batch(one, scope, depth + 1) for one in values)


def _is_length(call: ast.Call) -> bool:
    given = [*call.args, *(one.value for one in call.keywords)]
    first = len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value == 0
    return syntax.name_of(call.func) == "len" or (syntax.name_of(call.func) == "size" and first)


def _is_shape(node: ast.expr) -> bool:
    """True for `x.shape` and `x.size()`."""
    return syntax.name_of(node.func if isinstance(node, ast.Call) and not node.args else node) in ("shape", "size")


def _bound(name: ast.expr, scope: ast.AST) -> list[ast.expr]:
    """What the statements of a scope give a variable or a field; of a shape that they take apart, its part."""
    return given_in(scope).get(ast.unparse(name), []) if isinstance(name, (ast.Name, ast.Attribute)) else []
