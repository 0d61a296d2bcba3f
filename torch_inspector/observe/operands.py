"""What an expression of the user's code stands for, worked out without running any of it."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

import torch
from torch import nn

from torch_inspector.facts import Shape
from torch_inspector.observe.kinds import class_fields, fields_of, is_a, mro_of

_DICTS = (dict, OrderedDict, defaultdict)
# Entries of a dictionary that are compared with a key one by one, so that no `__eq__` of the user runs.
_ENTRIES = 200
# Expressions inside expressions, and names that stand for expressions.
_DEPTH = 12


class Unknown:
    """Stands for a value that cannot be told."""


UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Sized:
    """A tensor that does not exist any more, or not yet: only its shape can be told. -1 is a length not known."""

    shape: Shape


@dataclass
class Names:
    """What names mean at one place: variables that live, or expressions that they were given."""

    values: Mapping[str, Any]
    outer: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, ast.expr] = field(default_factory=dict)
    """Right sides of a function that is done: its variables are gone."""
    depth: int = 0

    def value(self, expression: ast.expr) -> Any:
        """A live object, a `Sized`, or `UNKNOWN`."""
        reader = _READERS.get(type(expression))
        if reader is None or self.depth > _DEPTH:
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


def is_tensor(value: Any) -> bool:
    """True for tensors of any class."""
    return is_a(value, torch.Tensor)


def shape_of(value: Any) -> Shape | None:
    """Shape of a tensor, `()` of a number; None for anything else, and where torch does not tell."""
    if type(value) is Sized:
        return value.shape
    if type(value) in (int, float, bool):
        return ()
    if not is_tensor(value):
        return None
    try:
        return tuple(int(n) for n in value.shape)
    except Exception:  # noqa: BLE001
        return None


def attribute(owner: Any, name: str) -> Any:
    """A field of an object, past its `__getattr__`; of a module also its parameters, buffers and layers."""
    fields = fields_of(owner)
    if name in fields:
        return fields[name]
    if is_a(owner, nn.Module):
        for kind in ("_parameters", "_buffers", "_modules"):
            entries: Any = fields.get(kind)
            if type(entries) in _DICTS and name in entries:
                return entries[name]
    if is_a(owner, tuple):
        return _named(owner, name)
    return UNKNOWN


def _named(owner: Any, name: str) -> Any:
    names = next((class_fields(kind).get("_fields") for kind in mro_of(type(owner)) if kind is not tuple), None)
    if type(names) is tuple and name in names and len(names) == tuple.__len__(owner):
        return tuple.__getitem__(owner, names.index(name))
    return UNKNOWN


def item(owner: Any, key: Any) -> Any:
    """An entry of a plain dictionary, list or tuple."""
    if type(owner) in _DICTS and type(key) in (str, int) and len(owner) <= _ENTRIES:
        return next((v for k, v in dict.items(owner) if type(k) is type(key) and k == key), UNKNOWN)
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return UNKNOWN


def _read_attribute(names: Names, node: ast.Attribute) -> Any:
    owner = names.value(node.value)
    shape = shape_of(owner)
    if shape is None or type(owner) in (int, float, bool):
        return UNKNOWN if owner is UNKNOWN else attribute(owner, node.attr)
    if node.attr in {"data", "real"}:
        return Sized(shape)
    if node.attr in {"T", "mT", "H"}:
        return Sized(shape[::-1])
    return shape if node.attr == "shape" else UNKNOWN


def _read_subscript(names: Names, node: ast.Subscript) -> Any:
    owner = names.value(node.value)
    shape = shape_of(owner)
    parts = node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]
    if shape is not None:
        return _sliced(names, shape, parts)
    if owner is UNKNOWN and len(parts) == 2 and type(parts[0]) is ast.Slice:  # noqa: PLR2004
        return Sized((-1,)) if type(names.value(parts[1])) is int else UNKNOWN
    return item(owner, names.value(node.slice))


def _sliced(names: Names, shape: Shape, parts: list[ast.expr]) -> Any:
    result, left = list[int](), list(shape)
    for part in parts:
        if type(part) is ast.Constant and part.value is None:
            result.append(1)
            continue
        if not left:
            return UNKNOWN
        length = _length(names, part, left.pop(0))
        if length is None:
            return UNKNOWN
        result.extend(length)
    return Sized((*result, *left))


def _length(names: Names, part: ast.expr, length: int) -> Shape | None:
    """The axes that one axis becomes under an index."""
    if type(part) is ast.Slice:
        bounds = [names.value(b) if b is not None else None for b in (part.lower, part.upper, part.step)]
        if length < 0 or any(b is not None and type(b) is not int for b in bounds):
            return None
        return (len(range(*slice(*bounds).indices(length))),)
    index = names.value(part)
    if type(index) is int:
        return ()
    shape = shape_of(index)
    masks = is_tensor(index) and index.dtype in (torch.bool, torch.uint8)
    return shape if shape is not None and len(shape) == 1 and not masks and is_tensor(index) else None


_COUNTS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}


def _read_operation(names: Names, node: ast.BinOp) -> Any:
    left, right = names.value(node.left), names.value(node.right)
    count = _COUNTS.get(type(node.op))
    if count is not None and type(left) is int and type(right) is int and max(abs(left), abs(right)) < 1 << 40:
        return count(left, right)
    one, two = shape_of(left), shape_of(right)
    if one is None or two is None or type(node.op) is ast.MatMult:
        return UNKNOWN
    return together(one, two)


def together(one: Shape, two: Shape) -> Any:
    """What two shapes are stretched to."""
    if not one or not two or one == two:
        return Sized(one or two)
    length = max(len(one), len(two))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(two)) + two, strict=True)
    return Sized(tuple(a if b in (1, a) else b for a, b in pairs))


def _read_sign(names: Names, node: ast.UnaryOp) -> Any:
    value = names.value(node.operand)
    if type(value) is int:
        return -value if type(node.op) is ast.USub else UNKNOWN
    shape = shape_of(value)
    return Sized(shape) if shape is not None else UNKNOWN


_SAME_SHAPE = frozenset(
    [
        "abs",
        "bfloat16",
        "clamp",
        "clamp_max",
        "clamp_min",
        "clone",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "double",
        "exp",
        "float",
        "half",
        "int",
        "log",
        "log1p",
        "log2",
        "long",
        "logsigmoid",
        "neg",
        "pow",
        "relu",
        "requires_grad_",
        "round",
        "sigmoid",
        "softplus",
        "sqrt",
        "square",
        "tanh",
        "to",
        "type",
        "type_as",
    ]
)
_SCALAR = frozenset(["item", "max", "mean", "median", "min", "norm", "std", "sum", "var"])
_FLAT = frozenset(["flatten", "ravel", "squeeze"])


def _read_call(names: Names, node: ast.Call) -> Any:
    """The few methods that say what shape they make, also in their form `torch.abs(x)`."""
    if type(node.func) is not ast.Attribute or node.keywords:
        return UNKNOWN
    owner, arguments = names.value(node.func.value), list(node.args)
    if is_a(owner, ModuleType):
        if not arguments or attribute(owner, "__name__") not in ("torch", "torch.nn.functional"):
            return UNKNOWN
        owner = names.value(arguments.pop(0))
    return _made_by(node.func.attr, owner, [names.value(a) for a in arguments])


def _made_by(method: str, owner: Any, given: list[Any]) -> Any:
    shape, sizes = shape_of(owner), [n for n in given if type(n) is int]
    if shape is None:
        return Sized((-1,)) if owner is UNKNOWN and (method in _FLAT or sizes == [-1]) else UNKNOWN
    if method in _SAME_SHAPE:
        return Sized(shape)
    if method in _SCALAR and not given:
        return Sized(())
    reshape = _RESHAPES.get(method)
    made = reshape(shape, sizes) if reshape is not None and len(sizes) == len(given) else None
    return Sized(made) if made is not None else UNKNOWN


def _squeezed(shape: Shape, axes: list[int]) -> Shape | None:
    if not axes:
        return tuple(n for n in shape if n != 1)
    axis = axes[0] % len(shape) if shape else 0
    return tuple(n for i, n in enumerate(shape) if i != axis or n != 1)


def _unsqueezed(shape: Shape, axes: list[int]) -> Shape | None:
    axis = axes[0] % (len(shape) + 1) if axes else 0
    return (*shape[:axis], 1, *shape[axis:]) if axes else None


def _viewed(shape: Shape, sizes: list[int]) -> Shape | None:
    total, known = 1, 1
    for n in shape:
        total *= n
    for n in sizes:
        known *= n if n != -1 else 1
    return tuple(total // known if n == -1 else n for n in sizes) if sizes and known > 0 else None


_RESHAPES: dict[str, Callable[[Shape, list[int]], Shape | None]] = {
    "squeeze": _squeezed,
    "unsqueeze": _unsqueezed,
    "view": _viewed,
    "reshape": _viewed,
    "flatten": lambda shape, given: _viewed(shape, [-1]) if not given else None,
    "ravel": lambda shape, given: _viewed(shape, [-1]) if not given else None,
    "t": lambda shape, given: shape[::-1] if not given else None,
}


def _read_constant(_: Names, node: ast.Constant) -> Any:
    return node.value


def _read_row(names: Names, node: ast.Tuple | ast.List) -> Any:
    return tuple(names.value(one) for one in node.elts)


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
}
