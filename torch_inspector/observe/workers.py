"""Generators of random numbers that a data set carries into each of its loader's workers."""

from __future__ import annotations

import random
from types import FunctionType
from typing import Any

import torch

from torch_inspector.facts import GeneratorFact
from torch_inspector.observe import kinds
from torch_inspector.observe.naming import names_of

# Fields of one object, and generators in one data set.
_FIELDS, _MOST = 64, 8
_NUMPY = ("Generator", "RandomState")
# Code that names one of these tells workers apart itself.
_TELLS_APART = frozenset(["get_worker_info", "initial_seed", "SeedSequence"])


def generators_in(loader: Any) -> tuple[GeneratorFact, ...]:
    """Generators that the data set, or what it holds, draws from in other methods than `__init__`."""
    settings = kinds.fields_of(loader)
    dataset = settings.get("dataset")
    found: list[GeneratorFact] = []
    holders = [("", dataset)]
    holders += [(name, part) for name, part in _fields(dataset) if kinds.fields_of(part)]
    for prefix, holder in holders:
        for name, thing in _fields(holder):
            kind = _generator_kind(thing)
            if kind and len(found) < _MOST and _draws(holder, name) and not _reseeds(settings, name):
                path = f"{prefix}.{name}" if prefix else name
                found.append(GeneratorFact(path, kind, kinds.class_name(holder)))
    return tuple(found)


def _fields(thing: Any) -> list[tuple[str, Any]]:
    items = list(kinds.fields_of(thing).items())[:_FIELDS] if thing is not None else []
    return [(name, value) for name, value in items if type(name) is str]


def _generator_kind(thing: Any) -> str:
    """What a generator is called; empty for anything else."""
    kind = type(thing)
    if kinds.is_a(thing, random.Random):
        return "random.Random"
    if kinds.is_a(thing, torch.Generator):
        return "torch.Generator"
    name = kinds.class_name(thing)
    is_numpy = name in _NUMPY and kinds.module_of(kind).startswith("numpy.random")
    return f"numpy.random.{name}" if is_numpy else ""


def _draws(holder: Any, name: str) -> bool:
    """True if a method that workers run names the generator, and none looks at which worker it is in."""
    codes = [code for code in kinds.methods_of(type(holder)) if code.co_name not in ("__init__", "__setstate__")]
    if any(_TELLS_APART & names_of(code) for code in codes):
        return False
    return any(name in names_of(code) for code in codes)


def _reseeds(settings: dict[str, Any], name: str) -> bool:
    """True if each worker is prepared by a function that may give it a generator of its own."""
    prepare = settings.get("worker_init_fn")
    if prepare is None:
        return False
    if type(prepare) is not FunctionType:
        return True
    return bool({name, "dataset", *_TELLS_APART} & names_of(prepare.__code__))
