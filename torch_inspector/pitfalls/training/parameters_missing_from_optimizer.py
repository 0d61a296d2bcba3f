"""Parameters get gradients at every step and are in no optimizer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import Run, UnheldFact, part_names, twins
from torch_inspector.facts.forgotten import is_collected, is_forgotten, is_on_purpose, is_plain, is_watched
from torch_inspector.facts.left_alone import sources
from torch_inspector.facts.misspelt import misspelt
from torch_inspector.facts.outer_names import named_outside
from torch_inspector.facts.part_given import is_of_other_part, is_of_part
from torch_inspector.facts.plain_holders import PlainHolder, plain_holder, registered
from torch_inspector.facts.rebuilt import rebuilt, with_more
from torch_inspector.facts.used_up import used_up
from torch_inspector.findings import Evidence, Finding, Severity
from torch_inspector.pitfall import pitfall

_NAMES_SHOWN = 4
# As many fit into a line.
_PARTS_GIVEN = 4
_ELEMENT = re.compile(r"(.+)\[([^\[\]]+)\]")
_WRITTEN_PAST_AUTOGRAD = ".data"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds parameters that a loss trains and that every optimizer lacks, with what made them be left out."""
    found: dict[object, list[tuple[UnheldFact, Severity]]] = {}
    for fact in twins.told_once(run, _joined(run.trace.unheld)):
        if fact.unlisted is None and fact.names and not _is_of_another(run, fact) and not _moves_unseen(run, fact):
            severity = _severity(run, fact)
            if severity is not None:
                found.setdefault(_line_of(run, fact), []).append((fact, severity))
    for several in found.values():
        facts, severity = [fact for fact, _ in several], several[0][1]
        inside = plain_holder(run, facts[0]) is not None
        yield _of_holders(run, facts, severity) if inside else _finding(run, _as_one(facts), severity)


def _line_of(run: Run, fact: UnheldFact) -> object:
    """What plain tensors have in common that are told together, and layers in objects of a module; else the fact."""
    holder = plain_holder(run, fact)
    if holder is not None:
        return (fact.place, fact.optimizer, holder.owner)
    return (fact.place, fact.optimizer, _owner(run, fact)) if is_plain(fact) and not _container(fact) else fact


def _joined(facts: tuple[UnheldFact, ...]) -> Iterator[UnheldFact]:
    """The facts; those of parameters in one list or dict as one."""
    parts: dict[tuple[int, str], list[UnheldFact]] = {}
    for fact in facts:
        whole = _container(fact)
        if whole:
            parts.setdefault((fact.optimizer, whole), []).append(fact)
        else:
            yield fact
    for several in parts.values():
        yield _as_one(several)


def _as_one(several: list[UnheldFact]) -> UnheldFact:
    return several[0]._replace(
        names=tuple(name for one in several for name in one.names),
        keys=frozenset[int]().union(*(one.keys for one in several)),
        settled=any(one.settled for one in several),
        compared=all(one.compared for one in several),
    )


def _container(fact: UnheldFact) -> str:
    """`net.prompts` for the parameter `net.prompts[0]`."""
    found = None if fact.module or not fact.names else _ELEMENT.fullmatch(fact.names[0])
    return found[1] if found is not None else ""


def _attribute(run: Run, fact: UnheldFact) -> str:
    """The same, where it is an attribute of a module of the notebook."""
    whole = _container(fact)
    owner = whole.rpartition(".")[0]
    return whole if owner and any(module.path == owner for module in run.after.modules) else ""


def _owner(run: Run, fact: UnheldFact) -> str:
    """The module of the notebook whose attribute a tensor is; empty if it is none."""
    owner = "" if fact.module else (_container(fact) or fact.names[0]).rpartition(".")[0]
    return owner if any(module.path == owner for module in run.after.modules) else ""


def _is_of_another(run: Run, fact: UnheldFact) -> bool:
    """True if `optimizer-of-another-model` says it: the optimizer steps what nobody has any more."""
    steps = [step for step in run.trace.steps if step.optimizer == fact.optimizer]
    owned = frozenset(key for module in run.after.modules for key in module.parameter_keys)
    orphans = any(step.parameter_keys - step.leaf_keys - owned for step in steps)
    return any(step.unreached for step in steps) or (orphans and bool(owned & fact.keys))


def _moves_unseen(run: Run, fact: UnheldFact) -> bool:
    return not fact.compared and any(_WRITTEN_PAST_AUTOGRAD in source for source in sources(run))


def _severity(run: Run, fact: UnheldFact) -> Severity | None:
    """How sure it is that nobody wants them to stay as they are; None where that may well be."""
    if misspelt(run, fact.module or fact.names[0]):
        return "warning"
    if fact.late:
        return "error"
    if is_on_purpose(run, fact) or is_collected(run, fact) or (not fact.module and not is_forgotten(run, fact)):
        return None
    if is_plain(fact) or is_watched(run, fact):
        # A class of its own says that a parameter is to learn. A plain tensor may have gradients for other reasons, or
        # an optimizer of its own in a cell to come.
        return "hint"
    # Only one part of a model was given: perhaps only that part is to learn, but then the rest should be frozen.
    few = fact.held_parts == 1 and len(fact.keys) >= fact.held_count
    part = few or (is_of_other_part(run, fact) if fact.module else is_of_part(run, fact, _owner(run, fact)))
    return "hint" if part else "error"


def _finding(run: Run, fact: UnheldFact, severity: Severity) -> Finding:
    name = run.optimizer_path(fact.optimizer) or "optimizer"
    fact = fact if used_up(run, fact.module, name) else named_outside(run, fact)
    who, they = _who(fact), ("they keep their values" if len(fact.keys) > 1 else "it keeps its value")
    return Finding(
        message=(
            f"no optimizer holds {who}: gradients arrive for each `{name}.step()`, and {they}{_why(run, fact, name)}."
        ),
        subject=fact.module or (len(fact.names) > 1 and _container(fact)) or fact.names[0],
        fix=_respelt(run, fact) or _fix(run, fact, name),
        line=fact.place.line,
        cell=fact.place.cell,
        severity=severity,
        evidence=(
            Evidence("parameters without an optimizer", len(fact.keys), "count"),
            Evidence("names", ", ".join(fact.names[:_NAMES_SHOWN])),
            Evidence("other parameters of the module in an optimizer", fact.held_count, "count"),
        ),
    )


def _of_holders(run: Run, facts: list[UnheldFact], severity: Severity) -> Finding:
    """Layers that a module has in objects which are no modules: one cause for all of them."""
    fact, name = _as_one(facts), run.optimizer_path(facts[0].optimizer) or "optimizer"
    holders: dict[PlainHolder, list[str]] = {}
    for one in facts:
        if (holder := plain_holder(run, one)) is not None:
            holders.setdefault(holder, []).append(one.module)
    owner, paths = next(iter(holders)).owner, [f"`{one.path}`" for one in holders]
    are = "are no nn.Module" if len(paths) > 1 else "is no nn.Module"
    return Finding(
        message=(
            f"no optimizer holds {_who(fact._replace(module=''))}: gradients arrive for each `{name}.step()`, and "
            f"{'they keep their values' if len(fact.keys) > 1 else 'it keeps its value'}; {' and '.join(paths)} {are}, "
            f"so that `{owner}.parameters()`, `.to()` and `state_dict()` leave out the layers inside."
        ),
        subject=next(iter(holders)).path,
        fix=f"{registered(holders)}  # at the end of __init__; then make {name} anew",
        line=fact.place.line,
        cell=fact.place.cell,
        severity=severity,
        evidence=(
            Evidence("parameters without an optimizer", len(fact.keys), "count"),
            Evidence("layers inside", len(facts), "count"),
        ),
    )


def _who(fact: UnheldFact) -> str:
    count = len(fact.keys)
    shown = ", ".join(f"`{name}`" for name in fact.names[:_NAMES_SHOWN])
    more = f" and {count - _NAMES_SHOWN} more" if count > _NAMES_SHOWN else ""
    if fact.module and not fact.held_count:
        return f"the {count} parameters of `{fact.module}` ({shown}{more})" if count > 1 else shown
    return shown + more


def _why(run: Run, fact: UnheldFact, name: str) -> str:
    if attribute := _attribute(run, fact):
        owner, _, last = attribute.rpartition(".")
        return f"; `{last}` is a plain Python container, which `{owner}.parameters()` leaves out"
    if is_plain(fact) and (owner := _owner(run, fact)):
        are = "they are plain tensors" if len(fact.names) > 1 else "it is a plain tensor"
        return f"; {are}, which `{owner}.parameters()` leaves out"
    if one := used_up(run, fact.module, name):
        by = one.by.said_in(fact.place.cell)
        return f"; `{one.name}` is a generator, and {by} had used it up before `{name}` was made with it"
    if wrong := misspelt(run, fact.module or fact.names[0]):
        return f"; {wrong.place.said_in(fact.place.cell)} sets `{wrong.field}`, which freezes nothing"
    if twin := twins.twin_of(run, fact.optimizer):
        return f"; `{twin}` and `{name}` hold the same parameters"
    return {
        "unfrozen": f"; when `{name}` was made, gradients were still off for them",
        "added": f"; `{fact.module}` got them after `{name}` was made",
    }.get(fact.late, "")


def _is_list(fact: UnheldFact) -> bool:
    found = _ELEMENT.fullmatch(fact.names[0])
    return found is not None and found[2].isdecimal()


def _registered(run: Run, fact: UnheldFact, attribute: str) -> tuple[str, str]:
    """What a module knows of in place of a plain container, or beside one that holds constants, too."""
    inside = next((one for one in run.after.unlisted if f"{one.module}.{one.attribute}" == attribute), None)
    if inside is None or not (inside.odd_keys or inside.mixed):
        return attribute, f"nn.{'ParameterList' if _is_list(fact) else 'ParameterDict'}({attribute})"
    values = attribute if _is_list(fact) and not inside.odd_keys else f"{attribute}.values()"
    values = f"p for p in {values} if isinstance(p, nn.Parameter)" if inside.mixed else values
    return f"{attribute}_parameters", f"nn.ParameterList({values})"


def _respelt(run: Run, fact: UnheldFact) -> str:
    """The line that was to freeze a part, with the name that does; empty where there is none."""
    wrong = misspelt(run, fact.module or fact.names[0])
    if wrong is None:
        return ""
    return f"{wrong.right}  # {wrong.place.said_in(fact.place.cell)}: `requires_grad`, not `{wrong.field}`"


def _fix(run: Run, fact: UnheldFact, name: str) -> str:
    if attribute := _attribute(run, fact):
        target, made = _registered(run, fact, attribute)
        return (
            f"{target} = {made}  # now; and in __init__: {_own(target, attribute)} = {_own(made, attribute)}\n"
            f'{name}.add_param_group({{"params": {target}.parameters()}})'
        )
    if one := used_up(run, fact.module, name):
        return f"{one.name} = list({one.made})  # {one.at.said_in(fact.place.cell)}; then make {name} anew"
    if fact.module and twins.is_copy(run, fact):
        return rebuilt(run, fact.optimizer, name, fact.module)
    if _has_one_group(run, fact):
        return with_more(run, fact.optimizer, name, _elements(fact))
    if not fact.module:
        added = f'{name}.add_param_group({{"params": [{", ".join(fact.names[:_NAMES_SHOWN])}]}})'
        return f"{added}  # {_instead(run, fact, name)}" if is_plain(fact) else added
    return f"{_added(fact, name)}  # {_or_else(fact, name)}"


def _own(text: str, attribute: str) -> str:
    """The same as the class says it: `self.prompts` for `net.prompts`."""
    return text.replace(attribute, f"self.{attribute.rpartition('.')[2]}")


def _instead(run: Run, fact: UnheldFact, name: str) -> str:
    """What else a plain tensor may be for."""
    last = fact.names[0].rpartition(".")[2]
    owner = f"in __init__, before {name} is made: self.{last} = nn.Parameter(self.{last}); or "
    own = owner if _owner(run, fact) else ""
    return f"or {own}an optimizer of its own; or, if it is not to learn: {fact.names[0]}.requires_grad_(False)"


def _has_one_group(run: Run, fact: UnheldFact) -> bool:
    """True for an optimizer that goes on with its first group whatever it is given later."""
    own = run.after.optimizer(fact.optimizer)
    return own is not None and own.kind == "LBFGS"


def _elements(fact: UnheldFact) -> str:
    """What it lacks, as elements of a list."""
    if not fact.module:
        return ", ".join(fact.names)
    parts = fact.parts if 0 < len(fact.parts) <= _PARTS_GIVEN else (fact.module,)
    shown = {part: part_names.typed(part) for part in parts}
    return ", ".join(shown[part] if part in fact.single else f"*{shown[part]}.parameters()" for part in parts)


def _added(fact: UnheldFact, name: str) -> str:
    """The call that gives the optimizer what it lacks, by name as long as that is short."""
    parts = fact.parts or (fact.module,)
    if len(parts) > _PARTS_GIVEN:
        return (
            f'held = {{id(p) for group in {name}.param_groups for p in group["params"]}}\n'
            f"missing = [p for p in {fact.module}.parameters() if p.requires_grad and id(p) not in held]\n"
            f'{name}.add_param_group({{"params": missing}})'
        )
    shown = {part: part_names.typed(part) for part in parts}
    whole = f"{shown[parts[0]]}.parameters()"
    each = (shown[part] if part in fact.single else f"*{shown[part]}.parameters()" for part in parts)
    given = whole if len(parts) == 1 and not fact.single else f"[{', '.join(each)}]"
    return f'{name}.add_param_group({{"params": {given}}})'


def _or_else(fact: UnheldFact, name: str) -> str:
    if fact.late == "added":
        return f"once {'they are' if len(fact.keys) > 1 else 'it is'} there; or make {name} after that"
    if fact.late:
        return "once they are to learn"
    if len(fact.parts) > 1:
        return "or, of what is not to learn: .requires_grad_(False)"
    return f"or, if it is not to learn: {part_names.typed((fact.parts or (fact.module,))[0])}.requires_grad_(False)"
