"""Generators of random numbers that a data set carries, or reaches, in each of its loader's workers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from torch_inspector.facts import GeneratorFact
from torch_inspector.observe import kinds, reseeding
from torch_inspector.observe.alike import Named, seeded_alike
from torch_inspector.observe.asked_items import TreeOf, named_by, named_by_calls
from torch_inspector.observe.drawing import globals_read, holders_in, is_of_notebook, with_called
from torch_inspector.observe.naming import names_of

# Fields of one object, and generators in one data set.
_FIELDS, _MOST = 64, 8
_NUMPY = ("Generator", "RandomState")
COLLATE = "collate_fn"
"""First part of the path of a generator that the function has which puts batches together: workers run that too."""
# Methods that run before the workers are made.
_BEFORE = frozenset(["__init__", "__setstate__"])
# Code that names one of these tells workers apart itself.
_TELLS_APART = frozenset(["get_worker_info", "initial_seed", "SeedSequence"])


def generators_in(loader: Any, tree_of: TreeOf = lambda _: None) -> tuple[GeneratorFact, ...]:
    """Generators that the data set, what it holds, or the function for batches draws from, and the notebook's own.

    Args:
        loader: A `DataLoader`.
        tree_of: Gives the text of code; what stands behind a test that does not hold is left out then.
    """
    settings = kinds.fields_of(loader)
    holders = list(_holders(settings, tree_of))
    running = [(one, named) for _, holder, named in holders for one in _running(holder)]
    methods = [one for _, holder, _ in holders for one in _of_notebook(holder)]
    in_workers = reseeding.run_by_workers(methods, _BEFORE)
    found: dict[int, GeneratorFact] = {}  # each generator once, by its id
    for one in holders if not reseeding.seeds(in_workers) else ():
        for thing, fact in _drawn_from(one, settings, tree_of):
            name = fact.path.rpartition(".")[2]
            if len(found) < _MOST and not reseeding.replaces(in_workers, name):
                found.setdefault(id(thing), fact)
    return (*found.values(), *seeded_alike(settings, running))


def _drawn_from(
    held: tuple[str, Any, Named], settings: dict[str, Any], tree_of: TreeOf
) -> Iterator[tuple[Any, GeneratorFact]]:
    """Generators that an object or a function draws from in each worker, as they were in the main process."""
    prefix, holder, named = held
    for name, thing in (*_fields(holder), *(_of_class(holder) if named is not None else ())):
        kind = _generator_kind(thing)
        if kind and _draws(holder, name) and _is_named(f"self.{name}", named) and not _reseeds(settings, name):
            path = f"{prefix}.{name}" if prefix else name
            yield thing, GeneratorFact(path, kind, kinds.class_name(holder))
    for name, thing in _globals_drawn_from(holder, named, tree_of):
        if _is_named(name.partition(".")[0], named) and not _reseeds(settings, *name.split(".")):
            yield thing, GeneratorFact(name, _generator_kind(thing), _called(holder), is_global=True)


def _holders(settings: dict[str, Any], tree_of: TreeOf) -> Iterator[tuple[str, Any, Named]]:
    """What workers run code of, each with its path and what its code surely names."""
    named: dict[str, Named] = {}
    inner: dict[str, frozenset[str]] = {}  # what objects of the notebook's classes are surely asked for
    for path, holder in holders_in(settings.get("dataset")):
        owner, _, part = path.rpartition(".")
        name, known = f"self.{part.partition('[')[0]}", inner.get(owner, named.get(owner))
        if path and (owner not in named or not _is_named(name, known)):
            continue
        own = named_by(holder, tree_of)
        if owner in inner and own is None:
            continue
        named[path] = own
        if path and is_of_notebook(holder):
            inner[path] = own if own is not None else named_by_calls(holder, name, known or frozenset(), tree_of)
        yield path, holder, own
    batches = settings.get(COLLATE)
    yield COLLATE, batches, named_by(batches, tree_of)


def _is_named(name: str, named: Named) -> bool:
    """True if code surely names something, or is not at hand."""
    return named is None or any(one == name or one.startswith(f"{name}.") for one in named)


def _running(holder: Any) -> list[FunctionType]:
    """Functions of the notebook that workers run for an object."""
    return [one for one in _of_notebook(holder) if one.__name__ not in _BEFORE]


def _of_notebook(holder: Any) -> list[FunctionType]:
    functions = [holder] if type(holder) is FunctionType else kinds.functions_of(type(holder))
    return [one for one in functions if one.__module__ == "__main__"]


def _called(holder: Any) -> str:
    return str(holder.__name__) if type(holder) is FunctionType else kinds.class_name(holder)


def _globals_drawn_from(holder: Any, named: Named, tree_of: TreeOf) -> Iterator[tuple[str, Any]]:
    """Generators among the notebook's variables that methods of an object, or a function, name; and in objects there.

    Of an object only where a method that is surely called draws from the generator.
    """
    running = with_called(_running(holder))
    if any(_TELLS_APART & names_of(one.__code__) for one in running):
        return
    for name, thing in (pair for one in running for pair in globals_read(one)):
        if _generator_kind(thing):
            yield name, thing
        elif named is not None and type(thing) is not FunctionType:
            inner = named_by_calls(thing, name, named, tree_of)
            last = {one.rpartition(".")[2] for one in inner}
            for field, part in _fields(thing) if not last & (reseeding.SEEDS | _TELLS_APART) else ():
                if _generator_kind(part) and _is_named(f"self.{field}", inner):
                    yield f"{name}.{field}", part


def _fields(thing: Any) -> list[tuple[str, Any]]:
    items = list(kinds.fields_of(thing).items())[:_FIELDS] if thing is not None else []
    return [(name, value) for name, value in items if type(name) is str]


def _of_class(holder: Any) -> Iterator[tuple[str, Any]]:
    """Generators that a class of the notebook has for all its objects, where the object has none of its own."""
    own = set(kinds.fields_of(holder)) if holder is not None else set()
    for kind in kinds.mro_of(type(holder)):
        fields = list(kinds.class_fields(kind).items())
        if kinds.module_of(kind) == "__main__":
            yield from ((name, value) for name, value in fields if name not in own and _generator_kind(value))
        own.update(name for name, _ in fields)


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


def _reseeds(settings: dict[str, Any], *names: str) -> bool:
    """True if each worker is prepared by a function that may give it a generator of its own."""
    prepare = settings.get("worker_init_fn")
    if prepare is None:
        return False
    if type(prepare) is not FunctionType:
        return True
    return any({*names, "dataset", *_TELLS_APART} & names_of(one.__code__) for one in with_called([prepare]))
