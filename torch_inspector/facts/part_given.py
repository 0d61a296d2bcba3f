"""Whether an optimizer was given one part of a module: perhaps only that is to learn, or the rest in another phase."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from torch_inspector.facts.rebuilt import given_modules

if TYPE_CHECKING:
    from torch_inspector.facts.modules import ModuleFact
    from torch_inspector.facts.optimizers import UnheldFact
    from torch_inspector.facts.run import Run


def is_of_part(run: Run, fact: UnheldFact, owner: str) -> bool:
    """True if the optimizer lacks more of a module than what that does not know of, or was given a part by its name.

    Args:
        run: The cell.
        fact: Parameters that are attributes of the module and not among its own.
        owner: Path of the module.
    """
    module = _module(run, owner)
    if module is None:
        return False
    keys = next((s.parameter_keys for s in run.trace.steps if s.optimizer == fact.optimizer), frozenset[int]())
    if module.parameter_keys - module.frozen_keys - keys:
        return True
    given = given_modules(run, run.optimizer_path(fact.optimizer))
    return bool(given) and owner not in given and all(_is_part_of(module, one.partition(".")[2]) for one in given)


def is_of_other_part(run: Run, fact: UnheldFact) -> bool:
    """True if optimizers hold the whole of some direct parts of a module, and nothing of what else there is to train.

    Where they hold several, what else there is has to be its first or last layers: one between others, or a parameter
    alone, is rather forgotten.
    """
    module = _module(run, fact.module)
    if not fact.held_parts or module is None:
        return False
    own = [(key, name.partition(".")[0]) for key, name in module.parameter_names if key not in module.frozen_keys]
    lacking = {part for key, part in own if key in fact.keys}
    if lacking & {part for key, part in own if key not in fact.keys}:
        return False
    layers = dict.fromkeys(part for _, part in own if _is_part_of(module, part))
    return fact.held_parts == 1 or _is_end([part in lacking for part in layers])


def _is_end(lacks: list[bool]) -> bool:
    """True if what is lacking is a stretch at the beginning or the end."""
    return sum(one != other for one, other in pairwise(lacks)) == 1


def _is_part_of(module: ModuleFact, part: str) -> bool:
    """True for `body`, where the module has a parameter `body.weight`."""
    return bool(part) and any(name.startswith(f"{part}.") for _, name in module.parameter_names)


def _module(run: Run, path: str) -> ModuleFact | None:
    return next((one for one in run.after.modules if path and one.path == path), None)
