"""Numbers that operations cannot take, or only without a slope: roots and powers of 0, logarithms, divisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.private import Node

if TYPE_CHECKING:
    from torch_inspector.observe.graph import Walk

_Mask = Callable[[torch.Tensor], torch.Tensor]


class Cause(NamedTuple):
    """Numbers that an operation cannot take, or only without a slope."""

    what: str
    mask: _Mask
    """Where they are, in what the node has saved."""
    slope_only: bool = False
    """True if the value is finite there and only the slope is not."""


NEGATIVE = Cause("negative numbers", lambda t: t < 0)
_ZEROS = Cause("zeros", lambda t: t == 0)
_FLAT_ZEROS = _ZEROS._replace(slope_only=True)
_BEYOND = Cause("numbers beyond 1", lambda t: t.abs() > 1)
_AT_ONE = Cause("numbers at 1 or -1", lambda t: t.abs() == 1)
_SAME = Cause("equal eigenvalues", lambda t: t.diff(dim=-1) == 0, slope_only=True)
_TRAPS: dict[str, tuple[str, str, tuple[Cause, ...]]] = {
    "LogBackward0": ("log", "self", (NEGATIVE, _ZEROS)),
    "Log2Backward0": ("log2", "self", (NEGATIVE, _ZEROS)),
    "Log10Backward0": ("log10", "self", (NEGATIVE, _ZEROS)),
    "Log1PBackward0": ("log1p", "self", (Cause("numbers up to -1", lambda t: t <= -1),)),
    "DivBackward0": ("/", "other", (Cause("zeros to divide by", lambda t: t == 0),)),
    "ReciprocalBackward0": ("1 /", "result", (Cause("zeros", lambda t: t.isinf()),)),
    "RsqrtBackward0": ("rsqrt", "result", (Cause("zeros", lambda t: t.isinf()),)),
    "SqrtBackward0": ("sqrt", "result", (Cause("negative numbers", lambda t: t.isnan()), _FLAT_ZEROS)),
    "AcosBackward0": ("acos", "self", (_BEYOND, _AT_ONE._replace(slope_only=True))),
    "AsinBackward0": ("asin", "self", (_BEYOND, _AT_ONE._replace(slope_only=True))),
    "LinalgEighBackward0": ("eigh", "eigenvalues", (_SAME,)),
    "LinalgSvdBackward0": ("svd", "S", (_SAME,)),
    "AtanhBackward0": ("atanh", "self", (_BEYOND, _AT_ONE)),
}
"""By kind of node: the operation, what it has saved, and what of that it cannot take."""
_POWER = "PowBackward0"
TRAPPED = _TRAPS.keys() | {_POWER}
"""Kinds of nodes that have such numbers."""
# Nodes of one kind that are looked at; views in a row.
_NODES, _VIEWS = 64, 4
# What keeps a number away from an edge, and what only writes it in another shape.
_KEEP = {"Add": "+", "Clamp": "clamp", "ClampMin": "clamp", "Maximum": "clamp", "Where": "where"}
_SHAPES = frozenset(["Expand", "View", "Unsqueeze", "ToCopy"])


def trap_of(node: Node) -> tuple[str, str, tuple[Cause, ...]]:
    """The operation, what it has saved, and what of that it cannot take; without causes where there are none."""
    kind = type(node).__name__
    return ("**", "self", _causes_of_power(node)) if kind == _POWER else _TRAPS.get(kind, ("", "", ()))


def steep(walk: Walk) -> tuple[str, ...]:
    """Operations that have no finite slope at some numbers, from which nothing in the graph keeps their operand."""
    found = (_steep(node) for kind in sorted(TRAPPED & walk.by_kind.keys()) for node in walk.by_kind[kind][:_NODES])
    return tuple(dict.fromkeys(name for name in found if name))


def _steep(node: Node) -> str:
    """The name of such an operation; empty for others, and for a division by what has no history."""
    name, _, causes = trap_of(node)
    kept = _operand(node) is None or kept_by(node)
    return "" if kept or all(cause is NEGATIVE for cause in causes) else name


def kept_by(node: Node) -> str:
    """`+` or `clamp`, where a number was added to the operand last, or a bound was set: `d + 1e-8`."""
    made = _operand(node)
    for _ in range(_VIEWS):
        if made is not None and _kind(made) in _SHAPES:
            made = made.next_functions[0][0]
    if made is None or (_kind(made) == "Add" and all(parent is not None for parent, _ in made.next_functions)):
        return ""
    return _KEEP.get(_kind(made), "")


def _operand(node: Node) -> Node | None:
    """What made the operand that matters: of a division the divisor."""
    parents = [parent for parent, _ in node.next_functions]
    return next(iter(parents[1 if _kind(node) == "Div" else 0 :]), None)


def _kind(node: Node) -> str:
    return type(node).__name__.partition("Backward")[0]


def _causes_of_power(node: Node) -> tuple[Cause, ...]:
    """What a power cannot take: negative numbers if the exponent is not whole, zeros if it is below 1."""
    try:
        exponent = node._saved_exponent
    except RuntimeError:
        return ()
    if not is_one_of(exponent, (int, float)) or not exponent:
        return ()
    zeros = (_ZEROS._replace(slope_only=exponent > 0),) if exponent < 1 else ()
    return (NEGATIVE, *zeros) if exponent % 1 else zeros
