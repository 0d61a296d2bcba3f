"""Weights are NaN or infinite."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Place, Run, SpoiledFact
from torch_inspector.facts.suspects import made_again, steep, suspected
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NAMES_SHOWN = 3


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds weights that are not finite after a cell, where nothing else in the cell explains them."""
    cause, known = run.nonfinite_cause(), frozenset(one.key for one in run.before.spoiled_weights)
    at_start = next((loss.spoiled_weights for loss in run.trace.losses if loss.spoiled_weights), ())
    spoiled = run.after.failed_weights or at_start if cause == "weights" else ()
    unread = run.after.spoiled_weights if not cause and not run.after.failed_weights else ()
    if spoiled and (run.trace.steps or not known >= {one.key for one in spoiled}):
        yield _finding(run, spoiled, were_before=bool(at_start))
    elif unread and not known >= {one.key for one in unread}:
        yield _finding(run, unread, were_before=False)


def _finding(run: Run, spoiled: tuple[SpoiledFact, ...], *, were_before: bool) -> Finding:
    owner = run.owner_path(frozenset(one.key for one in spoiled)) or "the model"
    paths = [path for path in (run.parameter_path(one.key) for one in spoiled) if path]
    shown = ", ".join(f"`{path}`" for path in paths[:_NAMES_SHOWN]) or f"{len(spoiled)} parameters"
    when = "were not finite before the first step of this cell" if were_before else "are not finite after this cell"
    place = _place(run, were_before=were_before)
    bare = run.without_eps(spoiled)
    since = f"; `{bare.path}` has eps=0, and divides 0 by 0 where a gradient was zero" if bare is not None else ""
    edge = steep(run) if not since and not were_before else ""
    since = since or suspected(run, edge)
    first = f"for group in {bare.path}.param_groups: group['eps'] = 1e-8  # and " if bare is not None else ""
    return Finding(
        message=f"weights of `{owner}` {when}: {shown}{since}. {_after(spoiled)}.",
        subject=owner,
        fix=f"{first}{made_again(run, edge, owner)}",
        line=place.line,
        cell=place.cell if place.line is not None else run.cell.number,
        severity="hint" if all(one.unread for one in spoiled) else "",
        evidence=(
            Evidence("parameters that are not finite", len(spoiled), "count"),
            *(
                Evidence(f"nan in {path}", one.nan_count, "count")
                for path, one in zip(paths, spoiled, strict=False)
                if one.nan_count
            ),
        ),
    )


def _after(spoiled: tuple[SpoiledFact, ...]) -> str:
    if all(one.unread for one in spoiled):
        return "Losses are finite as long as nothing reads these numbers"
    what = "nan" if any(one.nan_count for one in spoiled) else "infinite or nan"
    return f"Every output and every loss of it is {what} from then on"


def _place(run: Run, *, were_before: bool) -> Place:
    """Where the weights were used first, or the step that may have spoiled them."""
    steps = [step.place for step in run.trace.steps]
    calls = [call.place for call in run.trace.forwards]
    losses = [loss.place for loss in run.trace.losses]
    first, second = (losses + calls, steps) if were_before else (steps, calls)
    return next(iter((*first, *second)), Place())
