"""`model.eval` as a statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch_inspector.facts import MentionFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SLUG = "eval-not-called"
_METHODS = {"eval": False, "train": True}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds statements that name `eval` or `train` of a module and do not call it."""
    for mention in run.trace.mentions:
        owner, _, method = mention.name.rpartition(".")
        if owner and method in _METHODS:
            yield from _judge(run, mention, owner, method)
    for past in run.earlier:
        for mention in past.trace.mentions:
            owner, _, method = mention.name.rpartition(".")
            if mention.function and owner and method in _METHODS:
                yield from _judge_late(run, past, mention, owner, method)


def _judge(run: Run, mention: MentionFact, owner: str, method: str) -> Iterator[Finding]:
    modes = _modes_of(run, owner)
    if not modes and not (run.after.modules or run.trace.forwards):
        return  # nothing here is a model: `frame.eval` of another library
    wrong = _METHODS[method] not in modes or len(modes) > 1
    yield _finding(mention, owner, modes, severity="" if modes and wrong else "hint")


def _judge_late(run: Run, past: Run, mention: MentionFact, owner: str, method: str) -> Iterator[Finding]:
    """Of a function of an earlier cell, which had no model yet: this cell has called it, and the model in it."""
    cell = past.cell.number
    calls = [call for call in run.trace.forwards if call.name == owner and call.place.cell == cell]
    modes = {call.training for call in calls if call.place.function.endswith(mention.function)}
    found = ((one, f) for one in run.earlier for f in one.findings if f.slug == _SLUG and f.line == mention.line)
    told = any(f.cell == cell or (f.cell is None and one is past) for one, f in found)
    if modes and _METHODS[method] not in modes and not told:
        yield replace(_finding(mention, owner, modes, severity=""), cell=cell)


def _modes_of(run: Run, owner: str) -> set[bool]:
    """Modes in which the module of this name was seen: after the cell, and when it was called."""
    held = {module.training for module in run.after.modules if module.path == owner}
    return held | {call.training for call in run.trace.forwards if call.name == owner}


def _finding(mention: MentionFact, owner: str, modes: set[bool], *, severity: str) -> Finding:
    mode = {frozenset((True,)): "train", frozenset((False,)): "eval"}.get(frozenset(modes), "both modes")
    stays = f": `{owner}` stays in {mode} mode" if len(modes) == 1 else ": the mode stays what it was"
    return Finding(
        message=f"`{mention.name}` without parentheses calls nothing{stays}.",
        subject=owner,
        fix=f"{mention.name}()",
        line=mention.line,
        severity="hint" if severity else "",
        evidence=(
            Evidence("statement", mention.name),
            Evidence("mode that was seen", mode if modes else "not known"),
        ),
    )
