"""Losses that grow from step to step until they are no numbers any more, and those that only end so."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from torch_inspector.facts.values import NO_TARGET, NO_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_inspector.facts.values import LossFact

# A loss that has grown this often before the end is divergence; one that has not ended, only beyond the second, and
# beyond the third for each call: a total of all losses grows with their number.
_GREW_RATIO, _EXPLODED_RATIO, _EXPLODED_EACH = 10.0, 1e3, 20.0
_FEW_LOSSES = 5
# A loss that begins below the first, as the surrogate of a policy that has not moved yet, and ends below the second has
# not grown without end: that it is no number next has another reason.
_NEAR_ZERO, _SMALL = 1e-3, 1.0
# Below it, NaN that came from outside was there without the steps; beyond, targets may be made of what has grown.
_LARGE = 1e3


def growth(first: float | None, last: float | None, *, index: int, ended: bool) -> tuple[float, float] | None:
    """First and last value of a loss that is positive and grew; None if it did not.

    Args:
        first: Its first value.
        last: Its last finite value.
        index: How many values there were.
        ended: True if it was not finite then, or the weights are not.
    """
    if first is None or last is None or not first > 0 or (first < _NEAR_ZERO and last < _SMALL):
        return None
    ratio = last / first
    enough = ratio >= max(_EXPLODED_RATIO, _EXPLODED_EACH * index) and index >= _FEW_LOSSES
    return (first, last) if enough or (ended and ratio >= _GREW_RATIO) else None


def is_of_other_cause(losses: Iterable[LossFact], last: float) -> bool:
    """True if the first of these losses that is not finite has a reason that no smaller step would have taken away.

    NaN that its graph was given, as the spread of one sample, a mean of nothing, targets of which none counts.
    """
    bad = next((one for one in losses if not isfinite(one.value)), None)
    if bad is None or bad.spoiled_weights or last >= _LARGE:
        return False
    made = bad.operation
    if made is None:
        return bad.given == "nan"
    alone = made.name == "std" and made.result == "nan" and made.bad_count == made.count
    return alone or made.cause in (NO_TARGET, NO_VALUES)
