"""Gradients are clipped while they still carry the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ClipFact, Run, syntax
from torch_inspector.facts.each_of import each_of
from torch_inspector.findings import Evidence, Finding, number_text
from torch_inspector.pitfall import pitfall

# A limit that was multiplied by the scale is meant for scaled gradients; one of a tenth of the scale may be.
_LIMIT_RATIO = 0.1
_ONCE = "; it takes the place of the later unscale_(), since torch allows one between two updates"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds clips before a scaler's step that unscales the gradients only then."""
    seen: set[tuple[int | None, int | None]] = set()
    for clip in run.trace.clips:
        if not _was_scaled(clip):
            continue
        at = (clip.place.cell, clip.place.line)
        if at not in seen:
            seen.add(at)
            yield _finding(run, clip, [one for one in run.trace.clips if one.place == clip.place and _was_scaled(one)])


def _was_scaled(clip: ClipFact) -> bool:
    return clip.scale > 1 and clip.limit is not None and clip.limit < _LIMIT_RATIO * clip.scale


def _divides(clip: ClipFact) -> str:
    return "unscale_" if clip.unscaled_late else "step"


def _fix(run: Run, clip: ClipFact, scaler: str, optimizer: str) -> str:
    """The call by the names that there are at the clip, or where what clips is called."""
    each = _each(run, clip)
    here = clip.place.scope
    if each or here == clip.step_place.scope or not clip.names_there:
        return _unscaled(run, clip, scaler, optimizer, each)
    scaler, optimizer, place = clip.names_there[0]
    where = "" if place.scope == here else f", which {place.said_in(clip.place.cell)} leads to"
    return f"{scaler}.unscale_({optimizer})  # right before the clip{where}"


def _each(run: Run, clip: ClipFact) -> str:
    """`for opt in self.opts:` where only a later loop calls the optimizer so."""
    if clip.place.cell != clip.step_place.cell or not clip.optimizer_name:
        return ""
    return each_of(run.source_of(clip.place.cell), clip.optimizer_name, clip.place, clip.step_place)


def _unscaled(run: Run, clip: ClipFact, scaler: str, optimizer: str, each: str) -> str:
    """The call before the clip; in a loop over the optimizers, if that is how they step further down."""
    if not each:
        return f"{scaler}.unscale_({optimizer})  # first, then clip, then {scaler}.step({optimizer})"
    loop, name = syntax.loop_around(run.source_of(clip.place.cell), clip.place.line or 0), clip.optimizer_name
    inside = loop is not None and not syntax.spans(loop, clip.step_place.line or 0)
    first = "first, before the loop that clips" if inside else "first, then clip"
    return f"{each}\n    {scaler}.unscale_({name})  # {first}, then {scaler}.step({name})"


def _finding(run: Run, clip: ClipFact, clips: list[ClipFact]) -> Finding:
    scaler = clip.scaler_name or "scaler"
    path = run.optimizer_path(clip.optimizer) or clip.optimizer_name or "optimizer"
    # The scaler is called what it is where it steps: so is the optimizer.
    optimizer = (clip.optimizer_name if clip.place.function else "") or path
    limit = clip.limit or 0.0
    return Finding(
        message=(
            f"`{clip.function}` clipped gradients that still carry the loss scale of {number_text(clip.scale)}: "
            f"after `{scaler}.{_divides(clip)}({optimizer})` divides by it, at most {limit / clip.scale:.2g} is left "
            f"of the limit of {limit:g}. `unscale_` has to come before."
        ),
        subject=path,
        fix=_fix(run, clip, scaler, optimizer) + (_ONCE if clip.unscaled_late else ""),
        line=clip.place.line,
        cell=clip.place.cell,
        evidence=(
            Evidence("loss scale", clip.scale),
            Evidence("limit", limit),
            *((Evidence("norm before the clip", clip.norm),) if clip.norm is not None else ()),
            *((Evidence("norm without the scale", clip.norm / clip.scale),) if clip.norm is not None else ()),
            Evidence("clips like this, of those looked at", len(clips), "count"),
        ),
    )
