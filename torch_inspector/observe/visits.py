"""Loops of Python that visit the elements of a tensor one by one, where all of them could be visited at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import torch
from torch import nn

from torch_inspector.facts import ExpressionFact, Shape, syntax
from torch_inspector.observe.all_places import all_places
from torch_inspector.observe.at_once import at_once, viewed
from torch_inspector.observe.bounds import bound_of
from torch_inspector.observe.certain import certain
from torch_inspector.observe.covered import Loop
from torch_inspector.observe.expressions import Scope, tensor_or_shape
from torch_inspector.observe.kinds import is_a
from torch_inspector.observe.known_loops import known_loop
from torch_inspector.observe.lengths import is_range, range_length
from torch_inspector.observe.loop_parts import heads_of, inside, is_given, own_names
from torch_inspector.observe.own_lengths import have_own_lengths
from torch_inspector.observe.rows_of_numbers import goes_into, hidden_in, in_lists, is_list
from torch_inspector.observe.shapes import UNKNOWN, Sized, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import loops_in
from torch_inspector.observe.straight import is_straight, reads_changed
from torch_inspector.observe.turns import last_name
from torch_inspector.observe.turns_apart import depends, indexed

# Functions that go through a tensor with a loop of their own.
_BUILTINS = frozenset(["max", "min", "sum", "sorted", "any", "all"])
# What a loop may call besides, of Python, to keep the result; and of torch all but what draws, learns or stores.
_PLAIN = _BUILTINS | frozenset(["abs", "float", "int", "bool", "round", "pow", "len", "range", "enumerate", "zip"])
_TORCHS = frozenset(["torch", "F", "functional", "math", "np", "numpy"])
_METHODS = frozenset(dir(torch.Tensor)) | {"append"}
_NOT_FOR_ALL = re.compile(r"rand|multinomial|bernoulli|normal|seed|backward|grad|hook|save|load|sleep|step|optim")
# Rows of more numbers keep torch busy; so do tensors that each turn needs whole.
_ROW, _WHOLE = 256, 4_096
# Whether they come to all elements, or in which order, may matter; and who shows elements must visit them.
_OTHER = (
    ast.Break, ast.Return, ast.While, ast.Try, ast.With, ast.Yield, ast.YieldFrom, ast.Await, ast.JoinedStr, ast.Lambda,
    ast.FunctionDef, ast.ClassDef, ast.NamedExpr, ast.Raise, ast.Assert, ast.Delete,
)  # fmt: skip


class _Visit(NamedTuple):
    """A tensor of which a loop reads or writes single elements, or short rows."""

    name: str
    times: int
    """0 where it only takes part, in long rows."""
    stored: bool = False
    text: str = ""
    """The part as written: the same one in another branch is the same element."""
    shifted: bool = False
    """True if the index is not the loop's own but one beside it: `x[i - 1]`."""


def visits(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """A loop over the elements of a tensor, or `sum(x)`, with what is visited and how often."""
    if isinstance(node, ast.Call):
        yield from _by_builtin(scope, node, statement)
    elif isinstance(node, Loop) and not any(_visited(scope, outer) for outer in _around(scope, node)):
        found = _visited(scope, node)
        hidden = hidden_in(scope.node).get(id(node), ())
        if found and not is_list(node) and not any(one.name.partition(".")[0] in hidden for one in found):
            known = known_loop(scope, node)
            names = tuple(dict.fromkeys(one.name for one in found))
            names = names if known is None or known.written in names else (known.written, *names)
            said = known.text if known is not None else _said(scope, node, found[0].name) or all_places(scope, node)
            yield scope.fact("visits", node, statement, names=names, shapes=_counts(node, found), detail=said)


def _said(scope: Scope, loop: Loop, name: str) -> str:
    """The same in one call, if that is known."""
    whole = ast.parse(name, mode="eval").body
    known = at_once(scope, loop, name, _shape(scope, whole) or (), scope.names.value(whole))
    return known or (_of_rows(scope, loop) or "" if not isinstance(loop, ast.For) else "")


def _of_rows(scope: Scope, loop: ast.ListComp | ast.GeneratorExp) -> str | None:
    """The same of a comprehension that reads the numbers of each row; None if no one call replaces it."""
    source, value = loop.generators[0].iter, scope.names.value
    shape = _shape(scope, source)
    return in_lists(loop, shape, value(viewed(source)), value) if shape is not None else None


def _counts(loop: Loop, found: list[_Visit]) -> tuple[Shape, ...]:
    """Elements that are visited at most, each once in a turn; and for certain, where that is less."""
    each = {one.text: one.times for one in found}
    always = certain(loop)
    most, least = sum(each.values()), sum(times for text, times in each.items() if text in always)
    return ((most,), (least,)) if least < most else ((most,),)


def _by_builtin(scope: Scope, call: ast.Call, statement: ast.stmt) -> Iterator[ExpressionFact]:
    """`max(x)` outside of a loop over other elements."""
    row = _gone_through(scope, call, {})
    if row is not None and dotted(call.args[0]) and not any(_visited(scope, outer) for outer in _around(scope, call)):
        name = dotted(call.func)
        said = f"{row.name}.sort().values" if name == "sorted" else f"{row.name}.{name}()"
        yield scope.fact("visits", call, statement, names=(row.name,), shapes=((row.times,),), detail=said)


def _around(scope: Scope, node: ast.AST) -> list[ast.For]:
    return [loop for loop in loops_in(scope.node) if loop is not node and any(one is node for one in syntax.walk(loop))]


def _visited(scope: Scope, loop: Loop) -> list[_Visit]:
    """Tensors whose elements or short rows a loop visits, if that is all it does, and in any order."""
    parts, found = list(syntax.own_expressions(loop)), list[_Visit]()
    if not _is_simple(scope, [loop, *parts]) or have_own_lengths(parts) or not _collect(scope, loop, {}, found):
        return []
    if any(map(_reads_beside, found, [found] * len(found))) or not any(one.times for one in found):
        return []
    return sorted(found, key=lambda one: one.stored)


def _reads_beside(one: _Visit, found: list[_Visit]) -> bool:
    """True for `x[i - 1]` beside `x[i] = …`; where one place is stored in each turn, any index is as good."""
    others = [other for other in found if other.name == one.name]
    return one.shifted and any(other.stored for other in others) and len({other.text for other in others}) > 1


def _collect(scope: Scope, node: ast.AST, turns: dict[str, int], found: list[_Visit]) -> bool:
    """Adds what a part of a loop visits; False if its turns cannot be told, or one of them needs a large tensor."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (shape := _shape(scope, node)) is not None:
        return prod(shape) <= _WHOLE
    visit = None
    if isinstance(node, ast.Subscript):
        visit = _element(scope, node, turns)
    elif isinstance(node, ast.Call):
        visit = _gone_through(scope, node, turns)
    if visit is not None:
        found.append(visit)
        return True
    children = list(syntax.children(node))
    if isinstance(node, Loop):
        for head in heads_of(node):
            counts, given = _turns(scope, head)
            if not counts:
                return False
            turns = {**turns, **counts}
            found.extend(_visit(name, shape, turns) for name, shape in given.items())
            turns = {**_read(scope, node, turns), **turns}
        return _collect_rows(scope, node, turns, found)
    return all(_collect(scope, child, turns, found) for child in children)


def _collect_rows(scope: Scope, node: Loop, turns: dict[str, int], found: list[_Visit]) -> bool:
    """The same of what a loop does in each turn, where its variables stand for rows: `[x for x in row]`."""
    known = scope.names.rows
    heads = [one for one in heads_of(node) if isinstance(one.target, ast.Name)]
    shapes = {one.target.id: shape for one in heads if (shape := _shape(scope, one.iter))}  # type: ignore[attr-defined]
    rows = {name: Sized(s[1:]) for name, s in shapes.items() if len(s) > 1 and not is_given(name, node)}
    if not isinstance(node, ast.For) and goes_into(node, set(rows)):
        said = _of_rows(scope, node)
        # A table of words is another than the tensor that a call would give.
        if said is None or (said.startswith("[") and len(turns) > 1):
            return False
    scope.names.rows = {**known, **dict.fromkeys(own_names(node), UNKNOWN), **rows}
    try:
        return all(_collect(scope, one, turns, found) for one in inside(node))
    finally:
        scope.names.rows = known


def _visit(name: str, shape: Shape, turns: dict[str, int]) -> _Visit:
    """A tensor that a loop itself goes through."""
    return _Visit(name, prod(turns.values()) if prod(shape[1:]) <= _ROW else 0, text=name)


def _is_simple(scope: Scope, parts: list[ast.AST]) -> bool:
    if any(isinstance(one, _OTHER) for one in parts):
        return False
    if not all(_is_for_all(scope, one.func, parts) for one in parts if isinstance(one, ast.Call)):
        return False
    return not depends(parts)


def _is_for_all(scope: Scope, function: ast.expr, parts: list[ast.AST]) -> bool:
    """True for functions of Python and torch that have no effect but their result."""
    name = last_name(function)
    if _NOT_FOR_ALL.search(name) or name.endswith("_"):
        return False
    if not isinstance(function, ast.Attribute):
        own = scope.names.value(function)
        if own is not UNKNOWN:
            if reads_changed(own, parts, scope.names.value):
                return False
            return is_straight(own, scope.reading.tree_of, lambda one: _NOT_FOR_ALL.search(one) is not None)
        return name in _PLAIN
    if dotted(function).partition(".")[0] in _TORCHS or dotted(function.value).endswith("functional"):
        return True
    return name in _METHODS and not is_a(scope.names.value(function.value), nn.Module)


def _turns(scope: Scope, head: ast.For | ast.comprehension) -> tuple[dict[str, int], dict[str, Shape]]:
    """Variables of a loop that count, with how far, and the tensors whose elements it gives one after the other."""
    target, source = head.target, head.iter
    if isinstance(source, ast.Call) and dotted(source.func) == "enumerate" and isinstance(target, ast.Tuple):
        given = source.args[:1]
    elif isinstance(source, ast.Call) and dotted(source.func) == "zip":
        given = source.args
    elif is_range(source):
        count = range_length(scope, source) or _by_words(scope, source)
        return ({target.id: count} if count and isinstance(target, ast.Name) else {}), {}
    else:
        given = [source]
    shapes = {ast.unparse(viewed(one)): shape for one in given if (shape := _shape(scope, one))}
    names = [one.id for one in syntax.walk(target) if isinstance(one, ast.Name)]
    # Numbers of Python are quick to go through; what they are places of may be a tensor.
    listed = (one.func.value for one in given if isinstance(one, ast.Call) and last_name(one.func) == "tolist")  # type: ignore[attr-defined]
    rows = (*(one for one in given if isinstance(one, ast.Subscript)), *listed)
    known = (shape_of(value) for one in rows if tensor_or_shape(value := scope.names.value(one)))
    counts = [shape[0] for shape in (*shapes.values(), *known) if shape]
    # All but the first change along with it: `for i, j in edges`.
    return ({**dict.fromkeys(names, 1), names[0]: min(counts)} if names and counts and min(counts) > 0 else {}), shapes


def _by_words(scope: Scope, source: ast.expr) -> int:
    """Turns of `range(n)` where the bound itself is not known."""
    bounds = source.args if isinstance(source, ast.Call) else []
    return bound_of(scope, bounds[0]) if len(bounds) == 1 else 0


def _read(scope: Scope, loop: Loop, turns: dict[str, int]) -> dict[str, int]:
    """Names that each turn gives an element: `i, j = edges[0, e], edges[1, e]`. They change along with the loop."""
    found: dict[str, int] = {}
    for one in loop.body if isinstance(loop, ast.For) else ():
        target, value = (one.targets[0], one.value) if isinstance(one, ast.Assign) else (None, None)
        values = value.elts if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) else [value]
        names = [name.id for name in getattr(target, "elts", [target]) if isinstance(name, ast.Name)]
        if all(_is_element(scope, part, turns) for part in values):
            found |= dict.fromkeys(names, 1)
    return found


def _is_element(scope: Scope, value: ast.expr | None, turns: dict[str, int]) -> bool:
    """True for an element or a row of a tensor, as a number of Python or not."""
    while isinstance(value, ast.Call):
        plain = isinstance(value.func, ast.Attribute) and value.func.attr in ("item", "tolist", "long", "int")
        number = dotted(value.func) == "int" and len(value.args) == 1
        value = value.func.value if plain else value.args[0] if number else None  # type: ignore[attr-defined]
    return isinstance(value, ast.Subscript) and _element(scope, value, turns) is not None


def _shape(scope: Scope, expression: ast.expr) -> Shape | None:
    value = scope.names.value(expression) if dotted(viewed(expression)) else UNKNOWN
    return shape_of(value) if tensor_or_shape(value) else None


def _element(scope: Scope, part: ast.Subscript, turns: dict[str, int]) -> _Visit | None:
    """`x[i]`, `x[i, j]`, `x[i][j - 1]`: one number of a tensor, or a row, by variables of the loop."""
    owner, indices = indexed(part)
    shape = _shape(scope, owner)
    used = {name for index in indices for name in _turning(scope, index, turns)}
    fixed = {name for name in used - set(turns) if type(scope.names.value(ast.Name(name, ast.Load()))) is int}
    if not shape or len(indices) > len(shape) or not used - fixed or not used - fixed <= set(turns):
        return None
    whole = [isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None for one in indices]
    picked = [one for one, is_whole in zip(indices, whole, strict=True) if not is_whole]
    if any(isinstance(one, (ast.Slice, ast.Call, ast.Compare)) for one in picked):
        return None
    shifted = any(not isinstance(one, (ast.Name, ast.Constant, ast.Subscript)) for one in picked)
    row = [n for n, is_whole in zip(shape, (*whole, *(True,) * len(shape)), strict=False) if is_whole]
    times = prod(turns.values()) if prod(row) <= _ROW else 0
    return _Visit(ast.unparse(owner), times, isinstance(part.ctx, ast.Store), ast.unparse(part), shifted)


def _turning(scope: Scope, index: ast.expr, turns: dict[str, int]) -> set[str]:
    """The names that an index depends on; of `e[0, t]`, an element of a tensor itself, those of the loop."""
    names = {one.id for one in syntax.walk(index) if isinstance(one, ast.Name)}
    if not isinstance(index, ast.Subscript):
        return names
    owner, indices = indexed(index)
    row = isinstance(owner, ast.Name) and owner.id in turns and all(isinstance(one, ast.Constant) for one in indices)
    return names & set(turns) if row or _element(scope, index, turns) is not None else names


def _gone_through(scope: Scope, call: ast.Call, turns: dict[str, int]) -> _Visit | None:
    """`max(x)` of a tensor of one axis, `max(x[i])` of a row: functions of Python that visit each of its elements."""
    if dotted(call.func) not in _BUILTINS or len(call.args) != 1 or call.keywords:
        return None
    if scope.names.value(call.func) is not UNKNOWN:  # a function of the user's, or of torch, under that name
        return None
    owner, indices = indexed(call.args[0]) if isinstance(call.args[0], ast.Subscript) else (call.args[0], [])
    shape = _shape(scope, owner)
    if not shape or len(shape) != len(indices) + 1 or any(not isinstance(one, ast.Name) for one in indices):
        return None
    return _Visit(ast.unparse(owner), shape[-1] * prod(turns.values()), text=ast.unparse(call))
