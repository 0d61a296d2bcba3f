"""Gradients are clipped after the step that should have used them, or before there are any."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ClipFact, Place, Run, syntax
from torch_inspector.facts.gradient_reads import clears_gradients, uses_gradients
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One call may be a try.
_AGAIN = 2
# A larger limit is there to measure, not to clip.
_MEASURES = 100.0


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds lines all of whose clips come between a step and the clearing, or before any gradient is there."""
    if run.error is not None:
        return
    clips: dict[Place, list[ClipFact]] = {}
    for clip in run.trace.clips:
        clips.setdefault(clip.place, []).append(clip)
    for place, same in clips.items():
        if len(same) < _AGAIN or not all(0 < (clip.limit or 0) <= _MEASURES for clip in same):
            continue
        if _clips_elsewhere(run, place) or uses_gradients(run, _touched(run, same)):
            continue
        if clears_gradients(run) and _all_known([_is_wasted(run, clip) for clip in same]):
            yield _finding(run, same, after=True)
        elif _all_known([_is_empty(run, clip) for clip in same]):
            yield _finding(run, same, after=False)


def _touched(run: Run, clips: list[ClipFact]) -> frozenset[int]:
    """Parameters that were clipped or stepped."""
    stepped = (one.parameter_keys for one in run.trace.steps)
    return frozenset[int]().union(*(one.parameter_keys for one in clips), *stepped)


def _all_known(answers: list[bool | None]) -> bool:
    """True if some say yes and none no: of later turns not every call is looked at, and none follows the last."""
    return True in answers and False not in answers


def _is_wasted(run: Run, clip: ClipFact) -> bool | None:
    """True if it comes after a step, and its gradients were gone before the next backward call; None if not known."""
    mine = [one for one in run.trace.steps if one.parameter_keys & clip.parameter_keys]
    before = [one for one in mine if one.order < clip.order]
    after = next((one for one in mine if one.order > clip.order), None)
    if not before or len({one.optimizer for one in mine}) > 1:
        return False
    if after is None:
        return None
    if after.has_closure or after.kept_gradients:
        return False
    calls = [one for one in run.trace.backwards if before[-1].order < one.order < after.order]
    return calls[0].order > clip.order if calls else None


def _is_empty(run: Run, clip: ClipFact) -> bool | None:
    """True if it found no gradient, and a backward call filled some before the next step; None if not known."""
    if clip.norm != 0 or clip.parameter_keys or len(run.steps_by_optimizer()) != 1:
        return False
    step = next((one for one in run.trace.steps if one.order > clip.order), None)
    last = max((one.order for one in run.trace.steps if one.order < clip.order), default=0)
    if any(last < one.order < clip.order for one in run.trace.backwards):
        return False  # of a part that has none
    if step is None:
        return None
    if step.has_closure or step.empty_gradients:
        return False
    return True if any(clip.order < one.order < step.order for one in run.trace.backwards) else None


def _clips_elsewhere(run: Run, place: Place) -> bool:
    return any(clip.place != place for clip in run.trace.clips)


def _finding(run: Run, clips: list[ClipFact], *, after: bool) -> Finding:
    clip = clips[0]
    keys = clip.parameter_keys
    step = next((one for one in run.trace.steps if one.parameter_keys & keys or not keys), run.trace.steps[0])
    name = run.optimizer_name_at(step.optimizer, clip.place) or run.optimizer_path(step.optimizer) or "optimizer"
    backward = next((one for one in run.trace.backwards if one.order > clip.order), None)
    loss = _line(run, backward.place, ".backward(") if backward is not None else ""
    if after:
        what = f"`{clip.function}` runs after `{name}.step()`, and the gradients that it clips are cleared unused"
    else:
        what = f"`{clip.function}` runs before `backward()` and finds no gradients: the norm is 0 each time"
    return Finding(
        message=f"{what}. No step is limited to {clip.limit:g}.",
        subject=name,
        fix="\n".join(line for line in (loss, _call(run, clip), f"{name}.step()  # in this order") if line),
        line=clip.place.line,
        cell=clip.place.cell,
        evidence=(
            Evidence("limit", clip.limit or 0.0),
            Evidence("clips like this, of those looked at", len(clips), "count"),
            *((Evidence("norm before the first of them", clip.norm),) if clip.norm is not None else ()),
        ),
    )


def _call(run: Run, clip: ClipFact) -> str:
    own = _line(run, clip.place, clip.function)
    return own or f"torch.nn.utils.{clip.function}(model.parameters(), {clip.limit:g})"


def _line(run: Run, place: Place, word: str) -> str:
    """A line as the user wrote it, if it is one whole statement with this word in it; else empty."""
    lines, number = run.source_of(place.cell).splitlines(), place.line or 0
    text = lines[number - 1].split("#")[0].strip() if 0 < number <= len(lines) else ""
    return text if word in text and ";" not in text and syntax.parse(text) is not None else ""
