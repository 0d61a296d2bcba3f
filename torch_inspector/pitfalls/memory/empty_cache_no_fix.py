"""`empty_cache()` in the place of letting go of something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import EmptiedFact, MemoryFact, Run, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Fewer calls from one line may lie between experiments.
_CALLS = 8
# Calls per step or forward call from which on they belong to the step; below, they are made every few steps on purpose.
_STEP_RATIO = 0.5
# Time of the cell from which on the calls themselves matter.
_TIME_RATIO = 0.05
# What is still in use counts as unchanged within this much of it: small tensors come and go.
_SAME_RATIO = 0.01
# Runs before this one in which memory may have run out.
_RECENT = 5
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory", re.IGNORECASE)
# Calls that react to nothing: they say what happened, or clean up what has no holder anyway.
_IDLE = frozenset(
    ("print", "gc.collect", "logging.warning", "logger.warning", "warnings.warn", "torch.cuda.synchronize")
)
_HOLDERS = 3
# In a loop the next turn may be the answer: a smaller batch, another model.
# Who measures memory or time starts each measurement with an empty cache.
_MEASURES = re.compile(r"reset_peak_memory_stats|max_memory_|memory_stats|memory_reserved|timeit|perf_counter|Event\(")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds `empty_cache()` in each step, as the only answer to a lack of memory, or without any effect after one."""
    yield from (_in_each_step(run, fact) for fact in run.trace.emptied if _is_in_each_step(run, fact))
    yield from _only_reactions(run)
    if run.trace.emptied and any(_ran_out(past) for past in run.earlier[-_RECENT:]) and run.error is None:
        yield from _without_effect(run)


def _is_in_each_step(run: Run, fact: EmptiedFact) -> bool:
    steps = max(run.trace.count(kind) for kind in ("step", "backward", "forward"))
    often = fact.count >= _CALLS and fact.count >= _STEP_RATIO * steps > 0
    return often and not _MEASURES.search(run.cell.code)


def _in_each_step(run: Run, fact: EmptiedFact) -> Finding:
    effect = "which hands blocks back that the next step asks for again" if fact.started else "which does nothing here"
    dear = fact.started and fact.spent_s >= _TIME_RATIO * run.duration_s
    return Finding(
        message=(
            f"`{fact.name}()` was called {fact.count} times, once per step, {effect}: it gives torch no more memory."
        ),
        subject=fact.name,
        fix="leave it out; call it once after the loop if another program needs the memory",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="warning" if dear else "hint",
        evidence=(
            Evidence("calls from this line", fact.count, "count"),
            *((Evidence("time in these calls", fact.spent_s, "s"),) if fact.started else ()),
            *_memory_evidence(run),
        ),
    )


def _memory_evidence(run: Run) -> tuple[Evidence, ...]:
    """What is in use and reserved on the devices after the cell."""
    devices = [memory for memory in run.after.memory if memory.device != "host"][:_HOLDERS]
    return tuple(
        one
        for memory in devices
        for one in (
            Evidence(f"{memory.device}: in use", memory.allocated_nbytes, "bytes"),
            Evidence(f"{memory.device}: reserved", memory.reserved_nbytes or 0, "bytes"),
        )
    )


def _ran_out(run: Run) -> bool:
    error = run.error
    return error is not None and (error.shortage is not None or _OUT_OF_MEMORY.search(error.message) is not None)


def _without_effect(run: Run) -> Iterator[Finding]:
    """Memory that is in use as before, in a cell that called it after memory had run out."""
    before = {memory.device: memory for memory in run.before.memory}
    for memory in run.after.memory:
        old = before.get(memory.device)
        if memory.device == "host" or old is None or memory.allocated_nbytes < max(run.min_nbytes, 1):
            continue
        if abs(memory.allocated_nbytes - old.allocated_nbytes) <= _SAME_RATIO * memory.allocated_nbytes:
            yield _useless(run, memory, old)


def _useless(run: Run, memory: MemoryFact, old: MemoryFact) -> Finding:
    fact = run.trace.emptied[0]
    here = [tensor for tensor in run.after.tensors if tensor.device == memory.device]
    largest = sorted(here, key=lambda tensor: -tensor.storage_nbytes)[:_HOLDERS]
    names = ", ".join(f"`{tensor.path}`" for tensor in largest)
    freed = max((old.reserved_nbytes or 0) - (memory.reserved_nbytes or 0), 0)
    return Finding(
        message=(
            f"`{fact.name}()` freed nothing that is in use: {memory.device} holds {size_text(memory.allocated_nbytes)} "
            "of tensors as before the call."
        ),
        subject=fact.name,
        fix=f"let go of what holds it{f': {names}' if names else ''}; %torchcheck memory says what does",
        line=fact.place.line,
        cell=fact.place.cell,
        severity="warning",
        evidence=(
            Evidence("in use before", old.allocated_nbytes, "bytes"),
            Evidence("in use after", memory.allocated_nbytes, "bytes"),
            Evidence("given back to the device", freed, "bytes"),
            *(Evidence(tensor.path, tensor.storage_nbytes, "bytes") for tensor in largest),
        ),
    )


def _only_reactions(run: Run) -> Iterator[Finding]:
    """`except` blocks of the cell for a lack of memory in which nothing else is done, and after which nothing is."""
    if "empty_cache" not in run.cell.code or "except" not in run.cell.code:
        return
    tree = syntax.parse(run.cell.code)
    if tree is None:
        return
    for handler in _last_handlers(tree):
        call = _only_call(handler.body, told="OutOfMemory" in ast.unparse(handler.type or handler))
        if call is not None:
            yield _only_reaction(run, call)


def _last_handlers(tree: ast.Module) -> Iterator[ast.ExceptHandler]:
    """Handlers of `try` statements with which their block ends: what follows one may be the answer."""
    for node in syntax.walk(tree):
        body = getattr(node, "body", None)
        last = body[-1] if isinstance(body, list) and body else None
        if isinstance(last, ast.Try) and not last.finalbody and not isinstance(node, syntax.LOOPS):
            yield from last.handlers


def _only_call(body: list[ast.stmt], *, told: bool) -> ast.Call | None:
    """The call of `empty_cache()` in statements that do nothing else.

    Args:
        body: The statements.
        told: True if it is known that they are for a lack of memory; else an `if` has to say so.
    """
    found = None
    for statement in body:
        if isinstance(statement, ast.If) and "out of memory" in ast.unparse(statement.test):
            if any(not isinstance(one, ast.Raise) for one in statement.orelse):
                return None
            found = _only_call(statement.body, told=True) or found
            if found is None:
                return None
        elif isinstance(statement, ast.Raise) and found is not None and not told:
            continue  # what is no lack of memory goes on
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = ast.unparse(statement.value.func)
            if name.endswith("empty_cache") and told:
                found = statement.value
            elif name not in _IDLE:
                return None
        elif not isinstance(statement, ast.Pass):
            return None
    return found


def _only_reaction(run: Run, call: ast.Call) -> Finding:
    name = ast.unparse(call.func)
    return Finding(
        message=f"`{name}()` is all that this block does about a lack of memory, and it gives torch no more of it.",
        subject=name,
        fix="let go of the tensors of the failed attempt and try again with less, such as half the batch",
        line=call.lineno + run.cell.line_offset,
        severity="hint",
        evidence=(Evidence("block", "except, with nothing else in it"), *_memory_evidence(run)),
    )
