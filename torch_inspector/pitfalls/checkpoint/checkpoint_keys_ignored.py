"""A load that matched hardly anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import LoadFact, Place, Run
from torch_inspector.facts.filters import filters_in
from torch_inspector.facts.renames import is_all, rename_for
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Below this part of the module's keys a load has missed its aim; a new head on a loaded body is far above.
_MATCHED_RATIO = 0.5
# The same for the keys of the checkpoint: an adapter brings few keys and all of them are known.
_KNOWN_RATIO = 0.5
# What was known is picked out of a checkpoint, and put into the model's own state.
_PICKED = re.compile(r"\.update\(|\{\s*\*\*|\bif\s+\w+\s+in\b")
_PUT_IN = re.compile(r"\.update\((\w+)\)|\*\*(\w+)\s*\}")
# Entries that are named, of several that fit.
_NAMED = 3
# Fix and further words where nothing was given.
_EMPTY = (
    "print(checkpoint.keys())  # before it is picked from: its keys may have a prefix such as `module.` or `model.`",
    "; the state dict given has no keys",
)


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loads that matched few keys: with `strict=False`, or of a state into which nothing was put."""
    said: set[Place] = set()
    for load in run.trace.loads:
        if load.place not in said and not load.strict and not load.used and _is_missed(load):
            said.add(load.place)
            yield _finding(run, load)
        elif load.place not in said and _gave_its_own(run, load):
            said.add(load.place)
            yield _of_its_own(run, load)


def _gave_its_own(run: Run, load: LoadFact) -> bool:
    """True for `own.update({k: v for k, v in checkpoint.items() if k in own})` that brought no key."""
    nothing = load.own_count == load.state_count > 0
    return nothing and not load.itself and _PICKED.search(run.source_of(load.place.cell)) is not None


def _of_its_own(run: Run, load: LoadFact) -> Finding:
    name = run.path_of(load)
    return Finding(
        message=(
            f"`load_state_dict()` gave `{name}` its own values for all {load.state_count} keys: "
            "the state was taken from it, and no key of the checkpoint is among its keys."
        ),
        subject=name,
        fix=_compared(run, load, load.name or name),
        line=load.place.line,
        cell=load.place.cell,
        evidence=(
            Evidence("keys of the state dict", load.state_count, "count"),
            Evidence("of these the module's own tensors", load.own_count, "count"),
        ),
    )


def _compared(run: Run, load: LoadFact, model: str) -> str:
    """What shows the keys that were picked from, as they were asked for, and those of the model."""
    source = run.source_of(load.place.cell)
    found = next(iter(filters_in(source)), None)
    put_in = _PUT_IN.search(source)
    picked = found.picked_from if found is not None else put_in[put_in.lastindex or 1] if put_in else "checkpoint"
    rename = "rename those, then load with strict=True"
    if found is None or found.key == found.variable:
        return f"print({picked}.keys() - {model}.state_dict().keys())  # before it is filtered; {rename}"
    became = f"{{{found.variable}: {found.key} for {found.variable} in {picked}}}"
    return f"print({became}, {model}.state_dict().keys())  # what the keys become, and what they should be; {rename}"


def _matched(load: LoadFact) -> int:
    return max(load.state_count - len(load.unexpected), 0)


def _is_missed(load: LoadFact) -> bool:
    own = _matched(load) + len(load.missing)
    if not load.missing or _matched(load) >= _MATCHED_RATIO * own:
        return False
    return _matched(load) < _KNOWN_RATIO * load.state_count or not load.state_count


def _finding(run: Run, load: LoadFact) -> Finding:
    name = run.path_of(load)
    # A BatchNorm that gets no counter makes one, and does not miss it.
    matched, own = _matched(load), max(_matched(load) + len(load.missing), len(load.own_keys))
    some = f"{matched} of {own} keys" if matched else f"none of the {own} keys"
    stays = "it stays as it was" if not matched else "the rest stays as it was"
    renamed, how = _renamed(load, load.name or name) if load.state_count else _EMPTY
    return Finding(
        message=f"`load_state_dict(strict=False)` matched {some} of `{name}`: {stays}{how}.",
        subject=name,
        fix=renamed,
        line=load.place.line,
        cell=load.place.cell,
        severity="" if not matched else "warning",
        evidence=(
            Evidence("keys matched", matched, "count"),
            Evidence("keys of the module", own, "count"),
            Evidence("keys of the state dict", load.state_count, "count"),
            *((Evidence("unexpected", load.unexpected[0]),) if load.unexpected else ()),
            *((Evidence("missing", load.missing[0]),) if load.missing else ()),
        ),
    )


def _renamed(load: LoadFact, model: str) -> tuple[str, str]:
    """The load with keys that match, and what is different about them."""
    state, rename = load.state or load.given or "state", rename_for(load)
    inner = [f"{state}[{one!r}]" for one in load.entries]
    if len(inner) == 1 and load.entries_in_part:
        picked = (
            f"for own in [{model}.state_dict()] for k, v in {inner[0]}.items() if k in own and v.shape == own[k].shape"
        )
        return (
            f"{model}.load_state_dict({{k: v {picked}}}, strict=False)",
            f"; most of the weights are in `{inner[0]}`, and the whole checkpoint was given",
        )
    if len(inner) == 1:
        return (
            f"{model}.load_state_dict({inner[0]})",
            f"; the weights are in `{inner[0]}`, and the whole checkpoint was given",
        )
    if inner:
        named = [f"`{one}`" for one in inner[:_NAMED]]
        most = "most of such weights" if load.entries_in_part else "such weights"
        more = f" and {len(inner) - _NAMED} more" if len(inner) > _NAMED else ""
        return (
            f"print({state}.keys())  # then give {model}.load_state_dict() the one that is meant",
            f"; {len(inner)} entries of the checkpoint that was given hold {most}: {', '.join(named)}{more}",
        )
    if rename is None:
        return f"print({model}.load_state_dict({state}, strict=False))  # which keys differ", ""
    keys = f"{{{rename.text}: v for k, v in {state}.items()}}"
    if is_all(load, rename):
        return f"{model}.load_state_dict({keys})", f"; {rename.said}"
    return f"print({model}.load_state_dict({keys}, strict=False))  # names what still differs", f"; {rename.said}"
