"""Functions that prepare workers and give all of them one seed: `def prepare(worker): np.random.seed(42)`."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dis import Instruction, get_instructions
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

import torch

from torch_inspector.facts import GeneratorFact
from torch_inspector.observe import kinds
from torch_inspector.observe.naming import names_of

# All that such a function may name besides modules and numbers of the notebook; what else it does is not known.
_SEEDS = frozenset(
    ["random", "seed", "manual_seed", "manual_seed_all", "cuda", "backends", "cudnn", "deterministic", "benchmark"]
)
_OF_TORCH = frozenset(
    ["rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial"]
)
# Code with one of these makes its numbers depend on the sample, or on the worker.
_OWN = frozenset(
    ["get_worker_info", "initial_seed", "SeedSequence", "seed", "manual_seed", "default_rng", "RandomState", "Random",
     "Generator", "fork_rng", "set_state", "setstate", "set_rng_state"]
)  # fmt: skip
_OF_PYTHON = frozenset(
    ["random", "randint", "randrange", "randbytes", "getrandbits", "choice", "choices", "sample", "shuffle", "uniform",
     "gauss", "normalvariate", "lognormvariate", "betavariate", "expovariate", "gammavariate", "triangular"]
)  # fmt: skip
_OF_NUMPY = frozenset(
    ["rand", "randn", "randint", "random", "random_sample", "random_integers", "ranf", "sample", "bytes", "choice",
     "shuffle", "permutation", "uniform", "normal", "standard_normal", "beta", "binomial", "poisson", "exponential",
     "gamma", "laplace", "lognormal", "multinomial", "multivariate_normal", "dirichlet", "triangular", "geometric"]
)  # fmt: skip
Named = frozenset[str] | None
"""What code surely names, as written; None if its text is not at hand."""
# Instructions that compute nothing.
_SILENT = frozenset(["CACHE", "EXTENDED_ARG", "PUSH_NULL", "PRECALL"])


def seeded_alike(settings: dict[str, Any], functions: list[tuple[FunctionType, Named]]) -> Iterator[GeneratorFact]:
    """The sources of random numbers that `functions`, which workers run, draw from and `worker_init_fn` seeds alike.

    Args:
        settings: Of the loader.
        functions: Each with what the object that it belongs to surely names.
    """
    prepare = settings.get("worker_init_fn")
    if type(prepare) is not FunctionType or not _is_constant(prepare):
        return
    if any(_OWN & names_of(one.__code__) for one, _ in functions):
        return
    seeded = {kind for kind in _modules(prepare) if _seeds(prepare, kind)}
    drawn = {kind for one, named in functions for kind in _modules(one) if _draws(one, kind, named)}
    owner = kinds.class_name(settings.get("dataset"))
    for kind in sorted(seeded & drawn):
        yield GeneratorFact(kind, kind, owner, seeded_by=prepare.__name__)


def _is_constant(prepare: FunctionType) -> bool:
    """True if all that a function does is to set seeds, to numbers that are the same for each worker."""
    code = prepare.__code__
    plain = all(type(part) is not CodeType for part in code.co_consts) and not code.co_freevars
    reads = [one for one in get_instructions(code) if one.opname.startswith("LOAD_FAST")]
    known = {name for name in code.co_names if _is_plain(dict.get(prepare.__globals__, name))}
    steps = _steps(code)
    for one, after in pairwise(steps):
        if _held(prepare, one, after) is not None:
            known |= {str(one.argval), str(after.argval)}
    return plain and not reads and set(code.co_names) <= known | _SEEDS


def _is_plain(value: Any) -> bool:
    return type(value) is int or value is torch or value is random or value is sys.modules.get("numpy", random)


def _modules(function: FunctionType) -> dict[str, str]:
    """Sources of random numbers that a function names, with the name."""
    sources = {"numpy.random": sys.modules.get("numpy"), "random": random, "torch": torch}
    names = ((name, dict.get(function.__globals__, name)) for name in names_of(function.__code__))
    return {kind: name for name, value in names for kind, one in sources.items() if value is not None and value is one}


def _seeds(function: FunctionType, kind: str) -> bool:
    """True if its code calls what sets the seed of a source, with a number: without one the system gives another."""
    calls = {"numpy.random": "random.seed", "random": "seed", "torch": "manual_seed"}
    wanted = f"{_modules(function)[kind]}.{calls[kind]}"
    given = [after for chain, after in _chains(function.__code__) if chain == wanted]
    return bool(given) and all(_is_number(function, *after) for after in given)


def _held(function: FunctionType, owner: Instruction, key: Instruction) -> int | None:
    """The whole number that two instructions read, `CONFIG["seed"]` or `CFG.seed`; None for all else."""
    thing = dict.get(function.__globals__, owner.argval) if owner.opname == "LOAD_GLOBAL" else None
    if type(thing) is dict and key.opname == "LOAD_CONST" and type(key.argval) is str:
        value = dict.get(thing, key.argval)
    else:
        value = kinds.setting_of(thing, key.argval) if type(thing) is type and key.opname == "LOAD_ATTR" else None
    return value if type(value) is int else None


def _is_number(function: FunctionType, value: Instruction, call: Instruction, *more: Instruction) -> bool:
    """True if the instructions after a function is named give it one whole number and call it."""
    if _held(function, value, call) is not None:
        gets = call.opname == "LOAD_ATTR" or more[0].opname.startswith("BINARY_")
        return gets and more[call.opname != "LOAD_ATTR"].opname.startswith("CALL")
    number = dict.get(function.__globals__, value.argval) if value.opname == "LOAD_GLOBAL" else value.argval
    loads = value.opname in ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_GLOBAL")
    return loads and type(number) is int and call.opname.startswith("CALL")


def _draws(function: FunctionType, kind: str, named: Named) -> bool:
    """True if its code asks a source for numbers, not only under a test that may not hold."""
    name = _modules(function)[kind]
    prefix = f"{name}.random" if kind == "numpy.random" else name
    wanted = {"torch": _OF_TORCH, "random": _OF_PYTHON, "numpy.random": _OF_NUMPY}[kind]
    chains = {chain for chain, _ in _chains(function.__code__)}
    return any(f"{prefix}.{one}" in chains and (named is None or f"{prefix}.{one}" in named) for one in wanted)


def _steps(code: CodeType) -> list[Instruction]:
    return [one for one in get_instructions(code) if one.opname not in _SILENT]


def _chains(code: CodeType) -> Iterator[tuple[str, tuple[Instruction, ...]]]:
    """`np.random.rand` and the like, as code names them, with the four instructions after them."""
    steps, chain = _steps(code), ""
    for one, *after in zip(steps, *(steps[at:] + steps[-1:] * at for at in range(1, 5)), strict=False):
        if one.opname == "LOAD_GLOBAL":
            chain = str(one.argval)
        elif chain and one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = f"{chain}.{one.argval}"
            yield chain, tuple(after)
        else:
            chain = ""
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _chains(part)
