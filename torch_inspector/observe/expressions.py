"""Expressions of a cell that may be mistakes, judged by the values that their names have when the cell is done.

The text says where to look, live values say what is there; nothing of the text is run. Functions that the cell calls
are read with the values that it gives them. What a name meant is only trusted if nothing gave it another value later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from time import thread_time
from typing import Any

from torch.utils.data import DataLoader, TensorDataset, default_collate

from torch_inspector.facts import ExpressionFact, Place, Shape, syntax
from torch_inspector.observe.fetched import fetches
from torch_inspector.observe.iterated import element_turn, turns
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of
from torch_inspector.observe.pairs import called
from torch_inspector.observe.parameters import arguments_of
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.reading import Reading
from torch_inspector.observe.seen import SeenNames, Spot
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import (
    calls_in,
    candidates,
    comprehended_in,
    given_in,
    is_defined_below,
    is_in_loop,
    late_at,
    loops_in,
    runs_in,
    stores_in,
    target_of,
)

_CALLS_DEEP, _SCOPES = 3, 30
# Longer lists are not looked through for tensors that are alike.
_ALIKE = 64


@dataclass
class Scope:
    """A cell, or a function that it calls."""

    reading: Reading
    node: ast.AST
    names: SeenNames
    file: CodeFile
    function: str = ""
    arguments: Mapping[str, ast.expr] = field(default_factory=dict)
    """What the call gave each parameter of the function, in the names of the caller."""
    caller: Scope | None = None
    call: ast.Call | None = None
    """That call, in the caller."""

    def fact(self, kind: str, node: ast.AST, statement: ast.stmt, **more: Any) -> ExpressionFact:
        """What is known of an expression."""
        line = int(getattr(node, "lineno", statement.lineno))
        place = Place(self.file.cell, line + self.file.offset, self.function)
        return ExpressionFact(kind, place, ast.unparse(node), target=target_of(statement), **more)

    def axes_of(self, source: str, line: int) -> dict[str, int]:
        """Variables that hold one size of a tensor, and which: after `n, h, w, c = x.shape`, the first axis is n's.

        None at a line before which the tensor's name was given another value.
        """
        found: dict[str, int] = {}
        stores = stores_in(self.node).get(source, ())
        for node in syntax.own_expressions(self.node):
            if not isinstance(node, ast.Assign) or any(node.lineno < store < line for store in stores):
                continue
            if ast.unparse(node.value) in (f"{source}.shape", f"{source}.size()"):
                for target in node.targets:
                    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
                    found.update((one.id, axis) for axis, one in enumerate(names) if isinstance(one, ast.Name))
        return {name: axis for name, axis in found.items() if len(stores_in(self.node).get(name, ())) == 1}

    @cached_property
    def looped(self) -> dict[str, Any]:
        """Variables of loops over a loader of tensors, as `xb` and `yb` in `for xb, yb in loader`."""
        found: dict[str, Any] = {}
        for loop in loops_in(self.node):
            target, source = loop.target, loop.iter
            while isinstance(source, ast.Call) and source.args and dotted(source.func) in {"enumerate", "tqdm"}:
                if dotted(source.func) == "enumerate":
                    target = target.elts[-1] if isinstance(target, (ast.Tuple, ast.List)) else target
                source = source.args[0]
            shapes = _batch_shapes(self.names.value(source))
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if len(parts) == len(shapes):
                found.update((p.id, Sized(s)) for p, s in zip(parts, shapes, strict=True) if isinstance(p, ast.Name))
        return found | self._rows()

    def _rows(self) -> dict[str, Any]:
        """Variables that stand for the rows of a tensor, or for tensors of one shape, and for nothing else."""
        stores = stores_in(self.node)
        return {
            target.id: Sized(shape)
            for target, source in runs_in(self.node)
            if len(stores.get(target.id, ())) == 1 and (shape := _row_shape(self.names.value(source))) is not None
        }

    def rows_around(self, node: ast.AST) -> dict[str, Any]:
        """Variables of the comprehensions around an expression; what is not known of them hides what is outside."""
        heads = comprehended_in(self.node).get(id(node), ())
        shapes = [(target.id, _row_shape(self.names.value(source))) for target, source in heads]
        return {name: UNKNOWN if shape is None else Sized(shape) for name, shape in shapes}

    def given(self, name: str) -> list[tuple[ast.expr, Scope]]:
        """What the text gives a name, here, where the function was called, or in an earlier cell."""
        found = [(value, self) for value in given_in(self.node).get(name, ())]
        if self.caller is not None and name in self.arguments:
            found.append((self.arguments[name], self.caller))
        if found or self.function:
            return found
        trees = (file.tree for file in self.reading.places.latest() if file.tree is not None)
        values = next((values for tree in trees if (values := given_in(tree).get(name))), [])
        return [(value, self) for value in values]


Judge = Callable[[Scope, ast.AST, ast.stmt], Iterator[ExpressionFact]]
Judges = Mapping[type[ast.AST], tuple[Judge, ...]]


def found(reading: Reading, judges: Judges) -> Iterator[ExpressionFact]:
    """All expressions that a judge has something to say of."""
    tree = reading.file.tree
    if tree is None:
        return
    told = set[tuple[str, Place, str]]()
    for scope in _scopes(reading, tree):
        for node, statement in candidates(scope.node):
            wanted = judges.get(type(node))
            if not wanted:
                continue
            if thread_time() > reading.deadline:
                return
            scope.names = names_at(scope, statement)
            rows = scope.rows_around(node)
            scope.names.rows, scope.names.turn = rows, element_turn(scope.node, scope.names, node) if rows else {}
            for judge in wanted:
                for fact in judge(scope, node, statement):
                    if (fact.kind, fact.place, fact.text) not in told:  # several turns of one loop tell the same
                        told.add((fact.kind, fact.place, fact.text))
                        yield fact
            scope.names.rows, scope.names.turn = {}, {}


def _scopes(reading: Reading, tree: ast.Module) -> Iterator[Scope]:
    """The cell, then the functions that it calls, each with the values that it was given."""
    top = SeenNames(reading.names, reading=reading, file=reading.file)
    stack, count = [(Scope(reading, tree, top, reading.file), 0)], 0
    while stack and count < _SCOPES and thread_time() < reading.deadline:
        scope, depth = stack.pop(0)
        count += 1
        yield scope
        if depth < _CALLS_DEEP:
            stack.extend((inner, depth + 1) for inner in _inside(scope))


def _inside(scope: Scope) -> Iterator[Scope]:
    for call, turn in _turns_of(scope):
        if thread_time() > scope.reading.deadline:
            return
        if _is_another(scope, call):
            continue
        scope.names.rows, scope.names.turn = scope.rows_around(call), turn
        inner = list(called(call, scope.names, scope.reading.tree_of))
        scope.names.rows, scope.names.turn = {}, {}
        for node, names in inner:
            file = _file_with(scope, node)
            if file is not None:
                seen = SeenNames(
                    names.values, names.outer, names.given, first=names.first, reading=scope.reading, file=file
                )
                seen.own = frozenset(stores_in(node))
                name = getattr(node, "name", "<lambda>")
                yield Scope(scope.reading, node, seen, file, name, arguments_of(call, node), scope, call)


def _is_another(scope: Scope, call: ast.Call) -> bool:
    """True if the function that a name stands for now was not the one that was called."""
    anew = scope.function and isinstance(call.func, ast.Name) and scope.reading.has_defined_anew(call.func.id)
    return bool(anew) or is_defined_below(scope.node, call)


def _turns_of(scope: Scope) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    """The calls of a scope, with the variables of the loop around each in its first turns."""
    for call in calls_in(scope.node):
        yield from ((call, turn) for turn in turns(scope.node, scope.names, call))
    for call, turn in fetches(scope.node, scope.names, scope.reading.tree_of):
        yield call, {**scope.rows_around(getattr(call, "site", call)), **turn}


def _file_with(scope: Scope, node: ast.AST) -> CodeFile | None:
    """The cell that a function was found in."""
    files = (scope.reading.file, scope.file, *scope.reading.places.latest(100))
    return next((file for file in files if file.tree is not None and id(node) in _functions_of(file.tree)), None)


@lru_cache(maxsize=64)
def _functions_of(tree: ast.Module) -> frozenset[int]:
    return frozenset(id(node) for node in syntax.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda)))


def names_at(scope: Scope, statement: ast.stmt) -> SeenNames:
    """The names as they were at an expression."""
    names = scope.names
    names.looped = names.looped or scope.looped
    line, once = statement.lineno, not is_in_loop(scope.node, statement)
    names.spot = Spot(scope.node, line)
    if scope.function:
        return names
    stores = stores_in(scope.node)
    names.late = late_at(scope.node, line)
    # The only statement that stores a name reads what it was before the cell, unless it runs again and again.
    names.before = {
        n: s for n, s in scope.reading.before.items() if once and n in names.late and min(stores[n]) >= line
    }
    return names


def _row_shape(value: Any) -> Shape | None:
    """Shape of each part of a tensor, or of a list of tensors that are alike."""
    if is_one_of(value, (list, tuple)):
        shapes = {_tensor_shape(one) for one in value[:_ALIKE]} if value else {None}
        return shapes.pop() if len(shapes) == 1 and len(value) <= _ALIKE else None
    shape = shape_of(value) if tensor_or_shape(value) else None
    return shape[1:] if shape else None


def _batch_shapes(loader: Any) -> list[Shape]:
    """Shapes of the parts of a batch; none unless the loader is a plain one over a `TensorDataset`, or a list."""
    if is_one_of(loader, (list, tuple)):
        parts = [tuple(map(_tensor_shape, one)) for one in loader[:_ALIKE] if is_one_of(one, (list, tuple))]
        return [one for one in parts[0] if one] if len(parts) == len(loader) and len(set(parts)) == 1 else []
    if not is_a(loader, DataLoader) or fields_of(loader).get("collate_fn") is not default_collate:
        return []
    dataset = fields_of(loader).get("dataset")
    tensors = fields_of(dataset).get("tensors") if is_a(dataset, TensorDataset) else None
    shapes = [shape_of(one) for one in tensors] if type(tensors) is tuple else []
    return [(-1, *shape[1:]) for shape in shapes if shape]


def _tensor_shape(value: Any) -> Shape | None:
    return shape_of(value) if tensor_or_shape(value) else None


def tensor_or_shape(value: Any) -> bool:
    """True for what has the shape of a tensor, and is no number."""
    return is_tensor(value) or type(value) is Sized
