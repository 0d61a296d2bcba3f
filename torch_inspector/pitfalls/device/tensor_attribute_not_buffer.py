"""A tensor that a module does not know about."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import AttributeFact, Run, UnsavedFact
from torch_inspector.facts.forgotten import is_forgotten, is_plain
from torch_inspector.facts.own_object import in_own_name
from torch_inspector.facts.plain import registered
from torch_inspector.facts.set_outside import is_lost
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Of a container, what it is when each tensor in it has been moved.
_MOVED = {"dict": "{{key: fn(one) for key, one in {}.items()}}", "tuple": "tuple(fn(one) for one in {})"}


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds tensor attributes on another device than the module, and leaves to be learned that no optimizer has."""
    told = {one.path for earlier in run.earlier for one in earlier.after.unsaved}
    yield from (_unsaved(run, one) for one in run.after.unsaved if one.path not in told and is_lost(run, one))
    if not run.after.attributes:
        return
    past = [one for earlier in run.earlier for one in earlier.after.attributes]
    known = {(one.path, one.device, one.owner_devices) for one in past}
    learned = {one.path for one in past if one.owner_stepped}
    for one in run.after.attributes:
        if _is_left_behind(one) and (one.path, one.device, one.owner_devices) not in known:
            yield _left_behind(run, one)
        elif one.wants_gradient and one.owner_stepped and not one.stepped and one.path not in learned:
            yield from () if _is_told(run, one) else (_not_learned(run, one),)


def _is_told(run: Run, one: AttributeFact) -> bool:
    """True if `parameters-missing-from-optimizer` says it, with the line of the step."""
    facts = (fact for fact in run.trace.unheld if is_plain(fact) and one.path in fact.names)
    return any(fact.unlisted is None and fact.compared and is_forgotten(run, fact) for fact in facts)


def _unsaved(run: Run, one: UnsavedFact) -> Finding:
    return Finding(
        message=(
            f"`{one.path}` is not what `{one.other}` is, though `{one.owner}` was given the same weights: a plain "
            "tensor attribute is not in state_dict()."
        ),
        subject=one.path,
        fix=registered(one, run.source_of(one.place.cell)),
        line=one.place.line,
        cell=one.place.cell,
        severity="hint",
        evidence=(Evidence("attribute", f"{one.kind}.{one.name}"), Evidence("set elsewhere for", one.other)),
    )


def _is_left_behind(one: AttributeFact) -> bool:
    # A number on the host goes with tensors of any device.
    return bool(one.owner_devices and one.shape) and one.device not in one.owner_devices and not one.moved


def _left_behind(run: Run, one: AttributeFact) -> Finding:
    where = ", ".join(one.owner_devices)
    return Finding(
        message=(
            f"`{one.path}` is on {one.device}, the parameters of `{one.owner}` are on {where}: "
            f"a plain {'container of tensors' if one.element else 'tensor attribute'} is not moved with the module "
            "and is not in its state_dict()."
        ),
        subject=one.path,
        fix=_buffer(one) if one.element else in_own_name(run, one.place, _buffer(one)),
        line=one.place.line,
        cell=one.place.cell,
        # An index on the host may be used on any device, and what another method sets may be set again.
        severity="hint" if one.dtype in ("int64", "bool") or one.method != "__init__" else "",
        evidence=(
            Evidence("attribute", f"{one.kind}.{one.name}"),
            Evidence("its device", one.device),
            Evidence("devices of the parameters", where),
            Evidence("shape", str(one.shape)),
        ),
    )


def _buffer(one: AttributeFact) -> str:
    if not one.element:
        return f'self.register_buffer("{one.name}", ...)  # in {one.method} of {one.kind}'
    held = f"self.{one.name}"
    moved = _MOVED.get(one.container, "").format(held) or f"[fn(one) for one in {held}]"
    return (
        f"def _apply(self, fn, recurse=True):  # a method of {one.kind}: .to() and .cuda() go through it\n"
        f"    {held} = {moved}\n"
        "    return super()._apply(fn, recurse)"
    )


def _several(one: AttributeFact) -> str:
    return "" if not one.element else "Dict" if one.container == "dict" else "List"


def _not_learned(run: Run, one: AttributeFact) -> Finding:
    return Finding(
        message=(
            f"`{one.path}` requires a gradient and is no parameter of `{one.owner}`: "
            "parameters() does not give it, so no optimizer has it."
        ),
        subject=one.path,
        fix=in_own_name(
            run, one.place, f"self.{one.name} = nn.Parameter{_several(one)}(...)  # in {one.method} of {one.kind}"
        ),
        line=one.place.line,
        cell=one.place.cell,
        evidence=(
            Evidence("attribute", f"{one.kind}.{one.name}"),
            Evidence("shape", str(one.shape)),
            Evidence("in an optimizer", "no, other parameters of the module are"),
        ),
    )
