"""Layers with one output, by the number that the text gives them, whose result goes into a softmax."""

from __future__ import annotations

import ast
import re
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
    layers: dict[str, bool | None]
    """Layers that it may be given, by name: True for one output, None where the text does not tell their number."""
    is_told: bool
    """False where something else that the text calls may be a layer too."""

    def fits(self, shape: Shape) -> bool:
        """True if it may run along the axis of such a shape that is 1 long."""
        wanted = len(shape) - 1 if shape[-1] == 1 else 1
        return self.axis is None or self.axis in (wanted, wanted - len(shape))


def softmaxes_of_one(run: Run, shape: Shape, keys: frozenset[int] = frozenset()) -> list[Scored]:
    """The softmaxes of the texts that are given what a layer like `nn.Linear(8, 1)` computes.

    Empty where the result of that shape may be that of a layer whose number of outputs is a setting, 1 for once.

    Args:
        run: The run.
        shape: What such a softmax gave.
        keys: Parameters of the layer; where they have names, only softmaxes of a layer with that name are asked for.
    """
    sources = dict[str, int]()
    for one in (*run.earlier, run):
        sources.pop(one.cell.source, None)
        sources[one.cell.source] = one.cell.number
    fitting = [one for one in _candidates(tuple(sources.items())) if one.fits(shape)]
    names = _names(run, keys)
    if not names and not all(one.is_told for one in fitting):
        return []
    found = [one for one in fitting if one.layers and (not names or names & one.layers.keys())]
    return [one.scored for one in found] if all(True in one.layers.values() for one in found) else []


def _names(run: Run, keys: frozenset[int]) -> set[str]:
    """Every name on the paths to some parameters: `net`, `score` and `weight` of `net.score.weight`."""
    modules = (*run.after.modules, *run.before.modules) if keys else ()
    paths = (f"{one.path}.{name}" for one in modules for key, name in one.parameter_names if key in keys)
    return {name for path in paths for name in re.findall(r"[^\W\d]\w*", path)}


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

    def tells(self, key: Key) -> bool:
        """True if a text makes what is called, or if it is a method of whatever stands before it."""
        if key in self.layers or not key.is_attribute:
            return key in self.layers
        others = self.attributes.get(key.name, set())
        return len(others) == 1 or (not others and not key.owner)


@lru_cache(maxsize=2)
def _candidates(cells: tuple[tuple[str, int], ...]) -> list[_Candidate]:
    """Those of all texts, gathered once for a run; what ran at the top of earlier cells is not asked."""
    texts = [(number, read(source)) for source, number in cells]
    known = _known([text for _, text in texts])
    found = list[_Candidate]()
    for number, text in texts:
        for one in text.softmaxes:
            if one.inside or number == cells[-1][1]:
                written = Written(ast.unparse(one.node), Place(number, one.node.lineno), one.inside)
                layers, is_told = _layers(one, text, known)
                found.append(_Candidate(Scored(written, one.target), one.axis, layers, is_told))
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


def _layers(one: Softmax, text: Text, known: _Known) -> tuple[dict[str, bool | None], bool]:
    """The layers that a softmax, and the names in it, are computed with, and whether those are all."""
    keys = set(one.calls)
    for name in one.names:
        keys |= text.given.get((one.scope, name)) or known.given.get(name) or set()
    outputs = {key: known.outputs(key) for key in keys}
    is_told = all(map(known.tells, keys)) and any(key in known.layers for key in keys)
    return {key.name: value for key, value in outputs.items() if value is not False}, is_told
