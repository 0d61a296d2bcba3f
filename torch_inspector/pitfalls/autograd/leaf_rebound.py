"""A name that stood for a trainable leaf was given a computed value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, NamedFact, RebindFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NO_LEAF = "can't optimize a non-leaf Tensor"
_NO_GRAPH = "does not require grad and does not have a grad_fn"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds assignments after which a name that trains is no leaf any more: its `.grad` stays empty."""
    if run.error is not None:
        yield from _of_error(run, run.error)
        return
    if not any(one.trace.rebinds for one in (run, *run.earlier)):
        return
    yield from _in_loops(run)
    told = set()
    for read in run.trace.grad_reads:
        rebind = _rebind(run, read.path, read.line)
        if rebind is not None and read.path not in told and _lost(run, read.path):
            told.add(read.path)
            yield _finding(run, rebind, read.line)


def _in_loops(run: Run) -> Iterator[Finding]:
    """Updates that go to the variable of a loop only, in a cell that differentiates, or in a function that it calls."""
    if not run.trace.count("backward"):
        return
    seen = {past.cell.source: past for past in (*run.earlier, run)}
    for past in seen.values():
        for fact in past.trace.rebinds:
            call = rf"(?<!def )\b{re.escape(fact.function)}\("
            ran = re.search(call, run.cell.code) is not None if fact.function else past is run
            if fact.looped and ran:
                yield _in_loop(run, fact, past.cell.number)


def _in_loop(run: Run, fact: RebindFact, cell: int | None) -> Finding:
    inner = f"{fact.remedy}  # in place" if fact.in_no_grad else f"with torch.no_grad():\n    {fact.remedy}"
    if not fact.remedy:
        inner = f"# give the result of this line another name, and use that: the next turn replaces {fact.path}"
    return Finding(
        message=(
            f"`{fact.text}` gives another tensor to the loop's own `{fact.path}`, which no later line of the loop "
            f"reads: what `{fact.looped}` gave stays as it is."
        ),
        subject=fact.path,
        fix=inner,
        line=fact.line,
        cell=cell,
        evidence=(
            Evidence("goes through", fact.looped),
            Evidence("backward calls in this cell", run.trace.count("backward"), "count"),
        ),
    )


def _lost(run: Run, path: str) -> bool:
    """True if the variable needs a gradient, is no leaf, and was not told to keep its gradient."""
    asked = _asks(run)
    return f"{path}.retain_grad" not in asked and any(
        one.path == path and one.requires_grad and not one.is_leaf for one in run.after.tensors
    )


def _asks(run: Run) -> set[str]:
    """Calls of `retain_grad` so far, as written: after them, other causes leave a gradient empty."""
    calls = (call.name for one in (*run.earlier, run) for call in one.trace.calls)
    return {name for name in calls if name.endswith(".retain_grad")}


def _rebind(run: Run, path: str, line: int | None, failed: int | None = None) -> tuple[RebindFact, int | None] | None:
    """The latest assignment of that kind at the top level, here or in a cell before, with the number of the cell.

    Args:
        run: The cell.
        path: What is assigned.
        line: Where it is read.
        failed: The line in which the cell ended in its first turn: it and those behind it have never been passed.
    """
    own = [one for one in run.trace.rebinds if one.path == path and not one.function and not one.looped]
    if own:
        before = [one for one in own if (line is None or one.line <= line) and (failed is None or one.line < failed)]
        if before:
            return before[-1], run.cell.number
    ran = run.cell.code if failed is None else "\n".join(run.cell.source.splitlines()[: failed - 1])
    if re.search(rf"^ *{re.escape(path)} = ", ran, re.MULTILINE):
        return None
    for one in reversed(run.earlier):
        found = [fact for fact in one.trace.rebinds if fact.path == path and not fact.function and not fact.looped]
        if found:
            return found[-1], one.cell.number
    return None


def _of_error(run: Run, error: ErrorFact) -> Iterator[Finding]:
    if _NO_LEAF in error.message:
        yield from _of_optimizer(run, error)
        return
    if error.kind in ("AttributeError", "TypeError") and "NoneType" in error.message and ".grad" in error.statement:
        yield from _of_empty(run, error)
    elif _NO_GRAPH in error.message:
        near = (one for one in _near(run, error) if not one[0].made)
        rebind = next((one for one in near if one[0].in_no_grad and one[0].reads_grad), None)
        if rebind is not None:
            yield _finding(run, rebind, error.place.line)


def _of_empty(run: Run, error: ErrorFact) -> Iterator[Finding]:
    """A gradient that is None, and that the code computes with."""
    asked = _asks(run)
    computed = (one for one in error.operands if one.kind == "tensor" and not one.is_leaf)
    tensors = [one for one in computed if f"{one.path}.retain_grad" not in asked]
    guarded = [one for one in error.operands if one.kind == "tensor" and not one.requires_grad]
    paths = {one.path for one in (*tensors, *guarded)}
    mine = [one.path for one in tensors if one.requires_grad and f"{one.path}.grad" in error.statement]
    # In the first turn the line that failed has assigned nothing yet.
    failed = error.place.line if run.trace.count("backward") <= 1 else None
    near = [one for one in _near(run, error) if failed is None or one[0].line < failed]
    rebind = next((one for one in near if not one[0].made and one[0].path in paths), None)
    rebind = rebind or next((one for one in near if one[0].function and one[0].path in mine), None)
    rebind = rebind or next(filter(None, (_rebind(run, one, None, failed) for one in mine)), None)
    if rebind is not None:
        yield _finding(run, rebind, error.place.line)
    elif mine and not asked and failed is not None and run.trace.count("backward"):
        yield _of_computed(error, mine[0])


def _of_computed(error: ErrorFact, path: str) -> Finding:
    """A tensor that was never a leaf, of which nothing else is known."""
    return Finding(
        message=f"`{path}` is computed from other tensors and no leaf: backward() fills no `{path}.grad`.",
        subject=path,
        fix=f"{path}.retain_grad()  # before backward(); or {path} = {path}.detach().requires_grad_() if it moves",
        line=error.place.line,
        cell=error.place.cell,
        severity="hint",
    )


def _near(run: Run, error: ErrorFact) -> Iterator[tuple[RebindFact, int | None]]:
    """Assignments of that kind in the function or cell that failed."""
    for one in (run, *reversed(run.earlier)):
        if one.cell.number == error.place.cell:
            for fact in one.trace.rebinds:
                if fact.function == error.place.function and not fact.looped:
                    yield fact, one.cell.number


def _of_optimizer(run: Run, error: ErrorFact) -> Iterator[Finding]:
    tensor = error.leafless
    if tensor is None:
        return
    rebind = _rebind(run, tensor.path, None) if tensor.path else None
    if rebind is not None:
        yield _finding(run, rebind, error.place.line)
        return
    what = f"`{tensor.path}`" if tensor.path else "one of the parameters"
    yield Finding(
        message=f"{what}{_made(tensor, error)} is computed from others: an optimizer takes leaves only.",
        subject=tensor.path,
        fix=_leaf_fix(tensor),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(tensor.path or "parameter", f"{tensor.shape}, no leaf"),),
    )


def _leaf_fix(tensor: NamedFact) -> str:
    remark = "  # before the optimizer is made"
    if tensor.path and tensor.kind != "tuple":
        return f"{tensor.path} = {tensor.path}.detach().requires_grad_(){remark}"
    return f"w = w.detach().requires_grad_(){remark.replace('before', 'for each that is computed, before')}"


def _made(tensor: NamedFact, error: ErrorFact) -> str:
    made = tensor.made_at
    return f" (line {made.line})" if made is not None and made.line and made.cell == error.place.cell else ""


def _finding(run: Run, rebind: tuple[RebindFact, int | None], used: int | None) -> Finding:
    fact, cell = rebind
    here = cell == run.cell.number
    there = "" if here else f" of cell {cell}"
    left = "a tensor that needs no gradient" if fact.in_no_grad else "a computed tensor, no leaf"
    text = f"`{fact.text}` (line {fact.line}{there}) makes `{fact.path}` {left}"
    return Finding(
        message=f"{text}: backward() fills no `{fact.path}.grad`.",
        subject=fact.path,
        fix=_fix(fact),
        line=fact.line,
        cell=cell,
        evidence=(Evidence("used in line", used),) if used is not None else (),
    )


def _fix(fact: RebindFact) -> str:
    if fact.made:
        return fact.remedy
    if fact.in_no_grad:
        return f"{fact.remedy}  # in place, under no_grad() as it is"
    if fact.reads_grad:
        return f"with torch.no_grad():\n    {fact.remedy}"
    return f"with torch.no_grad():\n    {fact.remedy}\n# or keep {fact.path} and give the result another name"
