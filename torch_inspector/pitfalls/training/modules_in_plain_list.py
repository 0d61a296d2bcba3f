"""Layers in a plain list, tuple or dict of a module are not among its layers."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, UnlistedFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# A list of one can be a way to hide a module from its owner on purpose.
_SEVERAL = 2


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds layers to be trained that their module does not know of: when it is built, and when they are used."""
    late = (fact.unlisted for fact in run.trace.unheld if fact.unlisted is not None)
    facts = (*run.after.unlisted, *late)
    if not facts:
        return
    # Several modules of one class say the same: the first speaks for all.
    leaves = run.trace.reached.union(*(step.leaf_keys for step in run.trace.steps))
    told = set()
    for fact in facts:
        reached = bool(fact.trainable_keys & leaves)
        if (fact.kind, fact.attribute) not in told and not fact.held and (reached or _is_meant_to_learn(fact)):
            told.add((fact.kind, fact.attribute))
            yield _finding(run, fact, reached=reached, count=_count(fact, facts))


def _count(fact: UnlistedFact, facts: tuple[UnlistedFact, ...]) -> int:
    """Modules like this one; a module that a function knows by another name is known by its parameters."""
    alike = [one for one in facts if (one.kind, one.attribute) == (fact.kind, fact.attribute)]
    return len({one.trainable_keys or one.module for one in alike})


def _is_meant_to_learn(fact: UnlistedFact) -> bool:
    """True if layers that no backward call has reached are most likely to be trained: several new ones of its own.

    Classes of libraries, which no cell holds, are believed to know what they do until a loss reaches the layers.
    """
    own = fact.place is not None and not fact.named_elsewhere
    return fact.new and fact.training and fact.count >= _SEVERAL and own


def _finding(run: Run, fact: UnlistedFact, *, reached: bool, count: int) -> Finding:
    place, path = fact.place, f"{fact.module}.{fact.attribute}"
    layers = f"{fact.count} layers" if fact.count > 1 else "a layer"
    layers = f"{fact.inner_count} plain {fact.inner}s in it that hold {layers}" if fact.inner_count > 1 else layers
    layers += " with parameters" if fact.inner else ""
    seen = "a loss reaches them, but no optimizer does" if reached else "no optimizer will train them"
    return Finding(
        message=(
            f"`{path}` is a plain {fact.container} with {layers} ({_kinds(fact)}), so that `{fact.module}` does "
            f"not count their {fact.parameter_count:,} parameters as its own: {seen}, and `.to()` and `state_dict()` "
            f"leave them out{f'; {count} modules of class {fact.kind} are like this' if count > 1 else ''}."
        ),
        subject=path,
        fix=_fix(fact),
        line=place.line if place is not None else _step_line(run),
        cell=place.cell if place is not None else None,
        severity="error" if reached else "warning",
        evidence=(
            Evidence("layers", fact.count, "count"),
            Evidence("modules like this", count, "count"),
            Evidence("numbers in their parameters", fact.parameter_count, "count"),
            Evidence("reached by a backward call", "yes" if reached else "not yet"),
        ),
    )


def _kinds(fact: UnlistedFact) -> str:
    return f"the first: {fact.layer_kind}" if fact.count > 1 else fact.layer_kind


def _step_line(run: Run) -> int | None:
    return next((step.place.line for step in run.trace.steps), None)


def _fix(fact: UnlistedFact) -> str:
    kind = _kind(fact.container)
    if not fact.inner:
        return f"self.{fact.attribute} = {kind}(…)  # instead of a plain {fact.container}"
    return f"self.{fact.attribute} = {kind}({_filled(fact)})  # in place of plain {fact.inner}s in a {fact.container}"


def _kind(container: str) -> str:
    return "nn.ModuleDict" if "dict" in container.lower() else "nn.ModuleList"


def _filled(fact: UnlistedFact) -> str:
    """What the container is given where it holds containers: each of them has to be a module, too."""
    inner, own = _kind(fact.inner), f"self.{fact.attribute}"
    if _kind(fact.container) == "nn.ModuleDict":
        return f"{{key: {inner}(part) for key, part in {own}.items()}}"
    return f"{inner}(part) for part in {own}"
