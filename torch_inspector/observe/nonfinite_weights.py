"""Which weights are not finite on purpose: a class that may not be, a mask, a table with gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import ref

from torch_inspector.facts import SpoiledFact
from torch_inspector.observe import as_torch

_Tensors = list[tuple[int, Any]]


class NonfiniteWeights:
    """Tells those that spoil something from those with which losses are finite.

    Args:
        spoiled: Gives those of some tensors that hold NaN or infinity.
    """

    def __init__(self, spoiled: Callable[[_Tensors], Iterable[SpoiledFact]]) -> None:
        self._spoiled = spoiled
        self._meant: dict[int, tuple[ref[Any], int]] = {}
        """Not finite while a loss that reaches them was, and how many NaN; who dies takes the entry along."""

    def note_finite(self, reached: _Tensors) -> None:
        """Notes that a loss is finite that is known to reach these parameters."""
        by_key = dict(reached)
        self._meant = {key: one for key, one in self._meant.items() if one[0]() is not None}
        self._meant.update((one.key, (ref(by_key[one.key]), one.nan_count)) for one in self._spoiled(reached))

    def note_read(self, keys: Iterable[int]) -> None:
        """Notes that a loss has read what is not finite in these parameters, and is not finite either."""
        for key in keys:
            self._meant.pop(key, None)

    def found(self, tensors: _Tensors, *, finite: bool, stepped: bool) -> Iterator[SpoiledFact]:
        """Those of some tensors that are not finite without being meant to.

        Args:
            tensors: Parameters by key.
            finite: True if every loss of the cell was, as far as is known.
            stepped: True if the cell may have made steps: only these make weights infinite that were numbers.
        """
        by_key = dict(tensors)
        for one in self._spoiled(tensors):
            (known, count), parameter = self._meant.get(one.key, (None, 0)), by_key[one.key]
            same = known is not None and known() is parameter
            # Infinities are meant then; numbers that are not one in a row that is never asked for may be no more.
            meant = same and not one.nan_count
            if not meant and not (finite and _is_harmless(one, parameter, stepped)):
                yield one._replace(unread=same and one.nan_count <= count)


def _is_harmless(one: SpoiledFact, parameter: Any, stepped: bool) -> bool:
    """True for some numbers of a parameter that no step changes, and for minus infinity in a cell without steps."""
    if not as_torch.requires_grad(parameter):
        return one.nan_count < one.count
    return not (one.nan_count or one.plus_inf_count or stepped)
