"""Two optimizers that hold the same parameters, as when the line that makes one was copied for the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import OptimizerFact, UnheldFact
    from torch_inspector.facts.run import Run


def twin_of(run: Run, key: int) -> str:
    """The name of another optimizer that holds exactly the parameters of this one and steps in the same turns.

    Empty if there is none. Two that take turns, as Adam and then LBFGS, hold the same on purpose.
    """
    own = run.after.optimizer(key)
    alike = (one for one in run.after.optimizers if own is not None and _are_twins(own, one))
    found = (one for one in alike if _step_together(run, key, one.key))
    return next((name for one in found if (name := run.optimizer_path(one.key))), "")


def told_once(run: Run, facts: Iterable[UnheldFact]) -> Iterator[UnheldFact]:
    """The facts, those of the same parameters once: of the optimizer that is most likely meant for them."""
    groups: dict[frozenset[int], list[UnheldFact]] = {}
    for fact in facts:
        groups.setdefault(fact.keys, []).append(fact)
    for several in groups.values():
        copied = [one for one in several if twin_of(run, one.optimizer)]
        named = [one for one in copied if is_copy(run, one)]
        yield (*named, *copied[-1:], *several)[0]


def is_copy(run: Run, fact: UnheldFact) -> bool:
    """True if an optimizer is called after a module, and holds what its twin holds in place of that."""
    return bool(twin_of(run, fact.optimizer)) and _is_named_for(run.optimizer_path(fact.optimizer), fact.module)


def _step_together(run: Run, one: int, other: int) -> bool:
    """True if each makes its first step before the other makes a second one."""
    orders = [[step.order for step in run.trace.steps if step.optimizer == key] for key in (one, other)]
    if not all(orders):
        return False
    first, last = sorted(orders)
    return len(first) == 1 or last[0] < first[1]


def _are_twins(one: OptimizerFact, other: OptimizerFact) -> bool:
    return one.key != other.key and bool(one.parameter_keys) and one.parameter_keys == other.parameter_keys


def _is_named_for(optimizer: str, module: str) -> bool:
    """True for `dec_opt` of `decoder` and `optimizer_D` of `netD`: a part of one name begins or ends the other."""
    words = [word for word in optimizer.rpartition(".")[2].lower().split("_") if word and not word.startswith("opt")]
    name = module.rpartition(".")[2].lower()
    return any(name.startswith(word) or name.endswith(word) for word in words)
