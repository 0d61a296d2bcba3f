"""Shapes that an index leaves: `x[:, 1:3]`, `x[None]`, `x[rows]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import Shape
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_tensor, shape_of

if TYPE_CHECKING:
    from torch_inspector.observe.operands import Names


def sliced(names: Names, shape: Shape, parts: list[ast.expr]) -> Any:
    """A `Sized`, or `UNKNOWN`.

    Args:
        names: What the index means.
        shape: Of the tensor.
        parts: The index, one part for each axis.
    """
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
    shape = shape_of(index)
    if type(index) is int or (type(index) is Sized and shape == ()):  # a number, be it which it may
        return ()
    masks = is_tensor(index) and index.dtype in (torch.bool, torch.uint8)
    return shape if shape is not None and len(shape) == 1 and not masks and is_tensor(index) else None
