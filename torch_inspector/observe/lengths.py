"""How often a loop runs, told by what it goes through."""

from __future__ import annotations

import ast
from math import ceil

from torch.utils.data import DataLoader

from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.kinds import fields_of, is_a
from torch_inspector.observe.remainders import WRAPPED, sample_count
from torch_inspector.observe.shapes import is_tensor, shape_of
from torch_inspector.observe.source import dotted

_RANGES = frozenset(["range", "trange"])
_BOUNDS, _FAR = 3, 1 << 40


def loop_length(scope: Scope, source: ast.expr) -> int:
    """Turns of a loop over a range, a loader, a list or a tensor; 0 if they cannot be told."""
    if is_range(source):
        return range_length(scope, source)
    if isinstance(source, ast.Call) and source.args and dotted(source.func).rpartition(".")[2] in WRAPPED:
        return loop_length(scope, source.args[0])
    value = scope.names.value(source)
    if is_a(value, DataLoader):
        fields = fields_of(value)
        size, count = fields.get("batch_size"), sample_count(fields.get("dataset"))
        return ceil(count / size) if type(size) is int and size > 0 and count else 0
    if type(value) in (list, tuple, range):
        return len(value)
    shape = shape_of(value) if is_tensor(value) else None
    return max(shape[0], 0) if shape else 0


def is_range(source: ast.expr) -> bool:
    """True for `range(n)` and `trange(n)`."""
    return isinstance(source, ast.Call) and dotted(source.func).rpartition(".")[2] in _RANGES


def range_length(scope: Scope, source: ast.expr) -> int:
    """Turns of `range(n)`; 0 if a bound is not known."""
    bounds = [scope.names.value(one) for one in source.args] if isinstance(source, ast.Call) else []
    known = 0 < len(bounds) <= _BOUNDS and all(type(one) is int for one in bounds) and 0 not in bounds[2:]
    return len(range(*bounds)) if known and max(map(abs, bounds)) < _FAR else 0
