"""`torch.tensor` of a tensor on the way to the loss: a copy without history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch_inspector.facts import CopyFact, Place, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NO_GRAPH = "does not require grad and does not have a grad_fn"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds copies of tensors that require grad, where `backward()` was called on what was made of the copy."""
    error = run.error
    if error is not None:
        if _NO_GRAPH in error.message and error.refusal is not None:
            recorded = frozenset(error.refusal.recorded)
            for one, cell in _all_copies(run):
                if _is_here(error.place, one, cell) and recorded & {*one.names}:
                    yield _past_numbers(run, one, _finding(one, cell, recorded, _containers(run)))
        return
    recorded = _recorded(run)
    for one, cell in _all_copies(run):
        at_top = cell == run.cell.number and not one.function and recorded & {*one.names}
        if (one.is_root or at_top) and _ran(run, one, cell):
            found = _past_numbers(run, one, _finding(one, cell, recorded, _containers(run)))
            # A copy beside other terms may be meant as a target.
            yield found if one.is_root or _is_alone(run, one, cell) else replace(found, severity="hint")


def _is_alone(run: Run, one: CopyFact, cell: int | None) -> bool:
    """True if the graph of that call has no leaf but the copy."""
    calls = [b for b in run.trace.backwards if _is_here(b.place, one, cell) and b.witness is not None]
    return bool(calls) and all(b.witness is not None and len(b.witness.leaf_keys) <= 1 for b in calls)


def _all_copies(run: Run) -> Iterator[tuple[CopyFact, int | None]]:
    for one in (run, *run.earlier):
        for copy in one.trace.copies:
            yield copy, one.cell.number


def _recorded(run: Run) -> frozenset[str]:
    """Variables that hold a computed tensor, or a container of such."""
    tensors = (one.path for one in run.after.tensors if one.requires_grad and not one.is_leaf)
    return frozenset(path.partition("[")[0] for path in tensors)


def _ran(run: Run, one: CopyFact, cell: int | None) -> bool:
    """True if that `backward()` was called in this run."""
    return any(_is_here(fact.place, one, cell) for fact in run.trace.counts if fact.kind == "backward")


def _is_here(place: Place, one: CopyFact, cell: int | None) -> bool:
    return (place.cell, place.line, place.function) == (cell, one.differentiated_line, one.function)


def _containers(run: Run) -> frozenset[str]:
    return frozenset(one.path.partition("[")[0] for one in run.after.tensors if "[" in one.path)


def _finding(one: CopyFact, cell: int | None, recorded: frozenset[str], containers: frozenset[str]) -> Finding:
    names = [name for name in one.names if name in recorded] or list(one.names)
    given = names[0]
    what = "backward() on it reaches no parameter" if one.is_root else "backward() does not go past it"
    several = len(one.names) > 1 or given in containers
    return Finding(
        message=f"`{one.text}` copies the numbers of `{given}` without their history: {what}.",
        subject=given,
        fix=_fix(one, given, several=several),
        line=one.line,
        cell=cell,
        evidence=(Evidence("backward() in line", one.differentiated_line),),
    )


def _past_numbers(run: Run, one: CopyFact, finding: Finding) -> Finding:
    """Where a function gives what is copied, it may have left PyTorch before: then that is to go first."""
    cuts = (*run.trace.cuts, *(run.error.cuts if run.error is not None else ()))
    inner = [cut for cut in cuts if cut.kind in ("numpy", "item") and any(cut.sources) and one.text not in cut.text]
    if "(" not in finding.subject or not inner:
        return finding
    cut = inner[-1]
    return replace(
        finding,
        message=f"{finding.message} It was lost before, by `{cut.text}` ({cut.place.said_in(finding.cell)}).",
        fix=f"use functions of torch in place of {cut.text}; then {finding.subject} itself, without torch.tensor()",
    )


def _fix(one: CopyFact, given: str, *, several: bool) -> str:
    if several:
        listed = ", ".join(one.names) if len(one.names) > 1 else ""
        return f"torch.stack([{listed}])" if listed else f"torch.stack({given})"
    return f"use {given} itself, without torch.tensor()"
