"""Values that were read: losses, and what is not finite."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place


class SpoiledFact(NamedTuple):
    """A parameter whose values, or whose gradient, are not finite."""

    key: int
    """Address of the parameter."""
    nan_count: int
    inf_count: int
    count: int
    """Elements in all."""


class ExtremeFact(NamedTuple):
    """Values of one variable on the CPU."""

    path: str
    dtype: str
    count: int
    """Elements in all."""
    inf_count: int = 0
    """How many are plus infinity."""
    negative_inf_count: int = 0
    nan_count: int = 0
    computed: bool = False
    """True if it needs a gradient: it was computed from weights, or is one."""


class LossFact(NamedTuple):
    """The value of one loss on the CPU that `backward()` was called on, and what the call left."""

    order: int
    place: Place
    index: int
    """How often this line has called it, this call included."""
    value: float
    origins: tuple[ExtremeFact, ...] = ()
    """Variables around the first loss that is not finite which are not finite either."""
    spoiled_weights: tuple[SpoiledFact, ...] = ()
    """Weights that were not finite at that moment."""
    spoiled_gradients: tuple[SpoiledFact, ...] = ()
    """Gradients that this call left, of a loss that was finite; looked for until some were found."""
    zero_gradients: int = 0
    """Gradients that are zero everywhere, if all that were read are; else 0."""
    gradient_count: int = 0


class SeriesFact(NamedTuple):
    """A list of plain numbers that the user's code collected."""

    path: str
    count: int
    first_bad: int | None
    """Position of the first number that is not finite, if the last one is not either."""
    first: float | None
    last: float | None
    """The last number, or the one before the first that is not finite."""
    lowest: float | None
    bad: str = ""
    """That number: `nan` or `inf`."""
