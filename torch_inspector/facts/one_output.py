"""Layers with one output, by the number that the text gives them, whose result goes into a softmax."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts.layer_texts import Key, Softmax, Text, read
from torch_inspector.facts.place import Place, Shape
from torch_inspector.facts.sole import Written

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


class Scored(NamedTuple):
    """A softmax of what such a layer gives."""

    written: Written
    target: str
    """What is given its result; empty where it is used at once."""


class _Candidate(NamedTuple):
    scored: Scored
    axis: int | None
    """As written; None where the text does not tell."""
    is_known: bool
    """False for a layer whose number of outputs the text does not tell: it may be 1 as well."""

    def fits(self, shape: Shape) -> bool:
        """True if it may run along the axis of such a shape that is 1 long."""
        wanted = len(shape) - 1 if shape[-1] == 1 else 1
        return self.axis is None or self.axis in (wanted, wanted - len(shape))


def softmaxes_of_one(run: Run, shape: Shape) -> list[Scored]:
    """The softmaxes of the texts that are given what a layer like `nn.Linear(8, 1)` computes.

    Empty where the result of that shape may be that of a layer whose number of outputs is a setting, 1 for once.
    """
    sources = dict[str, int]()
    for one in (*run.earlier, run):
        sources.pop(one.cell.source, None)
        sources[one.cell.source] = one.cell.number
    fitting = [one for one in _candidates(tuple(sources.items())) if one.fits(shape)]
    return [one.scored for one in fitting] if all(one.is_known for one in fitting) else []


class _Known(NamedTuple):
    """What all texts say, the latest where they differ."""

    layers: dict[Key, bool | None]
    attributes: dict[str, set[bool | None]]
    """By the name alone."""
    given: dict[str, set[Key]]

    def outputs(self, key: Key) -> bool | None:
        """True for one output; of an attribute that its own class does not make, where all of this name have one."""
        if key in self.layers or not key.is_attribute:
            return self.layers.get(key, False)
        others = self.attributes.get(key.name, set())
        return next(iter(others)) if len(others) == 1 else False


@lru_cache(maxsize=2)
def _candidates(cells: tuple[tuple[str, int], ...]) -> list[_Candidate]:
    """Those of all texts, gathered once for a run; what ran at the top of earlier cells is not asked."""
    texts = [(number, read(source)) for source, number in cells]
    known = _known([text for _, text in texts])
    found = list[_Candidate]()
    for number, text in texts:
        for one in text.softmaxes:
            kinds = _outputs(one, text, known) if one.inside or number == cells[-1][1] else set()
            if kinds:
                written = Written(ast.unparse(one.node), Place(number, one.node.lineno), one.inside)
                found.append(_Candidate(Scored(written, one.target), one.axis, True in kinds))
    return found


def _known(texts: list[Text]) -> _Known:
    known = _Known({}, {}, {})
    for text in texts:
        known.layers.update(text.layers)
        for name, keys in text.given_at_top.items():
            known.given.setdefault(name, set()).update(keys)
    for key, value in known.layers.items():
        if key.is_attribute:
            known.attributes.setdefault(key.name, set()).add(value)
    return known


def _outputs(one: Softmax, text: Text, known: _Known) -> set[bool | None]:
    """For the layers that a softmax, and the names in it, are computed with: True for one output, None if not known."""
    keys = set(one.calls)
    for name in one.names:
        keys |= text.given.get((one.scope, name)) or known.given.get(name) or set()
    return {known.outputs(key) for key in keys} - {False}
