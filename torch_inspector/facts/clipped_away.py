"""Clips of gradients to 0, after which nothing is left to follow."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import StepFact
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.schedules import ClipFact

_LIMITS = ("max_norm", "clip_value")
_ARGUMENTS = 2


class Clipped(NamedTuple):
    """What happened, and what mends it."""

    reason: str
    fix: str


def clipped_away(run: Run, step: StepFact) -> Clipped | None:
    """The clip to 0 of what an optimizer follows; None if there is none."""
    clips = (one for one in run.trace.clips if one.limit == 0 and one.parameter_keys & step.parameter_keys)
    clip = next(clips, None)
    if clip is None:
        return None
    where = clip.place.said_in(run.cell.number)
    reason = f"`{clip.function}` ({where}) clips every gradient to 0, as its limit is 0"
    again = _with_limit(run, clip)
    fix = f"{again}  # or leave the line out, for no clipping" if again else f"leave {clip.function} out ({where})"
    return Clipped(reason, fix)


def _with_limit(run: Run, clip: ClipFact) -> str:
    """The call with a usual limit; empty where the line has no such call, or hands its arguments on."""
    tree = syntax.parse(run.source_of(clip.place.cell))
    calls = [one for one in syntax.walk(tree) if called(one) == clip.function] if tree is not None else []
    own = [one for one in calls if isinstance(one, ast.Call) and syntax.spans(one, clip.place.line or 0)]
    if len(own) != 1:
        return ""
    call = ast.parse(ast.unparse(own[0]), mode="eval").body
    if not isinstance(call, ast.Call):
        return ""
    for one in (one for one in call.keywords if one.arg in _LIMITS):
        one.value = ast.Constant(1.0)
        return ast.unparse(call)
    if len(call.args) < _ARGUMENTS:
        return ""
    call.args[1] = ast.Constant(1.0)
    return ast.unparse(call)
