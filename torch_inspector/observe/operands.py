"""What an expression of the user's code stands for, worked out without running any of it."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, cast

from torch import nn

from torch_inspector.observe import axis_moves
from torch_inspector.observe.each_element import any_of
from torch_inspector.observe.kinds import class_fields, fields_of, is_a, is_one_of, mro_of, setting_of
from torch_inspector.observe.layer_shapes import by_layer
from torch_inspector.observe.shapes import (
    JOINS,
    SAME_SHAPE,
    UNKNOWN,
    Sized,
    joined,
    made_by,
    multiplied,
    of_array,
    shape_of,
    together,
)
from torch_inspector.observe.sliced import sliced
from torch_inspector.observe.source import dotted

_DICTS = (dict, OrderedDict, defaultdict)
# Entries of a dictionary that are compared with a key one by one, so that no `__eq__` of the user runs.
_ENTRIES = 200
# Functions of torch that are given the sizes of what they make.
_FILLED = frozenset(["randn", "rand", "zeros", "ones", "empty"])
# Arguments by name that do not change the shape, or are read.
_SETTINGS = frozenset(["dim", "dtype", "device", "requires_grad", "generator"])
# Functions of torch that make a tensor of an array.
_COPIES = frozenset(["from_numpy", "tensor", "as_tensor", "asarray"])
# Whose result has the same sizes with any arguments by name.
_WHATEVER = SAME_SHAPE | axis_moves.OF_SEVERAL
# Methods that leave one number of each row, two of them with its place.
_REDUCES, _PAIRS = frozenset(["max", "min", "amax", "amin", "sum", "mean", "logsumexp"]), ("max", "min")
# Expressions inside expressions, and names that stand for expressions.
_DEPTH, _STEPS = 20, 1_000


class Built(NamedTuple):
    """An object that is gone, as far as its constructor tells what it was."""

    kind: type[Any]
    fields: Mapping[str, Any]


@dataclass
class Names:
    """What names mean at one place: variables that live, or expressions that they were given."""

    values: Mapping[str, Any]
    outer: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, ast.expr] = field(default_factory=dict)
    """Right sides of a function that is done: its variables are gone."""
    depth: int = 0
    first: Mapping[str, Any] = field(default_factory=dict)
    """What parameters that are given another value were called with."""
    left: int = 0
    """Expressions that may still be worked out on the way to the one that was asked for."""

    def value(self, expression: ast.expr) -> Any:
        """A live object, a `Sized`, or `UNKNOWN`."""
        reader = _READERS.get(type(expression))
        self.left = self.left - 1 if self.depth else _STEPS
        if reader is None or self.depth > _DEPTH or self.left < 0:
            return UNKNOWN
        self.depth += 1
        try:
            return reader(self, expression)
        finally:
            self.depth -= 1

    def name(self, name: str) -> Any:
        """What a variable stands for."""
        if name in self.values:
            return self.values[name]
        if name in self.given:
            return self.value(self.given[name])
        return self.outer.get(name, UNKNOWN)


def attribute(owner: Any, name: str) -> Any:
    """A field of an object, past its `__getattr__`; of a module also its parameters, buffers and layers."""
    if type(owner) is Built:
        return owner.fields.get(name, UNKNOWN)
    fields = fields_of(owner)
    if name in fields:
        return fields[name]
    if is_a(owner, nn.Module):
        for kind in ("_parameters", "_buffers", "_modules"):
            entries: Any = fields.get(kind)
            if is_one_of(entries, _DICTS) and name in entries:
                return entries[name]
    if is_a(owner, tuple):
        return _named(owner, name)
    value = setting_of(owner, name)  # `CFG.width`
    return UNKNOWN if value is None else value


def _named(owner: Any, name: str) -> Any:
    names = next((class_fields(kind).get("_fields") for kind in mro_of(type(owner)) if kind is not tuple), None)
    if type(names) is tuple and name in names and len(names) == tuple.__len__(owner):
        return tuple.__getitem__(owner, names.index(name))
    return UNKNOWN


def item(owner: Any, key: Any) -> Any:
    """An entry of a plain dictionary, list or tuple; `...` for any of a list."""
    if key is ...:
        return any_of(owner)
    if is_one_of(owner, _DICTS) and is_one_of(key, (str, int)) and len(owner) <= _ENTRIES:
        return next((v for k, v in dict.items(owner) if type(k) is type(key) and k == key), UNKNOWN)
    if is_one_of(owner, (list, tuple)) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    if is_a(owner, tuple) and type(key) is int and _is_read_as_tuple(type(owner)):
        return tuple.__getitem__(owner, key) if -tuple.__len__(owner) <= key < tuple.__len__(owner) else UNKNOWN
    return UNKNOWN


def _is_read_as_tuple(kind: type[Any]) -> bool:
    """True for a class of tuples, as a named one, that has no way of its own to give an entry."""
    return next((base for base in mro_of(kind) if "__getitem__" in class_fields(base)), None) is tuple


def at(values: Mapping[str, Any], path: str) -> Any:
    """What a plain path leads to: `kept`, `bank['kept']`, `memory.kept`."""
    return Names(values).value(ast.parse(path, mode="eval").body)


def _read_attribute(names: Names, node: ast.Attribute) -> Any:
    owner = names.value(node.value)
    if type(owner) is tuple and node.attr == "values":  # of `x.max(1)`
        return owner[0] if owner and type(owner[0]) is Sized else UNKNOWN
    shape = shape_of(owner)
    if shape is None or is_one_of(owner, (int, float, bool)):
        return UNKNOWN if owner is UNKNOWN else attribute(owner, node.attr)
    if node.attr in {"data", "real"}:
        return Sized(shape)
    if node.attr in {"T", "mT", "H"}:
        return Sized(shape[::-1] if node.attr == "T" else (*shape[:-2], *shape[-2:][::-1]))
    return shape if node.attr == "shape" else UNKNOWN


def _read_subscript(names: Names, node: ast.Subscript) -> Any:
    owner = names.value(node.value)
    shape = shape_of(owner)
    parts = node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]
    if shape is not None:
        return sliced(names, shape, parts)
    if owner is UNKNOWN and len(parts) == 2 and type(parts[0]) is ast.Slice:  # noqa: PLR2004
        return Sized((-1,)) if type(names.value(parts[1])) is int else UNKNOWN
    key = names.value(node.slice)
    return any_of(owner) if type(key) is Sized and key.shape == () else item(owner, key)


_COUNTS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else 0,
}


def _read_operation(names: Names, node: ast.BinOp) -> Any:
    left, right = names.value(node.left), names.value(node.right)
    count = _COUNTS.get(type(node.op))
    if count is not None and type(left) is int and type(right) is int and max(abs(left), abs(right)) < 1 << 40:
        return count(left, right)
    if type(node.op) is ast.Mult and type(left) is tuple and type(right) is int and len(left) * right <= _ENTRIES:
        return left * right  # `[batch] * 3`
    one, two = shape_of(left), shape_of(right)
    if one is None or two is None:
        return UNKNOWN
    return multiplied(one, two) if type(node.op) is ast.MatMult else together(one, two)


def _read_sign(names: Names, node: ast.UnaryOp) -> Any:
    value = names.value(node.operand)
    if type(value) is int:
        return -value if type(node.op) is ast.USub else UNKNOWN
    shape = shape_of(value)
    return Sized(shape) if shape is not None else UNKNOWN


def _read_call(names: Names, node: ast.Call) -> Any:
    """The few methods that say what shape they make, also in their form `torch.abs(x)`."""
    if type(node.func) is ast.Attribute and node.func.attr in _REDUCES and (rows := _rows_of(names, node)) is not None:
        return rows
    others = any(keyword.arg not in _SETTINGS for keyword in node.keywords)
    if (made := by_layer(names, node)) is not None:
        return made
    if type(node.func) is not ast.Attribute or (others and node.func.attr not in _WHATEVER):
        return _read_length(names, node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dim")]
    if node.func.attr == "size" and len(arguments) <= 1:
        return _read_size(names, node.func.value, arguments)
    owner = names.value(node.func.value)
    if is_a(owner, ModuleType):
        known = attribute(owner, "__name__") in ("torch", "torch.nn.functional")
        return _read_function(names, node.func.attr, arguments) if known and arguments else UNKNOWN
    return _read_method(node.func.attr, owner, [names.value(a) for a in arguments])


def _read_method(method: str, owner: Any, given: list[Any]) -> Any:
    """`batch.get("label")`, and methods that say what shape they make."""
    if is_one_of(owner, _DICTS):
        return item(owner, given[0]) if method in ("get", "pop") and given else UNKNOWN
    return made_by(method, owner, given)


def _rows_of(names: Names, node: ast.Call) -> Any:
    """One number for each row that a module was given: `net(x).max(1)`; None for anything else."""
    func = cast("ast.Attribute", node.func)
    axes = [names.value(one) for one in (*node.args, *(k.value for k in node.keywords if k.arg == "dim"))]
    plain = len(axes) == 1 and len(node.args) + len(node.keywords) == 1 and type(axes[0]) is int and axes[0] in (1, -1)
    call = func.value
    if not plain or type(call) is not ast.Call or len(call.args) != 1 or not is_a(names.value(call.func), nn.Module):
        return None
    shape = shape_of(names.value(call.args[0]))
    if shape is None or len(shape) != 2:  # noqa: PLR2004
        return None
    row = Sized(shape[:1])
    return (row, row) if func.attr in _PAIRS else row


def _read_function(names: Names, function: str, arguments: list[ast.expr]) -> Any:
    """What a function of torch makes of its arguments."""
    given = [names.value(one) for one in arguments]
    if function in _FILLED or function == "randint":
        sizes = given[-1] if type(given[-1]) is tuple else tuple(given) if function in _FILLED else (None,)
        return Sized(sizes) if all(type(one) is int for one in sizes) else UNKNOWN
    if function in _COPIES and len(given) == 1:
        return of_array(given[0])
    if function in axis_moves.OF_SEVERAL:
        made = axis_moves.of_several(function, given[0], [shape_of(one) for one in given])
        return Sized(made) if made is not None else UNKNOWN
    if function in JOINS and is_one_of(given[0], (tuple, list)) and len(given[0]) <= _ENTRIES:
        return joined(function, [shape_of(one) for one in given[0]], given[1:])
    return made_by(function, given[0], given[1:])


def _read_size(names: Names, owner: ast.expr, axes: list[ast.expr]) -> Any:
    """`x.size()` and `x.size(1)`."""
    shape = shape_of(names.value(owner))
    if shape is None or not axes:
        return UNKNOWN if shape is None else shape
    axis = names.value(axes[0])
    return shape[axis] if type(axis) is int and -len(shape) <= axis < len(shape) else UNKNOWN


def _read_length(names: Names, node: ast.Call) -> Any:
    """`len(x)` of a tensor."""
    if dotted(node.func) != "len" or len(node.args) != 1:
        return UNKNOWN
    shape = shape_of(names.value(node.args[0]))
    return shape[0] if shape else UNKNOWN


def _read_constant(_: Names, node: ast.Constant) -> Any:
    return node.value


def _read_row(names: Names, node: ast.Tuple | ast.List) -> Any:
    return tuple(names.value(one) for one in node.elts)


def _read_entries(names: Names, node: ast.Dict) -> Any:
    """A dictionary that is written out: `f({"image": x})`."""
    keys = [one.value if isinstance(one, ast.Constant) else None for one in node.keys]
    named = all(type(key) is str for key in keys)
    return {key: names.value(one) for key, one in zip(keys, node.values, strict=True)} if named else UNKNOWN


_READERS: dict[type[ast.expr], Callable[[Names, Any], Any]] = {
    ast.Name: lambda names, node: names.name(node.id),
    ast.Attribute: _read_attribute,
    ast.Subscript: _read_subscript,
    ast.BinOp: _read_operation,
    ast.UnaryOp: _read_sign,
    ast.Call: _read_call,
    ast.Constant: _read_constant,
    ast.Tuple: _read_row,
    ast.List: _read_row,
    ast.Dict: _read_entries,
}
