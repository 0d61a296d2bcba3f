"""A module that a function calls otherwise than the notebook, by the name that can be typed in a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import UnheldFact
    from torch_inspector.facts.run import Run


def named_outside(run: Run, fact: UnheldFact) -> UnheldFact:
    """The same parameters by the path of the module in the notebook, where the optimizer has a name there, too.

    What only a function knows stays as it is called there: so does its optimizer.
    """
    own = run.after.optimizer(fact.optimizer)
    modules = [one for one in run.after.modules if one.path and fact.keys <= one.parameter_keys]
    if not fact.module or own is None or not own.path or any(one.path == fact.module for one in modules):
        return fact
    found = [one.path for one in modules if one.kind == fact.kind and "[" not in one.path]
    if len(found) != 1:
        return fact
    changed = {name: _renamed(name, fact.module, found[0]) for name in (*fact.names, *fact.parts, *fact.single)}
    return fact._replace(
        module=found[0],
        names=tuple(changed[name] for name in fact.names),
        parts=tuple(changed[name] for name in fact.parts),
        single=frozenset(changed[name] for name in fact.single),
    )


def _renamed(name: str, old: str, new: str) -> str:
    return f"{new}{name.removeprefix(old)}" if name == old or name.startswith((f"{old}.", f"{old}[")) else name
