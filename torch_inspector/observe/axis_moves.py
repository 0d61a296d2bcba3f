"""Shapes that calls of torch make by moving, splitting and merging axes: `permute`, `chunk`, attention, `einsum`."""

from __future__ import annotations

from math import prod
from typing import Any

from torch_inspector.facts import Shape

# Letters of `einsum`; dots stand for axes that are not named.
_DOTS = "..."
_MATRIX = 2
OF_SEVERAL = frozenset(["scaled_dot_product_attention", "einsum", "cdist"])
"""Functions whose result has sizes of several tensors."""


def transposed(shape: Shape, axes: list[int]) -> Shape | None:
    """Two axes change places."""
    if len(axes) != 2 or not _are_axes(shape, axes):  # noqa: PLR2004
        return None
    order = list(range(len(shape)))
    one, two = (axis % len(shape) for axis in axes)
    order[one], order[two] = two, one
    return tuple(shape[axis] for axis in order)


def permuted(shape: Shape, axes: list[int]) -> Shape | None:
    """All axes in another order."""
    order = [axis % len(shape) for axis in axes] if _are_axes(shape, axes) else []
    return tuple(shape[axis] for axis in order) if sorted(order) == list(range(len(shape))) else None


def moved(shape: Shape, axes: list[int]) -> Shape | None:
    """`movedim(1, -1)`: one axis goes to another place."""
    if len(axes) != 2 or not _are_axes(shape, axes):  # noqa: PLR2004
        return None
    left = list(shape)
    one = left.pop(axes[0] % len(shape))
    left.insert(axes[1] % len(shape), one)
    return tuple(left)


def flattened(shape: Shape, axes: list[int]) -> Shape | None:
    """`flatten()`, `flatten(2)`, `flatten(0, 1)`."""
    if not shape or len(axes) > 2 or not _are_axes(shape, axes):  # noqa: PLR2004
        return None if shape else (1,)
    first, last = (*(axis % len(shape) for axis in axes), *(0, len(shape) - 1)[len(axes) :])
    merged = shape[first : last + 1]
    return (*shape[:first], -1 if -1 in merged else prod(merged), *shape[last + 1 :]) if first <= last else None


def parts(method: str, shape: Shape, given: list[Any]) -> tuple[Shape, ...]:
    """What `chunk`, `split` and `unbind` leave, one shape for each part; empty where that is not known."""
    axis = given[-1] if method == "unbind" and given else given[1] if len(given) > 1 else 0
    count = 1 if method == "unbind" else given[0] if given else None
    if type(axis) is not int or type(count) is not int or not _are_axes(shape, [axis]) or not shape or count < 1:
        return ()
    at = axis % len(shape)
    before, length, after = shape[:at], shape[at], shape[at + 1 :]
    if length < 0 or method == "unbind":
        return ((*before, *after),) * max(length, 0)
    size = max(1, -(-length // count)) if method == "chunk" else count
    return tuple((*before, min(size, length - begun), *after) for begun in range(0, length, size))


def of_several(function: str, formula: Any, shapes: list[Shape | None]) -> Shape | None:
    """Sizes of what one of `OF_SEVERAL` makes of tensors.

    Args:
        function: Its name.
        formula: Its first argument, for `einsum`.
        shapes: Of all its arguments.
    """
    if function == "einsum":
        return _einsum(formula, shapes[1:])
    known = [shape for shape in shapes[:3] if shape is not None and len(shape) >= _MATRIX]
    if function == "cdist":
        fits = len(known) == 2 and known[0][:-2] == known[1][:-2] and known[0][-1] == known[1][-1]  # noqa: PLR2004
        return (*known[0][:-1], known[1][-2]) if fits else None
    fits = len(known) == 3 and known[0][:-2] == known[2][:-2]  # noqa: PLR2004
    return (*known[0][:-1], known[2][-1]) if fits else None


def _einsum(formula: Any, shapes: list[Shape | None]) -> Shape | None:
    """Sizes of the result, where the formula names each axis with one letter and says what comes out."""
    if type(formula) is not str or _DOTS in formula or "->" not in formula:
        return None
    given, _, made = formula.replace(" ", "").partition("->")
    terms, sizes = given.split(","), dict[str, int]()
    if len(terms) != len(shapes) or any(len(one) != len(shape or ()) for one, shape in zip(terms, shapes, strict=True)):
        return None
    for letters, shape in zip(terms, shapes, strict=True):
        sizes.update(zip(letters, shape or (), strict=True))
    return tuple(sizes[letter] for letter in made) if all(letter in sizes for letter in made) else None


def _are_axes(shape: Shape, axes: list[int]) -> bool:
    return all(-len(shape) <= axis < len(shape) for axis in axes)
