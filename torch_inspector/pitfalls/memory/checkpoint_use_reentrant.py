"""`checkpoint()` in its old variant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import CheckpointFact, Place, Run
from torch_inspector.facts.old_checkpoints import block_name, calls_at, cut_off, cut_whole, in_new_variant, said
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds blocks that got no gradient as nothing that they were fed with wanted one, and calls without a choice."""
    told = {fact.place for past in run.earlier for fact in past.trace.checkpoints}
    # Where the backward call failed for it, `graph-cut` says so.
    blocks, told_elsewhere = cut_off(run), bool(cut_whole(run))
    # A line in a loop over layers calls it for each of them.
    lines: dict[Place, list[CheckpointFact]] = {}
    for fact in run.trace.checkpoints:
        lines.setdefault(fact.place, []).append(fact)
    for place, facts in lines.items():
        cut = [fact for fact in facts if fact in blocks]
        if cut and not told_elsewhere:
            yield _cut_off(run, cut)
        elif not cut and facts[0].fed and place not in told and _leaves_open(run, facts[0]):
            yield _left_open(run, facts[0])


def _cut_off(run: Run, facts: list[CheckpointFact]) -> Finding:
    fact = facts[0]
    return Finding(
        message=(
            f"{said(run, facts)} got no gradient: "
            "the old variant of checkpoint() was given no tensor that wants one, and its result has no history."
        ),
        subject=block_name(run, fact),
        fix=in_new_variant(run, fact.place),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("calls from this line", sum(one.count for one in facts), "count"),
            Evidence("block", fact.kind),
            Evidence("its parameters that want gradients", len(fact.parameter_keys), "count"),
            Evidence("backward calls that reached one of them", 0, "count"),
        ),
    )


def _leaves_open(run: Run, fact: CheckpointFact) -> bool:
    """True if the line calls it and says nothing of the variant."""
    named = calls_at(run, fact.place)
    return bool(named) and all(_is_silent(call) for call in named)


def _is_silent(call: ast.Call) -> bool:
    """True for a call without the keyword; `**options` may bring it."""
    return all(keyword.arg not in (None, "use_reentrant") for keyword in call.keywords)


def _left_open(run: Run, fact: CheckpointFact) -> Finding:
    return Finding(
        message=(
            "checkpoint() without use_reentrant took the old variant, which gives no gradients to a block whose inputs "
            "want none."
        ),
        subject=block_name(run, fact),
        fix=in_new_variant(run, fact.place),
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint",
        evidence=(
            Evidence("calls from this line", fact.count, "count"),
            Evidence("inputs that want gradients", "yes: gradients flow here"),
        ),
    )
