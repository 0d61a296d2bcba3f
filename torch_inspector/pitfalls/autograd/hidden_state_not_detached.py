"""A recurrent state that brings the graph of one step into the next."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, NamedFact, Run
from torch_inspector.facts.given import thrown_away
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_TWICE = "backward through the graph a second time"
_CHANGED = "has been modified by an inplace operation"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the variable that leads from the graph of one step to that of the step before, when backward has failed."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or error.refusal is None:
        return
    if _TWICE not in error.message and _CHANGED not in error.message:
        return
    states = error.refusal.states()
    cached = next((one for one in states if one.cached), None)
    if cached is not None:
        yield _of_cache(error, cached)
    elif states:
        yield _finding(run, error, states)


def _finding(run: Run, error: ErrorFact, states: list[NamedFact]) -> Finding:
    names = " and ".join(f"`{state.path}`" for state in states)
    first = states[0]
    given = first.made_at
    where = f" (line {given.line})" if given is not None and given.line and given.cell == error.place.cell else ""
    which = "keep" if len(states) > 1 else "keeps"
    after = (
        "and backward() has already freed that."
        if _TWICE in error.message
        else "and optimizer.step() has changed the weights that it needs."
    )
    return Finding(
        message=(
            f"{names}{where} {which} the graph of the step before, so this backward() goes back into it, {after}"
            + _unkept(run, error)
        ),
        subject=first.path,
        fix="\n".join(_fix(state) for state in states),
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(Evidence(state.path, f"{state.kind} {state.shape}") for state in states),
    )


def _unkept(run: Run, error: ErrorFact) -> str:
    """What is said of a `detach()` whose result nobody keeps."""
    one = thrown_away(run, "detach")
    where = one[1].said_in(error.place.cell).removeprefix("in ") if one is not None else ""
    return f" `{one[0]}` ({where}) gives a new tensor, which nothing keeps." if one is not None else ""


def _of_cache(error: ErrorFact, state: NamedFact) -> Finding:
    """A result of parameters that is computed once: without its history they would not learn by it."""
    given = state.made_at or error.place
    gone = "has freed its graph" if _TWICE in error.message else "and the step after it have changed what it needs"
    return Finding(
        message=(
            f"`{state.path}` is computed only once ({given.said_in(error.place.cell).removeprefix('in ')}), from "
            f"parameters, and each loss goes back through it: the first backward() {gone}."
        ),
        subject=state.path,
        fix=f"{state.cached}  # in each pass, without the condition around it",
        line=given.line,
        cell=given.cell,
        evidence=(
            Evidence(state.path, f"{state.kind} {state.shape}"),
            Evidence("backward at line", error.place.line or 0),
        ),
    )


def _fix(state: NamedFact) -> str:
    name = state.path
    if state.detached:
        return f"{state.detached}  # at the end of each step"
    if state.kind in ("tensor", "attribute"):
        return f"{name} = {name}.detach()  # at the end of each step"
    return f"call .detach() on the tensors of {name} at the end of each step"
