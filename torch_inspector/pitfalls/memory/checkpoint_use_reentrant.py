"""`checkpoint()` in its old variant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import CheckpointFact, Place, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_CALLS = ("checkpoint", "checkpoint_sequential")
_NO_HISTORY = "does not require grad and does not have a grad_fn"


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds blocks that got no gradient as nothing that they were fed with wanted one, and calls without a choice."""
    fed = {key for fact in run.trace.checkpoints if fact.fed for key in fact.parameter_keys}
    told = {fact.place for past in run.earlier for fact in past.trace.checkpoints}
    # A line in a loop over layers calls it for each of them.
    lines: dict[Place, list[CheckpointFact]] = {}
    for fact in run.trace.checkpoints:
        lines.setdefault(fact.place, []).append(fact)
    for place, facts in lines.items():
        cut = [fact for fact in facts if _is_cut_off(run, fact, fed)]
        if cut:
            yield _cut_off(run, cut)
        elif facts[0].fed and place not in told and _leaves_open(run, facts[0]):
            yield _left_open(run, facts[0])


def _is_cut_off(run: Run, fact: CheckpointFact, fed: set[int]) -> bool:
    """True if the cell went backward, and reached no parameter of the block in any way."""
    if fact.fed or not fact.training or not fact.parameter_keys or fact.parameter_keys & fed:
        return False
    if run.error is not None and _NO_HISTORY in run.error.message:
        return True
    seen = [backward.witness for backward in run.trace.backwards]
    whole = bool(seen) and all(witness is not None and witness.complete for witness in seen)
    return whole and not any(witness.leaf_keys & fact.parameter_keys for witness in seen if witness is not None)


def _cut_off(run: Run, facts: list[CheckpointFact]) -> Finding:
    fact, name = facts[0], _name(run, facts[0])
    block = f"`{name}`" if name else "the block"
    return Finding(
        message=(
            f"{block if len(facts) == 1 else f'{len(facts)} blocks ({block} first)'} got no gradient: "
            "the old variant of checkpoint() was given no tensor that wants one, and its result has no history."
        ),
        subject=name,
        fix="checkpoint(..., use_reentrant=False)",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("calls from this line", sum(one.count for one in facts), "count"),
            Evidence("block", fact.kind),
            Evidence("its parameters that want gradients", len(fact.parameter_keys), "count"),
            Evidence("backward calls that reached one of them", 0, "count"),
        ),
    )


def _name(run: Run, fact: CheckpointFact) -> str:
    """What the user calls the block, or its class."""
    paths = (
        m.path for m in run.after.modules if m.path and m.parameter_keys and m.parameter_keys <= fact.parameter_keys
    )
    return next(paths, "") or fact.kind


def _leaves_open(run: Run, fact: CheckpointFact) -> bool:
    """True if the line calls it and says nothing of the variant."""
    cell = next((one.cell for one in (run, *reversed(run.earlier)) if one.cell.number == fact.place.cell), None)
    if cell is None or fact.place.line is None:
        return False
    tree = syntax.parse(cell.code)
    if tree is None:
        return False
    line = fact.place.line - cell.line_offset
    calls = [node for node in syntax.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= _end(node)]
    named = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in _CALLS]
    return bool(named) and all(_is_silent(call) for call in named)


def _end(node: ast.Call) -> int:
    return node.end_lineno or node.lineno


def _is_silent(call: ast.Call) -> bool:
    """True for a call without the keyword; `**options` may bring it."""
    return all(keyword.arg not in (None, "use_reentrant") for keyword in call.keywords)


def _left_open(run: Run, fact: CheckpointFact) -> Finding:
    return Finding(
        message=(
            "checkpoint() without use_reentrant took the old variant, which gives no gradients to a block whose inputs "
            "want none."
        ),
        subject=_name(run, fact),
        fix="checkpoint(..., use_reentrant=False)",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint",
        evidence=(
            Evidence("calls from this line", fact.count, "count"),
            Evidence("inputs that want gradients", "yes: gradients flow here"),
        ),
    )
