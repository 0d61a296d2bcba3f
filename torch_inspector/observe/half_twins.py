"""Numbers as they were in float16, each beside what it is in double precision, and the first step that parts them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from torch_inspector.observe import as_torch, kinds
from torch_inspector.observe.in_memory import is_in_memory

_LARGEST = 65_504
# About a millisecond each, a dozen steps.
_ELEMENTS, _PRODUCTS = 300_000, 30_000_000
# None that may warn: the warning would be shown to the user.
_SAME = (
    "sum", "mean", "exp", "softmax", "log_softmax", "log", "sqrt", "rsqrt", "abs", "pow", "square", "sigmoid",
    "tanh", "relu",
    "min", "max", "amin", "amax", "norm", "clamp", "clamp_min", "clamp_max", "transpose", "t", "unsqueeze",
    "squeeze", "view",
    "reshape", "flatten", "permute", "triu", "tril", "detach", "clone", "contiguous", "prod", "neg",
    "matmul", "mm", "bmm", "add", "sub", "mul", "div", "diagonal", "logsumexp", "cpu", "bool",
    "view_as", "reciprocal", "log1p", "expm1", "cumsum", "cumprod", "dot", "eq", "ne", "gt", "lt",
    "ge", "le", "unbind", "chunk", "split", "var", "std",
)  # fmt: skip


def _norm(given: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """What the method of tensors gives, which stands in Python there."""
    order = 2 if p == "fro" else p
    return _NORM(given, order) if dim is None else _NORM(given, order, dim, keepdim)


_NORM: Callable[..., Any] = getattr(torch._C.TensorBase, "norm")  # noqa: B009  (unknown to types)


def _spread(name: str) -> Callable[..., Any]:
    """`var` or `std` of several numbers; that of one is NaN, and torch warns of it."""
    method = getattr(torch._C.TensorBase, name)

    def spread(given: Any, *args: Any, **named: Any) -> Any:
        first = args[0] if args and type(args[0]) is not bool else named.get("dim")
        axes = first if kinds.is_one_of(first, (tuple, list)) else () if first is None else (first,)
        if (prod(given.shape[axis] for axis in axes) if axes else given.numel()) <= 1:
            raise UnknownError
        return method(given, *args, **named)

    return spread


METHODS: Mapping[str, Callable[..., Any]] = {
    name: getattr(torch._C.TensorBase, name) for name in _SAME if hasattr(torch._C.TensorBase, name)
} | {"norm": _norm, "var": _spread("var"), "std": _spread("std")}
_CASTS = {"half": torch.float16, "float": torch.float32, "double": torch.float64, "bfloat16": torch.bfloat16}
FUNCTIONS: Mapping[int, str] = {
    id(getattr(home, name)): name for home in (torch, functional) for name in _SAME if hasattr(home, name)
}
"""Functions of torch by their number, and the methods that do the same."""
OPERATORS: Mapping[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.MatMult: ("@", operator.matmul), ast.Pow: ("**", operator.pow),
}  # fmt: skip
COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


LINEAR: Callable[..., Any] = torch._C._nn.linear
"""A linear layer, past what a program may have put in its place."""
_MATRICES = (operator.matmul, LINEAR, *(METHODS[name] for name in ("matmul", "mm", "bmm", "dot")))


class UnknownError(Exception):
    """What is not plain arithmetic of known numbers."""


class Cause(NamedTuple):
    """The step at which float16 went wrong."""

    node: ast.AST
    """What is beyond its end, or zero in it."""
    line: int
    cell: int | None
    function: str
    is_over: bool
    extreme: float
    """The largest of the numbers as they should be, or the smallest."""


class Pair(NamedTuple):
    """A tensor of the user's, or a step, twice."""

    actual: torch.Tensor
    exact: torch.Tensor
    cause: Cause | None = None


def paired(value: Any) -> Pair:
    """A live tensor; raises `UnknownError` for one that cannot be read."""
    if not kinds.is_one_of(value, (torch.Tensor, torch.nn.Parameter)) or not is_in_memory(value):
        raise UnknownError
    if as_torch.numel(value) > _ELEMENTS:
        raise UnknownError
    actual = as_torch.detach(value)
    return Pair(actual, actual.double() if actual.is_floating_point() else actual)


def cast(pair: Pair, name: str, args: list[Any], at: Callable[..., Cause]) -> Pair | None:
    """The result of a call that changes the type of numbers; None for other calls."""
    wanted = _CASTS.get(name)
    if name == "to" and len(args) == 1 and type(args[0]) is torch.dtype:
        wanted = args[0]
    if name in ("type_as", "to") and len(args) == 1 and type(args[0]) is Pair:
        wanted = args[0].actual.dtype
    if wanted is None or not wanted.is_floating_point:
        return None
    return _judged(pair.actual.to(wanted), pair.exact.double(), [pair], at)


def applied(function: Callable[..., Any], args: list[Any], named: Mapping[str, Any], at: Callable[..., Cause]) -> Any:
    """What an operation gives for both sides, with the cause if float16 goes wrong there.

    Args:
        function: The operation.
        args: What it is given; tensors as `Pair`.
        named: What it is given by names.
        at: Makes the cause, told what went wrong.
    """
    if not all(map(_is_plain, (*args, *named.values()))):
        raise UnknownError
    given = [one for value in (*args, *named.values()) for one in _pairs_of(value)]
    several = (value for value in args if kinds.is_one_of(value, (tuple, list)))
    joined = sum(one.actual.numel() for value in several for one in _pairs_of(value))
    # What is told where to write would write over the numbers of the user.
    if (
        "out" in named
        or joined > _ELEMENTS
        or not _is_small(function, [one.actual for one in args if type(one) is Pair])
    ):
        raise UnknownError
    actual = function(*(_side(one, 0) for one in args), **{name: _side(one, 0) for name, one in named.items()})
    exact = function(*(_side(one, 1) for one in args), **{n: _side(one, 1) for n, one in named.items() if n != "dtype"})
    if isinstance(actual, tuple) and not isinstance(actual, torch.Size):
        return tuple(_judged(*both, given, at) for both in zip(actual, exact, strict=True))
    return _judged(actual, exact, given, at) if type(actual) is torch.Tensor else actual


def _is_plain(value: Any) -> bool:
    """True for numbers, tensors that are paired, and sequences of these: nothing that has code of the user."""
    if kinds.is_one_of(value, (tuple, list)):
        return all(map(_is_plain, value))
    return kinds.is_one_of(value, (Pair, int, float, bool, str, type(None), torch.dtype))


def _is_small(function: Callable[..., Any], given: list[torch.Tensor]) -> bool:
    """True if two tensors give no large one, whether they are stretched to each other or multiplied as matrices."""
    if len(given) < 2 or not all(one.dim() for one in given[:2]):  # noqa: PLR2004
        return True
    first, second = given[:2]
    if function in _MATRICES:
        return first.numel() * max(second.shape) <= _PRODUCTS
    stretched = [max(a, b) for a, b in zip(first.shape[::-1], second.shape[::-1], strict=False)]
    longer = max(given[:2], key=torch.Tensor.dim).shape
    return prod(stretched) * prod(longer[: len(longer) - len(stretched)]) <= _ELEMENTS


def _side(value: Any, side: int) -> Any:
    if type(value) is Pair:
        return value[side]
    if type(value) is list:
        return [_side(one, side) for one in value]
    return tuple(_side(one, side) for one in value) if type(value) is tuple else value


def _pairs_of(value: Any) -> list[Pair]:
    values = value if kinds.is_one_of(value, (tuple, list)) else [value]
    return [one for one in values if type(one) is Pair]


def _judged(actual: torch.Tensor, exact: torch.Tensor, given: list[Pair], at: Callable[..., Cause]) -> Pair:
    cause = next((one.cause for one in given if one.cause is not None), None)
    if cause is None and actual.dtype is torch.float16 and actual.shape == exact.shape and not _is_finite(actual):
        cause = _cause(actual, exact, given, at) if all(_is_finite(one.actual) for one in given) else None
    return Pair(actual, exact, cause)


def _cause(actual: torch.Tensor, exact: torch.Tensor, given: list[Pair], at: Callable[..., Cause]) -> Cause | None:
    right = exact[~actual.isfinite()]
    if bool((right.abs() > _LARGEST).any()) and bool(right.isfinite().any()):
        known = right[right.isfinite()]
        return at(over=True, extreme=float(known[known.abs().argmax()]))
    if not bool(right.isfinite().all()):
        return None
    for place, one in reversed(list(enumerate(given))):
        lost = (one.actual == 0) & (one.exact != 0) if one.actual.dtype is torch.float16 else None
        if lost is not None and bool(lost.any()):
            return at(over=False, extreme=float(one.exact[lost].abs().max()), place=place)
    return None


def _is_finite(values: torch.Tensor) -> bool:
    return not values.is_floating_point() or bool(values.isfinite().all())
