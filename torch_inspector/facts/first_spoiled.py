"""Of several variables that hold NaN the one that all others are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts.made_of import ingredients_of, variable_of

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact


class FirstSpoiled(NamedTuple):
    """Where numbers came from that are not finite."""

    fact: ExtremeFact
    made: tuple[str, ...] = ()
    """Paths of what is made of it and holds such numbers, too."""


def first_spoiled(run: Run, found: Sequence[ExtremeFact]) -> FirstSpoiled | None:
    """The only one that the text makes of no other one; None if there are several, or none."""
    spoiled = {variable_of(one.path) for one in found}
    given = {one.path: _goes_into(run, variable_of(one.path), spoiled) for one in found}
    first = [one for one in found if not given[one.path]]
    if len(first) != 1:
        return None
    name = variable_of(first[0].path)
    return FirstSpoiled(first[0], tuple(one.path for one in found if name in given[one.path]))


def _goes_into(run: Run, name: str, spoiled: set[str]) -> set[str]:
    """Other spoiled variables that the cell makes one of, by however many steps."""
    return spoiled.intersection(ingredients_of(run.cell.source, [name])) - {name}
