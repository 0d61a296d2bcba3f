"""Whether code that workers run gives a generator of random numbers another start, or puts another in its place."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FunctionType

from torch_inspector.observe.drawing import with_called
from torch_inspector.observe.naming import names_of

SEEDS = frozenset(
    ["seed", "manual_seed", "reseed", "bit_generator", "default_rng", "setstate", "set_state", "RandomState"]
)
"""Code with one of these may seed a generator anew for each sample."""
_BY_NAME = frozenset(["setattr", "__dict__", "vars", "exec"])
# Before these an attribute is read, to be kept or shown; a call of it would be a method's.
_CALLS = frozenset(["LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"])


def run_by_workers(methods: list[FunctionType], before: frozenset[str]) -> list[FunctionType]:
    """Methods and functions without those that only a constructor calls.

    Args:
        methods: All of the objects that workers have, of the notebook.
        before: Names of those that have run when the workers are made.
    """
    mine = [one for one in methods if one.__name__ not in before]
    entered = [one for one in mine if one.__name__.startswith("__") or "." not in one.__qualname__]
    made = [one for one in methods if one.__name__ in before]
    only_before = _named_by(made, mine) - _named_by(entered, mine)
    return [one for one in mine if one.__name__ not in only_before or one in entered]


def _named_by(first: list[FunctionType], methods: list[FunctionType]) -> frozenset[str]:
    """Names of methods that some of them lead to."""
    found = list(first)
    for one in found:  # grows while it is read
        named = names_of(one.__code__)
        found += [other for other in methods if other.__name__ in named and other not in found]
    return frozenset(one.__name__ for one in found if one not in first)


def seeds(running: list[FunctionType]) -> bool:
    """True if one of the functions that workers run may seed a generator."""
    return any(_seeds(one.__code__) for one in with_called(running))


@lru_cache(maxsize=256)
def _seeds(code: CodeType) -> bool:
    if (SEEDS - {"seed"}) & names_of(code):
        return True
    return "seed" in names_of(code) and any(map(_calls_seed, _all_of(code)))


def _calls_seed(code: CodeType) -> bool:
    """True for `rng.seed(i)`, `seed(i)` and `f = self.rng.seed`; not for `self.seed`, a number that is kept."""
    steps = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    around = zip([None, *steps], steps, [*steps[1:], None], strict=False)
    return any(_may_call(*three) for three in around if three[1].argval == "seed")


def _may_call(before: dis.Instruction | None, one: dis.Instruction, after: dis.Instruction | None) -> bool:
    if one.opname in _CALLS or (one.opname == "LOAD_ATTR" and "NULL" in one.argrepr):
        return True
    of_another = before is not None and before.opname == one.opname == "LOAD_ATTR"
    return of_another and after is not None and after.opname.startswith("STORE_FAST")


def _all_of(code: CodeType) -> list[CodeType]:
    inner = [part for part in code.co_consts if type(part) is CodeType]
    return [code, *(one for part in inner for one in _all_of(part))]


def replaces(running: list[FunctionType], name: str) -> bool:
    """True if one of the functions that workers run gives an attribute or a variable of this name another value."""
    return any(_stores(one.__code__, name) for one in with_called(running))


@lru_cache(maxsize=256)
def _stores(code: CodeType, name: str) -> bool:
    by_name = bool(_BY_NAME & names_of(code)) and any(name in part.co_consts for part in _all_of(code))
    steps = (one for part in _all_of(code) for one in dis.get_instructions(part))
    return by_name or any(one.argval == name and one.opname in ("STORE_ATTR", "STORE_GLOBAL") for one in steps)
