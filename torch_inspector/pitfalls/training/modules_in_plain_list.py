"""Layers in a plain list, tuple or dict of a module are not among its layers."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Run, UnlistedFact, syntax
from torch_inspector.facts.kept_aside import is_kept_aside
from torch_inspector.facts.own_container import contained
from torch_inspector.facts.own_object import in_own_name
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
        if fact.loose and (reached or _is_kept_aside(run, fact)):
            continue  # `parameters-missing-from-optimizer` says it, or they are stepped by hand
        if (fact.kind, fact.attribute) not in told and not fact.held and (reached or _is_meant_to_learn(fact)):
            told.add((fact.kind, fact.attribute))
            yield _finding(run, fact, reached=reached, count=_count(fact, facts))


def _count(fact: UnlistedFact, facts: tuple[UnlistedFact, ...]) -> int:
    """Modules like this one; a module that a function knows by another name is known by its parameters."""
    alike = [one for one in facts if (one.kind, one.attribute) == (fact.kind, fact.attribute)]
    return len({one.trainable_keys or one.module for one in alike})


def _is_kept_aside(run: Run, fact: UnlistedFact) -> bool:
    """True if a method gives the container to the caller, as to an optimizer of its own, or if it holds copies."""
    trees = [syntax.parse(one.cell.source) for one in (run, *run.earlier) if fact.attribute in one.cell.source]
    return is_kept_aside([one for one in trees if one is not None], fact.kind, fact.attribute)


def _is_meant_to_learn(fact: UnlistedFact) -> bool:
    """True if layers that no backward call has reached are most likely to be trained: several new ones of its own.

    Classes of libraries, which no cell holds, are believed to know what they do until a loss reaches the layers.
    """
    own = fact.place is not None and not fact.named_elsewhere
    return fact.new and fact.training and fact.count >= _SEVERAL and own


def _finding(run: Run, fact: UnlistedFact, *, reached: bool, count: int) -> Finding:
    place, path = fact.place, f"{fact.module}.{fact.attribute}"
    layers = f"{fact.count} {'parameters' if fact.loose else 'layers'}" if fact.count > 1 else "a layer"
    layers = f"{fact.inner_count} plain {fact.inner}s in it that hold {layers}" if fact.inner_count > 1 else layers
    layers += " with parameters" if fact.inner else ""
    layers += "" if fact.loose else f" ({_kinds(fact)})"
    own = f"these {fact.parameter_count:,} numbers" if fact.loose else f"their {fact.parameter_count:,} parameters"
    given = f" that is given `{fact.module}.parameters()`" if fact.loose else ""
    seen = "a loss reaches them, but no optimizer does" if reached else f"no optimizer{given} will train them"
    return Finding(
        message=(
            f"`{path}` is a plain {fact.container} with {layers}, so that `{fact.module}` does "
            f"not count {own} as its own: {seen}, and `.to()` and `state_dict()` "
            f"leave them out{f'; {count} modules of class {fact.kind} are like this' if count > 1 else ''}."
        ),
        subject=path,
        fix=in_own_name(run, place, _fix(run, fact)),
        line=place.line if place is not None else _step_line(run),
        cell=place.cell if place is not None else None,
        # A second optimizer may be meant for parameters that are kept apart.
        severity="error" if reached else "hint" if fact.loose else "warning",
        evidence=(
            Evidence("parameters" if fact.loose else "layers", fact.count, "count"),
            Evidence("modules like this", count, "count"),
            Evidence("numbers in their parameters", fact.parameter_count, "count"),
            Evidence("reached by a backward call", "yes" if reached else "not yet"),
        ),
    )


def _kinds(fact: UnlistedFact) -> str:
    return f"the first: {fact.layer_kind}" if fact.count > 1 else fact.layer_kind


def _step_line(run: Run) -> int | None:
    return next((step.place.line for step in run.trace.steps), None)


def _fix(run: Run, fact: UnlistedFact) -> str:
    kind = _kind(fact.container)
    if fact.odd_keys or fact.mixed:
        return _listed(fact)
    if fact.loose:
        kind = kind.replace("Module", "Parameter")
        return f"self.{fact.attribute} = {kind}(self.{fact.attribute})  # once it is filled"
    if not fact.inner:
        made = contained(run, fact.place, fact.attribute, kind) or f"self.{fact.attribute} = {kind}(…)"
        return f"{made}  # instead of a plain {fact.container}"
    return f"self.{fact.attribute} = {kind}({_filled(fact)})  # in place of plain {fact.inner}s in a {fact.container}"


def _listed(fact: UnlistedFact) -> str:
    """A list of the layers beside a container that `nn.ModuleDict` or `nn.ParameterList` would not take as it is."""
    sort = "Parameter" if fact.loose else "Module"
    own, named = f"self.{fact.attribute}", f"self.{fact.attribute}_{'parameters' if fact.loose else 'layers'}"
    values = f"{own}.values()" if _kind(fact.container) == "nn.ModuleDict" else own
    if fact.inner:
        inner = ".values()" if _kind(fact.inner) == "nn.ModuleDict" else ""
        values = f"one for part in {values} for one in part{inner}"
    if fact.mixed:
        values = f"p for p in {values} if isinstance(p, nn.Parameter)"
        return f"{named} = nn.ParameterList({values})  # once it is filled; the other tensors stay as they are"
    return f"{named} = nn.{sort}List({values})  # once it is filled; nn.{sort}Dict refuses some of the keys"


def _kind(container: str) -> str:
    return "nn.ModuleDict" if "dict" in container.lower() else "nn.ModuleList"


def _filled(fact: UnlistedFact) -> str:
    """What the container is given where it holds containers: each of them has to be a module, too."""
    inner, own = _kind(fact.inner), f"self.{fact.attribute}"
    if _kind(fact.container) == "nn.ModuleDict":
        return f"{{key: {inner}(part) for key, part in {own}.items()}}"
    return f"{inner}(part) for part in {own}"
