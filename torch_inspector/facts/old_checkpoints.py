"""Blocks that the old variant of `checkpoint()` ran without history, and its call in the text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from torch_inspector.facts.calls import CheckpointFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_CALLS = ("checkpoint", "checkpoint_sequential")
_NO_HISTORY = "does not require grad and does not have a grad_fn"
_NEW = "checkpoint(..., use_reentrant=False)"


def cut_off(run: Run) -> list[CheckpointFact]:
    """The blocks that want gradients and were fed with nothing that does, though the cell went backward."""
    fed = {key for fact in run.trace.checkpoints if fact.fed for key in fact.parameter_keys}
    return [fact for fact in run.trace.checkpoints if _is_cut_off(run, fact, fed)]


def _is_cut_off(run: Run, fact: CheckpointFact, fed: set[int]) -> bool:
    """True if the cell went backward, and reached no parameter of the block in any way."""
    if fact.fed or not fact.training or not fact.parameter_keys or fact.parameter_keys & fed:
        return False
    if run.error is not None and _NO_HISTORY in run.error.message:
        return True
    seen = [backward.witness for backward in run.trace.backwards]
    whole = bool(seen) and all(witness is not None and witness.complete for witness in seen)
    return whole and not any(witness.leaf_keys & fact.parameter_keys for witness in seen if witness is not None)


def cut_whole(run: Run) -> list[CheckpointFact]:
    """Those blocks, where a backward call failed for them: nothing else that was called kept a history."""
    error = run.error
    if error is None or _NO_HISTORY not in error.message or error.cuts + error.constants:
        return []
    kept = any(call.output_requires_grad for call in run.trace.forwards if call.parameter_keys)
    return [] if kept else cut_off(run)


def said(run: Run, facts: list[CheckpointFact]) -> str:
    """`3 blocks ("Block" first)`, with what the user calls the first, or its class."""
    name = block_name(run, facts[0])
    block = f"`{name}`" if name else "the block"
    return block if len(facts) == 1 else f"{len(facts)} blocks ({block} first)"


def block_name(run: Run, fact: CheckpointFact) -> str:
    """What the user calls the block, or its class."""
    paths = (
        m.path for m in run.after.modules if m.path and m.parameter_keys and m.parameter_keys <= fact.parameter_keys
    )
    return next(paths, "") or fact.kind


def calls_at(run: Run, place: Place) -> list[ast.Call]:
    """The calls of `checkpoint` in a line."""
    tree, line = syntax.parse(run.source_of(place.cell)), place.line or 0
    calls = [node for node in syntax.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    here = [node for node in calls if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return [call for call in here if ast.unparse(call.func).rpartition(".")[2] in _CALLS]


def in_new_variant(run: Run, place: Place) -> str:
    """The statement of a line with `use_reentrant=False`; words for it where its call passes options on."""
    calls = calls_at(run, place)
    if len(calls) != 1 or any(keyword.arg is None for keyword in calls[0].keywords):
        return _NEW
    old = ast.unparse(calls[0])
    new = ast.parse(old, mode="eval").body
    if isinstance(new, ast.Call):
        others = [keyword for keyword in new.keywords if keyword.arg != "use_reentrant"]
        new.keywords = [*others, ast.keyword("use_reentrant", ast.Constant(value=False))]
    return in_statement(run, place, old, ast.unparse(new))
