"""Generators of random numbers that a data set carries, or reaches, in each of its loader's workers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from torch_inspector.facts import GeneratorFact
from torch_inspector.observe import kinds
from torch_inspector.observe.alike import Named, seeded_alike
from torch_inspector.observe.asked_items import TreeOf, named_by
from torch_inspector.observe.drawing import globals_read, holders_in, with_called
from torch_inspector.observe.naming import names_of

# Fields of one object, and generators in one data set.
_FIELDS, _MOST = 64, 8
_NUMPY = ("Generator", "RandomState")
COLLATE = "collate_fn"
"""First part of the path of a generator that the function has which puts batches together: workers run that too."""
# Methods that run before the workers are made.
_BEFORE = ("__init__", "__setstate__")
# Code that names one of these tells workers apart itself.
_TELLS_APART = frozenset(["get_worker_info", "initial_seed", "SeedSequence"])


def generators_in(loader: Any, tree_of: TreeOf = lambda _: None) -> tuple[GeneratorFact, ...]:
    """Generators that the data set, what it holds, or the function for batches draws from, and the notebook's own.

    Args:
        loader: A `DataLoader`.
        tree_of: Gives the text of code; what stands behind a test that does not hold is left out then.
    """
    settings = kinds.fields_of(loader)
    found: list[GeneratorFact] = []
    holders = list(_holders(settings, tree_of))
    for prefix, holder, named in holders:
        for name, thing in _fields(holder):
            kind = _generator_kind(thing)
            drawn = _draws(holder, name) and _is_named(f"self.{name}", named)
            if kind and len(found) < _MOST and drawn and not _reseeds(settings, name):
                path = f"{prefix}.{name}" if prefix else name
                found.append(GeneratorFact(path, kind, kinds.class_name(holder)))
        for name, kind in _globals_drawn_from(holder):
            surely = _is_named(name.partition(".")[0], named)
            if len(found) < _MOST and surely and not _reseeds(settings, name.rpartition(".")[2]):
                found.append(GeneratorFact(name, kind, _called(holder), is_global=True))
    running = [(one, named) for _, holder, named in holders for one in _running(holder)]
    return (*found, *seeded_alike(settings, running))


def _holders(settings: dict[str, Any], tree_of: TreeOf) -> Iterator[tuple[str, Any, Named]]:
    """What workers run code of, each with its path and what its code surely names."""
    named: dict[str, Named] = {}
    for path, holder in holders_in(settings.get("dataset")):
        owner, _, part = path.rpartition(".")
        if not path or _is_named(f"self.{part.partition('[')[0]}", named.get(owner)):
            named[path] = named_by(holder, tree_of)
            yield path, holder, named[path]
    batches = settings.get(COLLATE)
    yield COLLATE, batches, named_by(batches, tree_of)


def _is_named(name: str, named: Named) -> bool:
    """True if code surely names something, or is not at hand."""
    return named is None or any(one == name or one.startswith(f"{name}.") for one in named)


def _running(holder: Any) -> list[FunctionType]:
    """Functions of the notebook that workers run for an object."""
    functions = [holder] if type(holder) is FunctionType else kinds.functions_of(type(holder))
    return [one for one in functions if one.__name__ not in _BEFORE and one.__module__ == "__main__"]


def _called(holder: Any) -> str:
    return str(holder.__name__) if type(holder) is FunctionType else kinds.class_name(holder)


def _globals_drawn_from(holder: Any) -> list[tuple[str, str]]:
    """Generators among the notebook's variables that methods of an object, or a function, name."""
    running = with_called(_running(holder))
    if any(_TELLS_APART & names_of(one.__code__) for one in running):
        return []
    found: dict[str, str] = {}
    for one in running:
        for name, thing in globals_read(one):
            kind = _generator_kind(thing)
            parts = [] if kind or type(thing) is FunctionType else _fields(thing)
            drawn = ((f"{name}.{field}", _generator_kind(part)) for field, part in parts if _draws(thing, field))
            found.update({name: kind} if kind else {path: kind for path, kind in drawn if kind})
    return list(found.items())


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
    codes = [code for code in kinds.methods_of(type(holder)) if code.co_name not in _BEFORE]
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
