"""Weights that each turn of a loop puts into one container without a copy, while its steps move them."""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from time import thread_time
from typing import Any, NamedTuple

import torch
from torch import nn

from torch_inspector.facts import ExpressionFact, Place, StepFact, syntax
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of, mro_of, name_of
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.operands import at
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.second_names import pairs
from torch_inspector.observe.shapes import is_array
from torch_inspector.observe.source import dotted
from torch_inspector.observe.taken import with_a_copy

# Processor time for all of one cell; statements, variables, entries of a container, and tensors of one that count.
_TIME_S = 0.010
_STATEMENTS, _VARIABLES, _ENTRIES, _TENSORS = 16, 2_000, 256, 64
# Methods that show weights, or list them, without a copy.
_SHOWS = frozenset(
    ["detach", "cpu", "cuda", "to", "float", "double", "numpy", "view", "view_as", "flatten", "reshape",
     "ravel", "squeeze", "unsqueeze", "t", "type", "contiguous", "requires_grad_", "parameters",
     "named_parameters", "buffers", "named_buffers", "state_dict", "values", "items", "get_parameter"]
)  # fmt: skip
_Loop = ast.For | ast.While
_Address = tuple[int, int, tuple[int, ...]]


class _Put(NamedTuple):
    """A statement that puts something into a container."""

    node: ast.stmt
    owner: ast.expr
    value: ast.expr
    file: CodeFile
    loop: _Loop


def piled_weights(names: Mapping[str, Any], files: list[CodeFile], steps: list[StepFact]) -> Iterator[ExpressionFact]:
    """One fact for each container whose entries are all the same weights, those that the loop has stepped.

    Args:
        names: The user's variables.
        files: Code of the cell that is done, then of the others, latest first.
        steps: Steps of the optimizers in the cell.
    """
    deadline = thread_time() + _TIME_S
    puts = list(islice(_puts(files, steps), _STATEMENTS))
    if not puts:
        return
    own = takewhile(lambda _: thread_time() < deadline, islice(list(names.items()), _VARIABLES))
    shown = [(name, value) for name, value in own if not hidden(name)]
    stepped = _memory(shown, frozenset().union(*(one.parameter_keys for one in steps)))
    told = set[str]()
    for put in takewhile(lambda _: thread_time() < deadline, puts if stepped else ()):
        filled = takewhile(lambda _: thread_time() < deadline, _containers(put, names, shown, files[0]))
        for path, container in filled:
            address, count = _same(container, set(stepped), deadline)
            # One more than one turn can put there: steps lie between.
            if count <= _puts_of_a_turn(put) or path in told:
                continue
            sure = not _are_handles(container)
            if sure or not _is_used(put):
                told.add(path)
                yield _fact(put, path, stepped[address], count, sure=sure)


def _fact(put: _Put, path: str, model: str, count: int, *, sure: bool) -> ExpressionFact:
    place, text = Place(put.file.cell, put.node.lineno + put.file.offset, ""), ast.unparse(put.node)
    said = with_a_copy(put.node, put.value)
    return ExpressionFact("piled-weights", place, text, names=(path, model), shapes=((count,),), detail=said, sure=sure)


def _are_handles(container: Any) -> bool:
    """True for lists of the parameters themselves: who wants to clip them, or to train them, keeps such lists."""
    first: Any = next(iter(dict.values(container) if type(container) is dict else container), None)
    inner: Any = dict.values(first) if is_a(first, dict) else first if is_one_of(first, (list, tuple)) else ()
    first = next(iter(inner), first)
    return is_a(first, torch.Tensor) and as_torch.requires_grad(first)


def _is_used(put: _Put) -> bool:
    """True if the loop reads the container otherwise, or makes an optimizer: what is kept is for that."""
    nodes, owner = list(syntax.walk(put.loop)), dotted(put.owner)
    reads = sum(isinstance(one, ast.expr) and dotted(one) == owner for one in nodes)
    made = (one.func for one in nodes if isinstance(one, ast.Call))
    names = ((one.attr if isinstance(one, ast.Attribute) else dotted(one)) for one in made)
    return reads > 1 or any(hasattr(torch.optim, name) for name in names)


def _puts(files: list[CodeFile], steps: list[StepFact]) -> Iterator[_Put]:
    """Statements of loops that make steps, or call a function that does."""
    seen = set[int]()
    places = {one.place for one in steps}
    for file in files if steps else ():
        loops = list(_loops(file)) if any(_may_make(file, place) for place in places) else []
        for loop in reversed(loops):  # inner ones first
            if any(_makes(loop, file, place) for place in places):
                for node in syntax.walk(loop):
                    put = _put(node, file, loop) if id(node) not in seen else None
                    seen.add(id(node))
                    if put is not None and _is_once_a_turn(put):
                        yield put


def _is_once_a_turn(put: _Put) -> bool:
    """True for a container that is there before the loop, and gets one more in a turn, not one for each of some."""
    owner, nodes = dotted(put.owner), list(syntax.walk(put.loop))
    inner = [one for one in nodes if isinstance(one, _Loop) and one is not put.loop]
    if any(part is put.node for one in inner for part in syntax.walk(one)):
        return False
    if isinstance(put.node, ast.Assign) and isinstance(put.node.targets[0].slice, ast.Constant):  # type: ignore[attr-defined]
        return False
    named = (one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == owner)
    return not any(isinstance(one.ctx, (ast.Store, ast.Del)) for one in named)


def _puts_of_a_turn(put: _Put) -> int:
    nodes = (_put(one, put.file, put.loop) for one in syntax.walk(put.loop))
    return sum(one is not None and dotted(one.owner) == dotted(put.owner) for one in nodes)


def _may_make(file: CodeFile, place: Place) -> bool:
    """True for the cell of a step, and for one that names its function."""
    name = place.function.rpartition(".")[2]
    return place.cell == file.cell or bool(name and name in file.code)


def _loops(file: CodeFile) -> Iterator[_Loop]:
    nodes = syntax.walk(file.tree) if file.tree is not None else ()
    return (one for one in nodes if isinstance(one, _Loop))


def _makes(loop: _Loop, file: CodeFile, place: Place) -> bool:
    """True if a step is made in the lines of a loop, or in a function that it calls."""
    line = (place.line or 0) - file.offset
    if place.cell == file.cell and loop.lineno <= line <= (loop.end_lineno or 0):
        return True
    name = place.function.rpartition(".")[2]
    calls = (one.func for one in syntax.walk(loop) if isinstance(one, ast.Call)) if name else ()
    return any((one.attr if isinstance(one, ast.Attribute) else dotted(one)) == name for one in calls)


def _put(node: ast.AST, file: CodeFile, loop: _Loop) -> _Put | None:
    """`kept.append(…)`, `kept[epoch] = …`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        may_be = dotted(target.value) and _may_be_weights(node.value)
        return _Put(node, target.value, node.value, file, loop) if may_be else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
        return None
    puts = call.func.attr in ("append", "appendleft") and not call.keywords and dotted(call.func.value)
    may_be = puts and _may_be_weights(call.args[0])
    return _Put(node, call.func.value, call.args[0], file, loop) if may_be else None  # type: ignore[arg-type]


def _may_be_weights(value: ast.expr) -> bool:
    """False for what a call computes, `loss.item()`, `float(loss)`, and for numbers and texts."""
    if isinstance(value, (ast.ListComp, ast.DictComp)):
        return _may_be_weights(value.value if isinstance(value, ast.DictComp) else value.elt)
    if isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
        return all(_may_be_weights(one) for one in (value.values if isinstance(value, ast.Dict) else value.elts))
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(value, ast.Call) and dotted(value.func) in ("list", "dict", "tuple") and len(value.args) == 1:
            return _may_be_weights(value.args[0])
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") not in _SHOWS:
            return False
        value = value.func if isinstance(value, ast.Call) else value.value
    return isinstance(value, ast.Name)


def _containers(
    put: _Put, names: Mapping[str, Any], shown: list[tuple[str, Any]], latest: CodeFile
) -> Iterator[tuple[str, Any]]:
    """The container that a statement fills: by its name, of a method's object, or what the cell got of a function."""
    path, tree = dotted(put.owner), put.file.tree
    function = syntax.function_around(tree, put.node.lineno) if tree is not None else None
    found: list[tuple[str, Any]] = [(path, at(names, path))]
    if function is not None and path.startswith("self."):
        attribute = path.removeprefix("self.")
        kinds = [one.name for one in syntax.walk(tree) if isinstance(one, ast.ClassDef) and function in one.body]  # type: ignore[arg-type]
        own = [one for one in shown if any(name_of(kind) in kinds for kind in mro_of(type(one[1])))]
        found = [(f"{name}.{attribute}", fields_of(value).get(attribute)) for name, value in own]
    elif function is not None and _is_local(path.partition(".")[0], function):
        found = [(name, names.get(name)) for name in _given_by(function, path, latest)]
    yield from (one for one in found if _is_container(one[1]))


def _is_local(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    own = list(syntax.walk(function))
    stored = any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in own)
    return stored or any(isinstance(one, ast.arg) and one.arg == name for one in own)


def _given_by(function: ast.FunctionDef | ast.AsyncFunctionDef, own: str, latest: CodeFile) -> Iterator[str]:
    """Variables that the cell gives what a function returns under a name of its own."""
    returned = [one.value for one in syntax.own_expressions(function) if isinstance(one, ast.Return)]
    nodes = syntax.own_expressions(latest.tree) if latest.tree is not None else ()
    for node in nodes if len(returned) == 1 else ():
        call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        called = call.func if isinstance(call, ast.Call) else None
        if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == function.name:
            target = node.targets[0]  # type: ignore[attr-defined]
            yield from (dotted(one) for one, value in pairs(target, returned[0]) if dotted(value) == own)  # type: ignore[arg-type]


def _is_container(value: Any) -> bool:
    return is_one_of(value, (list, dict, deque))


def _same(container: Any, stepped: set[int], deadline: float) -> tuple[int, int]:
    """Memory of stepped weights that entries of a container show, and how many show just the same; 0 if none does."""
    entries = islice(dict.values(container) if type(container) is dict else container, _ENTRIES)
    timely = takewhile(lambda _: thread_time() < deadline, entries)
    known = Counter(key for one in timely if (key := _addresses(one)))
    counts = ((key, count) for key, count in known.items() if any(storage in stepped for storage, _, _ in key))
    key, count = max(counts, key=lambda one: one[1], default=((), 0))
    return next((storage for storage, _, _ in key if storage in stepped), 0), count


def _addresses(value: Any) -> tuple[_Address, ...]:
    """The memory of a tensor or array, or of those of a list or dictionary of nothing else."""
    parts = [value]
    if is_one_of(value, (list, tuple)):
        parts = list(value[:_TENSORS])
    elif is_a(value, dict):
        parts = list(islice(dict.values(value), _TENSORS))
    found = list(takewhile(lambda one: one is not None, map(_address, parts)))
    return tuple(one for one in found if one is not None) if len(found) == len(parts) else ()


def _address(value: Any) -> _Address | None:
    if is_array(value):
        first = int(value.__array_interface__["data"][0])
        return first, first, tuple(value.shape)
    storage = private.storage_of(value) if is_one_of(value, (torch.Tensor, nn.Parameter)) else None
    try:
        return (storage[0], value.data_ptr(), tuple(value.shape)) if storage is not None else None
    except Exception:  # noqa: BLE001  (layouts and modes without an address)
        return None


def _memory(shown: list[tuple[str, Any]], keys: frozenset[int]) -> dict[int, str]:
    """Whose memory the stepped parameters are: their storages, and first addresses for what NumPy shows of them."""
    found: dict[int, str] = {}
    models = [(name, one) for name, one in shown if is_a(one, nn.Module)]
    tensors = [(name, one) for name, one in shown if is_a(one, torch.Tensor)]
    owned = [(name, one) for name, model in models for _, one in walk_parameters(model)]
    for name, one in (*owned, *tensors):
        address = _address(one) if id(one) in keys else None
        if address is not None and address[1]:
            found.setdefault(address[0], name)
            found.setdefault(address[1], name)
    return found
