"""Shapes of tensors that are not there: what methods and broadcasting make of the shapes they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe import axis_moves
from torch_inspector.observe.kinds import class_name, is_a, is_one_of, module_of


class Unknown:
    """Stands for a value that cannot be told."""


UNKNOWN: Final = Unknown()
# A property of the user's own class is not asked.
_SHAPE: Any = torch.Tensor.shape.__get__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Sized:
    """A tensor that does not exist any more, or not yet: only its shape can be told. -1 is a length not known."""

    shape: Shape
    before: Shape = ()
    """Its shape before `expand()`, with an axis for each of now; empty if it was not expanded."""


def is_tensor(value: Any) -> bool:
    """True for tensors of any class."""
    return is_a(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """True for arrays of NumPy's own class."""
    return class_name(value) == "ndarray" and module_of(type(value)) == "numpy"


def shape_of(value: Any) -> Shape | None:
    """Shape of a tensor, `()` of a number; None for anything else, and where torch does not tell."""
    if type(value) is Sized:
        return value.shape
    if is_one_of(value, (int, float, bool)):
        return ()
    if not is_tensor(value):
        return None
    try:
        return tuple(int(n) for n in _SHAPE(value))
    except Exception:  # noqa: BLE001
        return None


def of_array(value: Any) -> Any:
    """What torch makes of a tensor or of an array of NumPy's own class."""
    if is_array(value):
        return Sized(tuple(int(n) for n in value.shape))
    shape = shape_of(value) if is_tensor(value) or type(value) is Sized else None
    return Sized(shape) if shape is not None else UNKNOWN


def together(one: Shape, two: Shape) -> Any:
    """What two shapes are stretched to."""
    if not one or not two or one == two:
        return Sized(one or two)
    length = max(len(one), len(two))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(two)) + two, strict=True)
    return Sized(tuple(a if b in (1, a) else b for a, b in pairs))


def stretched_to(one: Shape, two: Shape) -> Shape | None:
    """What two shapes are stretched to; None if they do not fit, or a length is not known."""
    length = max(len(one), len(two))
    pairs = [*zip((1,) * (length - len(one)) + one, (1,) * (length - len(two)) + two, strict=True)]
    fit = all(a == b or 1 in (a, b) for a, b in pairs) and -1 not in (*one, *two)
    return tuple(max(a, b) if 0 not in (a, b) else 0 for a, b in pairs) if fit else None


def multiplied(one: Shape | None, two: Shape | None) -> Any:
    """The product of two matrices, or of rows of them; vectors, and sizes that do not fit, are left alone."""
    if not one or not two or min(len(one), len(two)) < 2 or (one[-1] != two[-2] and -1 not in (one[-1], two[-2])):  # noqa: PLR2004
        return UNKNOWN
    rows = together(one[:-2], two[:-2])
    return Sized((*rows.shape, one[-2], two[-1]))


@lru_cache(maxsize=512)
def partners(known: Shape, table: Shape) -> tuple[Shape, ...]:
    """Shapes with one axis of length 1 more or less than a known one, which both stretch to something larger."""
    fewer = [(*known[:i], *known[i + 1 :]) for i, n in enumerate(known) if n == 1]
    more = [(*known[:i], 1, *known[i:]) for i in range(len(known) + 1)]
    found = [one for one in (*fewer, *more) if stretched_to(known, one) == table]
    return tuple(one for one in dict.fromkeys(found) if prod(table) > max(prod(one), prod(known)))


SAME_SHAPE = frozenset(
    ["abs", "bfloat16", "bool", "byte", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "contiguous", "cos", "cpu",
     "cuda", "detach", "double", "dropout", "elu", "exp", "float", "floor", "gelu", "half", "int", "leaky_relu", "log",
     "log1p", "log2", "log_softmax", "logsigmoid", "long", "nan_to_num", "neg", "normalize", "pow", "relu",
     "requires_grad_", "round", "sigmoid", "sign", "silu", "sin", "softmax", "softplus", "sqrt", "square", "tanh",
     "to", "type", "type_as"]
)  # fmt: skip
"""Methods, and functions of torch, whose result is as large as what they are given first."""
JOINS = frozenset(["cat", "concat", "stack"])
PARTS = frozenset(["chunk", "split", "unbind"])
"""Methods that give several tensors."""
_PRODUCTS = frozenset(["bmm", "matmul", "mm"])
_SCALAR = frozenset(["item", "max", "mean", "median", "min", "norm", "std", "sum", "var"])
_FLAT = frozenset(["flatten", "ravel", "squeeze"])


def made_by(method: str, owner: Any, given: list[Any]) -> Any:
    """The result of one of the few methods that say what shape they make."""
    shape, sizes = shape_of(owner), [n for n in given if type(n) is int]
    if shape is None:
        return Sized((-1,)) if owner is UNKNOWN and (method in _FLAT or sizes == [-1]) else UNKNOWN
    if method in SAME_SHAPE:
        return Sized(shape)
    if method in _SCALAR and not given:
        return Sized(())
    if method in _PRODUCTS and len(given) == 1:
        return multiplied(shape, shape_of(given[0]))
    if method in PARTS:
        return tuple(map(Sized, axis_moves.parts(method, shape, given))) or UNKNOWN
    return _reshaped(method, shape, list(given[0]) if len(given) == 1 and type(given[0]) is tuple else given)


def _reshaped(method: str, shape: Shape, given: list[Any]) -> Any:
    """What one of the methods makes that are given axes or sizes; all of them may stand in one tuple."""
    if method == "expand":
        return _expanded(shape, given)
    reshape, sizes = _RESHAPES.get(method), [n for n in given if type(n) is int]
    made = reshape(shape, sizes) if reshape is not None and len(sizes) == len(given) else None
    return Sized(made) if made is not None else UNKNOWN


def joined(function: str, shapes: list[Shape | None], given: list[Any]) -> Any:
    """What `cat` and `stack` make of a list whose parts are known: `torch.cat([a, b], 1)`."""
    first, axis = shapes[0] if shapes else None, given[0] if given else 0
    if (
        not first
        or type(axis) is not int
        or len(given) > 1
        or not all(shapes)
        or any(-1 in one for one in shapes if one)
    ):
        return UNKNOWN
    if function == "stack":
        at = axis % (len(first) + 1)
        return Sized((*first[:at], len(shapes), *first[at:])) if set(shapes) == {first} else UNKNOWN
    at = axis % len(first)
    rest = {(*one[:at], *one[at + 1 :]) for one in shapes if one}
    total = sum(one[at] for one in shapes if one and len(one) == len(first))
    return Sized((*first[:at], total, *first[at + 1 :])) if len(rest) == 1 else UNKNOWN


def _expanded(shape: Shape, sizes: list[Any]) -> Any:
    """What `expand()` makes, where -1 stands for a length as it is."""
    before = (1,) * (len(sizes) - len(shape)) + shape
    if len(before) != len(sizes) or not all(type(n) is int for n in sizes):
        return UNKNOWN
    fits = all(n in (-1, old) or old == 1 for n, old in zip(sizes, before, strict=True))
    return (
        Sized(tuple(old if n == -1 else n for n, old in zip(sizes, before, strict=True)), before) if fits else UNKNOWN
    )


def before_expand(value: Any) -> Shape | None:
    """Shape of a tensor without the repetitions that take no memory."""
    if type(value) is Sized and value.before:
        return value.before
    shape = shape_of(value)
    if shape is None or type(value) is not torch.Tensor or value.layout is not torch.strided:
        return shape
    return tuple(1 if step == 0 else n for n, step in zip(shape, value.stride(), strict=True))


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


def _reduced(shape: Shape, axes: list[int]) -> Shape | None:
    """One axis less, as `argmax(1)` leaves it."""
    if len(axes) != 1 or not -len(shape) <= axes[0] < len(shape):
        return None
    return tuple(n for i, n in enumerate(shape) if i != axes[0] % len(shape))


_RESHAPES: dict[str, Callable[[Shape, list[int]], Shape | None]] = {
    "squeeze": _squeezed,
    "unsqueeze": _unsqueezed,
    "view": _viewed,
    "reshape": _viewed,
    **dict.fromkeys(("argmax", "argmin", "amax", "amin", "sum", "mean", "all", "any"), _reduced),
    "flatten": axis_moves.flattened,
    "permute": axis_moves.permuted,
    "movedim": axis_moves.moved,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), axis_moves.transposed),
    "ravel": lambda shape, given: _viewed(shape, [-1]) if not given else None,
    "t": lambda shape, given: shape[::-1] if not given else None,
}
