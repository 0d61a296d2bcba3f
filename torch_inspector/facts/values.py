"""Values that were read: losses, and what is not finite."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place

NO_TARGET = "targets of which none counts"
"""The cause where a mean is taken of none: all targets are of the class that is ignored, or of weight 0."""


NO_ALIGNMENT = "targets without an alignment"
"""The cause where targets cannot be aligned with what they are compared with."""
NO_VALUES = "no values"
"""The cause where a mean is taken of nothing."""
NO_ROOM = "a factor that is too large"
"""The cause where a loss is multiplied by a number that leaves its type no room, as a scale against small gradients."""


_WITHOUT_COUNT = {
    NO_TARGET: "no target of `{0.name}` counts, all are of the class to ignore or of weight 0",
    NO_ALIGNMENT: (
        "`{0.name}` finds no alignment for {0.bad_count} of {0.count} targets, "
        "as where one, with a blank between equal neighbours, is longer than its input"
    ),
    NO_ROOM: "it is multiplied by {0.extreme:.4g}, and float32 ends at 3.403e+38",
    NO_VALUES: "`{0.name}` was taken of no values",
}
"""What is said of these causes."""


class SpoiledFact(NamedTuple):
    """A parameter whose values, or whose gradient, are not finite."""

    key: int
    """Address of the parameter."""
    nan_count: int
    inf_count: int
    count: int
    """Elements in all."""
    plus_inf_count: int = 0
    """How many of the infinite values are plus infinity, which no mask is made of."""
    unread: bool = False
    """True for weights with which a loss that reaches them was finite: nothing has read these numbers yet."""
    without_gradient: bool = False
    """True for weights, where some that are not finite have had gradients of 0 alone, as their optimizer remembers."""


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
    low_rows: int = 0
    """How many rows along the last axis are minus infinity throughout; 0 if these have one number each."""

    @property
    def infinite_count(self) -> int:
        """How many are infinite, of both signs."""
        return self.inf_count + self.negative_inf_count

    @property
    def only_masks(self) -> bool:
        """True if minus infinity is all that is not finite: what may not be chosen is marked with it."""
        return bool(self.negative_inf_count) and not self.inf_count and not self.nan_count


class OperationFact(NamedTuple):
    """An operation that gives NaN or infinity, or whose slope is not finite where it was asked."""

    name: str
    """As the user may have written it: `log`, `exp`, `/`."""
    cause: str
    """What it was given: `zeros`, `negative numbers`, …; empty if only its result is known."""
    bad_count: int
    """Of its operand where the cause is known, else of its result."""
    count: int
    """Elements in all."""
    result: str = ""
    """`nan` or `inf`, if it was seen in the result."""
    layer: str = ""
    """Path of the layer that it runs in: `net.scale`; known from a second run only."""
    place: Place | None = None
    """Its line, known from a second run only."""
    given_by: str = ""
    """The operation that gave its operand, in the same words; empty for what came from outside, or is not known."""
    extreme: float | None = None
    """Of its operands, the number farthest from zero."""
    signed: bool = False
    """True if others of its operand's numbers are negative, where zeros are the cause."""
    whole: bool = False
    """True if its operand is of whole numbers, as a count."""
    half: bool = False
    """True if the numbers that are not finite are in float16."""
    plain: bool = False
    """True if its operand is one number that Python may have made, of its own type and without a history."""

    def text(self) -> str:
        """What is known of it: `log` was given 12 zeros among 32 values."""
        among = f" among {self.count} values" if self.count > 1 else ""
        inside = f"in `{self.layer}` " if self.layer else ""
        if self.cause in _WITHOUT_COUNT:
            return _WITHOUT_COUNT[self.cause].format(self)
        if self.cause:
            what = (
                self.cause.replace("zeros", "zero").replace("numbers", "number") if self.bad_count == 1 else self.cause
            )
            return f"{inside}`{self.name}` was given {self.bad_count} {what}{among}"
        reach = f" for operands up to {self.extreme:.4g}" if self.extreme is not None else ""
        if self.layer:
            return f"{inside}`{self.name}` gives {self.bad_count} {self.result}{among}{reach}"
        seen = "is" if self.bad_count == 1 else "are"
        return f"{self.bad_count} {self.result}{among} {seen} first seen in what `{self.name}` gives"


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
    operation: OperationFact | None = None
    """The first operation in the graph of a loss that is not finite which gave such values to finite operands."""
    given: str = ""
    """`nan` or `inf`, if that was in what the graph of a loss that is not finite was given from outside."""
    largest_weight: float = 0.0
    """Of the weights that were read at the first loss, and at the first that is not finite, the number farthest from
    zero."""


class ResultFact(NamedTuple):
    """What a cell computed and is not finite, whether or not `backward()` was called on it: a number, or float16."""

    path: str
    """Its variable; `Out[7]` for what the cell showed."""
    loss: LossFact
    """What is known of it, with 0 for the number of the call."""


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
