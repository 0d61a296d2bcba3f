"""A value was changed in place after autograd had saved it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ChangeFact, ErrorFact, NamedFact, RefusalFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "has been modified by an inplace operation"
_CHANGED = re.compile(
    r"\[(?P<kind>[\w.]+) \[(?P<shape>[\d, ]*)\]\](?:, which is output \d+ of (?P<by>\w+?),)? "
    r"is at version (?P<found>\d+); expected version (?P<wanted>\d+)"
)

_AUGMENTED = re.compile(r"[+*/-]=(?!=)")
_COPIED = "compute with x.clone() where x is written to afterwards, as by x[…] = y or x.copy_(y)"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the statement that changed what backward needed, when torch has noticed it."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    refusal = error.refusal or RefusalFact()
    if any(_is_state(one, refusal) for one in refusal.carried):
        return  # told by `hidden_state_not_detached`
    told = _CHANGED.search(error.message)
    changes = refusal.changes
    if _is_of_step(run, told, changes):
        return  # a weight, changed by the optimizer between two backward calls of one graph
    yield _finding(run, error, told, changes)


def _is_state(one: NamedFact, refusal: RefusalFact) -> bool:
    return one.shape is not None and one.shape not in ((), (1,)) and one.path != refusal.root


def _is_of_step(run: Run, told: re.Match[str] | None, changes: tuple[ChangeFact, ...]) -> bool:
    """True if a step was made before and what was changed is a leaf, or a transposed one."""
    if any(change.sure for change in changes) or not (run.trace.steps or any(r.trace.steps for r in run.earlier[-3:])):
        return False
    by = (told["by"] or "") if told is not None else ""
    return by.partition("Backward")[0] in ("", "AsStrided", "T", "Transpose")


def _finding(run: Run, error: ErrorFact, told: re.Match[str] | None, changes: tuple[ChangeFact, ...]) -> Finding:
    change = changes[0] if changes else None
    place = change.place if change is not None and change.place.line is not None else error.place
    return Finding(
        message=_message(error, told, change, sure=change is not None and change.sure and _alone(changes)),
        subject=change.path if change is not None else "",
        fix=_fix(run, change),
        line=place.line,
        cell=place.cell,
        evidence=tuple(_evidence(told, changes)),
    )


def _alone(changes: tuple[ChangeFact, ...]) -> bool:
    return sum(change.sure for change in changes) == 1


def _message(error: ErrorFact, told: re.Match[str] | None, change: ChangeFact | None, *, sure: bool) -> str:
    saved = _saved(told)
    if change is None:
        return f"{saved} was changed in place before backward() needed it."
    name = f"`{change.path}`" if change.path else "its input"
    probably = "" if sure else "probably "
    there = "" if change.place.cell == error.place.cell else f" of cell {change.place.cell}"
    text = f"`{change.text}` (line {change.place.line}{there}) {probably}changed {name} in place"
    return f"{text}: {saved} was still needed by backward()."


def _saved(told: re.Match[str] | None) -> str:
    if told is None:
        return "a value that autograd had saved"
    # torch names what has made the tensor as it is now, by a change in place as a rule, and not what has saved it.
    return f"the saved value of shape ({told['shape']})"


def _fix(run: Run, change: ChangeFact | None) -> str:
    if change is None:
        augmented = any(_AUGMENTED.search(one.cell.source) for one in (run, *run.earlier))
        return "write x = x + y instead of x += y, or change a x.clone()" if augmented else _COPIED
    if change.remedy:
        return change.remedy
    return f"{change.path} = {change.path}.clone()  # before this line" if change.path else "leave out inplace=True"


def _evidence(told: re.Match[str] | None, changes: tuple[ChangeFact, ...]) -> Iterator[Evidence]:
    if told is not None:
        yield Evidence("changes in place since it was saved", int(told["found"]) - int(told["wanted"]), "count")
    for change in changes:
        yield Evidence(f"line {change.place.line}", change.text)
