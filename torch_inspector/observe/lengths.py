"""How often a loop runs, told by what it goes through."""

from __future__ import annotations

import ast
from math import ceil

from torch.utils.data import DataLoader

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import class_name, fields_of, is_a, is_one_of
from torch_inspector.observe.remainders import WRAPPED, sample_count
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_tensor, shape_of
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import plain_stores, stores_in

_RANGES = frozenset(["range", "trange"])
_CUTS = frozenset(["split", "chunk", "unbind"])
_WRAPPED = WRAPPED | {"islice", "zip", "track"}
_BOUNDS, _FAR = 3, 1 << 40


def turns_of(scope: Scope, loop: ast.For | ast.While, source: ast.expr) -> int:
    """Turns of a loop as its text says them, else the batches that a loader was seen to give it; 0 for neither."""
    known = loop_length(scope, source)
    if known or not isinstance(loop, ast.For) or not _is_loader(scope, source):
        return known
    batches, last = scope.reading.batches, loop.iter.end_lineno or loop.lineno
    lines = range(loop.lineno + scope.file.offset, last + scope.file.offset + 1)
    return max(batches.get((scope.file.cell, line), 0) for line in lines)


def _is_loader(scope: Scope, source: ast.expr) -> bool:
    """True for what may be a loader, plain or in `enumerate` and its like; not for what puts batches together."""
    while isinstance(source, ast.Call) and source.args and dotted(source.func).rpartition(".")[2] in _WRAPPED:
        source = source.args[0]
    if isinstance(source, ast.Call):
        name = source.func.attr if isinstance(source.func, ast.Attribute) else dotted(source.func)
        return "loader" in name.lower()
    value = scope.names.value(source) if dotted(source) else ()
    return value is UNKNOWN or is_a(value, DataLoader) or "tqdm" in class_name(value)


def loop_length(scope: Scope, source: ast.expr) -> int:
    """Turns of a loop over a range, a loader, a list or a tensor; 0 if they cannot be told."""
    if is_range(source):
        return range_length(scope, source)
    if isinstance(source, ast.Call) and (called := _of_call(scope, source)):
        return called
    value = scope.names.value(source)
    if value is UNKNOWN and isinstance(source, ast.Name):
        return _of_parameter(scope, source.id)
    if is_a(value, DataLoader):
        fields = fields_of(value)
        size, count = fields.get("batch_size"), sample_count(fields.get("dataset"))
        return ceil(count / size) if type(size) is int and size > 0 and count else 0
    if is_one_of(value, (list, tuple, range)):
        return len(value)
    shape = shape_of(value) if is_tensor(value) or type(value) is Sized else None
    return max(shape[0], 0) if shape else 0


def _of_call(scope: Scope, call: ast.Call) -> int:
    """Turns over `zip(a, b)`, `enumerate(a)`, `x.split(8)`, `torch.chunk(x, 4)`; 0 for any other call."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    if name == "zip":
        return min((loop_length(scope, one) for one in call.args), default=0)
    if name in WRAPPED and call.args:
        return loop_length(scope, call.args[0])
    if name not in _CUTS or not isinstance(call.func, ast.Attribute):
        return 0
    by_torch = dotted(call.func.value) == "torch" and call.args
    owner, given = (call.args[0], call.args[1:]) if by_torch else (call.func.value, call.args)
    shape = shape_of(scope.names.value(owner))
    return _cut(scope, name, shape, given, call.keywords) if shape else 0


def _cut(scope: Scope, name: str, shape: tuple[int, ...], given: list[ast.expr], named: list[ast.keyword]) -> int:
    """Parts that a tensor is cut into along an axis."""
    words = {one.arg: one.value for one in named}
    sizes = given if name == "unbind" else given[1:]
    axis = words.get("dim", sizes[0] if sizes else ast.Constant(0))
    size = words.get("split_size", words.get("chunks", given[0] if given else None))
    dim = scope.names.value(axis)
    if type(dim) is not int or not -len(shape) <= dim < len(shape) or shape[dim] <= 0:
        return 0
    if name == "unbind":
        return shape[dim]
    number = scope.names.value(size) if size is not None else UNKNOWN
    if type(number) is not int or number <= 0:
        return 0
    return ceil(shape[dim] / (number if name == "split" else ceil(shape[dim] / number)))


def _of_parameter(scope: Scope, name: str) -> int:
    """Turns over what the call gave a parameter, where the names in it have one value each."""
    given, caller = scope.arguments.get(name), scope.caller
    if given is None or caller is None or name in stores_in(scope.node):
        return 0
    stores = stores_in(caller.node)
    inside = (one.id for one in syntax.walk(given) if isinstance(one, ast.Name))
    return loop_length(caller, given) if all(len(stores.get(one, ())) <= 1 for one in inside) else 0


def is_range(source: ast.expr) -> bool:
    """True for `range(n)` and `trange(n)`."""
    return isinstance(source, ast.Call) and dotted(source.func).rpartition(".")[2] in _RANGES


def range_length(scope: Scope, source: ast.expr) -> int:
    """Turns of `range(n)`; 0 if a bound is not known."""
    bounds = [scope.names.value(one) for one in source.args] if isinstance(source, ast.Call) else []
    known = 0 < len(bounds) <= _BOUNDS and all(type(one) is int for one in bounds) and 0 not in bounds[2:]
    return len(range(*bounds)) if known and max(map(abs, bounds)) < _FAR else 0


def counted(scope: Scope, loop: ast.While) -> ast.expr | None:
    """`range(0, n, 4)` for `while i < n` that begins with `i = 0` and counts with `i += 4`; None for any other."""
    test = loop.test
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or type(test.ops[0]) is not ast.Lt:
        return None
    name, lines = test.left.id, sorted(stores_in(scope.node).get(test.left.id, ()))
    steps = [one for one in loop.body if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add)]
    steps = [one for one in steps if isinstance(one.target, ast.Name) and one.target.id == name]
    first = plain_stores(scope.node).get((name, lines[0])) if lines else None
    if first is None or len(steps) != 1 or lines[1:] != [steps[0].lineno] or lines[0] >= loop.lineno:
        return None
    # What the name has at the end is not what it began with.
    parts = [first.value, test.comparators[0], steps[0].value]
    plain = len(test.ops) == 1 and isinstance(first.value, ast.Constant)
    return ast.Call(ast.Name("range", ast.Load()), parts, []) if plain else None
