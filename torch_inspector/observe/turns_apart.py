"""Whether a turn of a loop needs what turns before it have left: then nothing can do all of them at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_ADDS = (ast.Add, ast.Mult)


def depends(parts: list[ast.AST]) -> bool:
    """True for the nodes of a loop that hands something on. Sums, products and extremes by themselves do not count."""
    return any(_carries(one) for one in parts) or _reads_list(parts) or _reads_total(parts) or _reads_place(parts)


def indexed(part: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
    """What is indexed, and all its indices: `x` and `i`, `j` of `x[i][j]`."""
    owner: ast.expr = part
    indices: list[ast.expr] = []
    while isinstance(owner, ast.Subscript):
        inner = owner.slice.elts if isinstance(owner.slice, ast.Tuple) else [owner.slice]
        indices, owner = [*inner, *indices], owner.value
    return owner, indices


def _carries(statement: ast.AST) -> bool:
    """True for `a = 0.9 * a + x[i]`."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Name) and not isinstance(statement.op, _ADDS)
    if not isinstance(statement, ast.Assign):
        return False
    own, value = _named(statement), statement.value
    if not own & syntax.names_in(value):
        return False
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        rest = [one for one in sides if not (isinstance(one, ast.Name) and one.id in own)]
        return not isinstance(value.op, _ADDS) or len(rest) != 1 or bool(own & syntax.names_in(rest[0]))
    return not (isinstance(value, ast.Call) and dotted(value.func) in ("max", "min"))


def _named(statement: ast.Assign) -> set[str]:
    targets = (one for target in statement.targets for one in (target, *getattr(target, "elts", ())))
    return {one.id for one in targets if isinstance(one, ast.Name)}


def _reads_list(parts: list[ast.AST]) -> bool:
    """True if a list that the loop appends to is read in it as well."""
    calls = [one.func for one in parts if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    owners = [one.value for one in calls if one.attr == "append"]
    grown, own = {dotted(one) for one in owners} - {""}, {id(one) for one in owners}
    return any(
        isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) in grown and id(one) not in own for one in parts
    )


def _reads_total(parts: list[ast.AST]) -> bool:
    """True if a total is read elsewhere: `w += step` after `w @ x[i]`; or a name before the turn gives it its value."""
    totals = {one.target.id for one in parts if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    own: set[int] = set()
    for one in parts:
        if isinstance(one, ast.Assign) and _named(one) & syntax.names_in(one.value):
            totals |= _named(one)
            own.update(map(id, syntax.walk(one.value)))
    read = [one for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and id(one) not in own]
    if any(one.id in totals for one in read):
        return True
    given = dict(_given(parts))
    return any((one.lineno, one.col_offset) < given.get(one.id, (0, 0)) for one in read)


def _given(parts: list[ast.AST]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Names with where the loop first gives them a value; `if v > best: best = v` is an extreme."""
    tests = (one for one in parts if isinstance(one, ast.If))
    tested = {id(inner): syntax.names_in(one.test) for one in tests for inner in syntax.walk(one)}
    found: dict[str, tuple[int, int]] = {}
    for one in parts:
        if isinstance(one, ast.Assign):
            place = (one.lineno, one.col_offset)
            for name in _named(one) - tested.get(id(one), set()):
                found[name] = min(place, found.get(name, place))
    yield from found.items()


def _reads_place(parts: list[ast.AST]) -> bool:
    """True if the loop writes to `d[i, j]` and reads `d[i, k]`, or has one place for what several turns read there."""
    stored = [one for one in parts if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)]
    owners, texts = {ast.unparse(indexed(one)[0]) for one in stored}, {ast.unparse(one) for one in stored}
    read = [one for one in parts if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load)]
    if any(
        ast.unparse(indexed(one)[0]) in owners and ast.unparse(one) not in texts
        for one in read
        if not _within(one, stored)
    ):
        return True
    counters = _counters(parts)
    fixed = {ast.unparse(one) for one in stored if not _places(one) & counters}
    return any(ast.unparse(one) in fixed for one in read)


def _places(part: ast.Subscript) -> set[str]:
    return {name for index in indexed(part)[1] for name in syntax.names_in(index)}


def _counters(parts: list[ast.AST]) -> set[str]:
    """Variables that have another value in each turn: of `range` and `enumerate`; values of a tensor come again."""
    found: set[str] = set()
    for one in parts:
        if isinstance(one, (ast.For, ast.comprehension)) and isinstance(one.iter, ast.Call):
            target = one.target.elts[0] if isinstance(one.target, ast.Tuple) and one.target.elts else one.target
            counts = dotted(one.iter.func).rpartition(".")[2] in ("range", "trange", "enumerate")
            found |= syntax.names_in(target) if counts else set()
    return found


def _within(part: ast.Subscript, stored: list[ast.Subscript]) -> bool:
    """True for the `m[i]` of a stored `m[i][j]`."""
    return any(inner is part for one in stored for inner in syntax.walk(one))
