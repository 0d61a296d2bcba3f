"""`scheduler.step()` comes before `optimizer.step()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import Place, Run, ScheduleFact, StepFact, called, reading, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Twice in a row with steps in between is how the loop is built; several calls without are a schedule that is wound on.
_CALLS = 2
# Of the next rate: a warm-up from 0 that has to begin above it.
_NOTHING = 1e-3


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds schedules whose first value was passed over because they were stepped first."""
    seen: set[tuple[int | None, int | None]] = set()
    for fact in run.trace.schedules:
        # A rate that starts at zero is passed over on purpose: the first step would change nothing.
        tells = _comes_first(fact) and (fact.first_rate != 0 or _comes_between(run, fact))
        at = (fact.place.cell, fact.place.line) if tells else None
        if at is not None and at not in seen:
            seen.add(at)
            yield _finding(run, fact)


def _comes_first(fact: ScheduleFact) -> bool:
    """True if the optimizer had made no step at all before the first call, and did between this and the next."""
    if not fact.first_ever or fact.told:
        return False
    counts = fact.step_counts[:_CALLS]
    return len(counts) == _CALLS and counts[0] == 0 < counts[1]


def _comes_between(run: Run, fact: ScheduleFact) -> bool:
    """True if the first call came after the backward call that the first step of the optimizer followed."""
    step = next((one for one in run.trace.steps if one.optimizer == fact.optimizer), None)
    if step is None or fact.order > step.order:
        return False
    reached = (b for b in run.trace.backwards if b.witness and b.witness.leaf_keys & step.parameter_keys)
    before = [b.order for b in reached if b.order < step.order]
    return bool(before) and max(before) < fact.order


def _finding(run: Run, fact: ScheduleFact) -> Finding:
    name = fact.name or fact.kind
    optimizer = run.optimizer_path(fact.optimizer) or fact.optimizer_name or "optimizer"
    used = next((rate for calls, rate in fact.rates if calls == 1), None)
    step = next((one for one in run.trace.steps if one.optimizer == fact.optimizer), None)
    made = _step_text(run, step) or f"{optimizer}.step()"
    called = f"`{name}.step()`{_of_each(run, fact)}"
    return Finding(
        message=f"{called} ran before the first `{made}`: {_effect(fact.first_rate, used)}.",
        subject=fact.path or name,
        fix=_fix(run, fact, step, name, optimizer),
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint" if _is_next_to_nothing(fact.first_rate, used) else "",
        evidence=(
            *((Evidence("first rate of the schedule", fact.first_rate),) if fact.first_rate is not None else ()),
            *((Evidence("rate of the first step", used),) if used is not None else ()),
            *((Evidence(f"{optimizer}.step() at line", step.place.line),) if step and step.place.line else ()),
            Evidence("calls of the schedule in this cell", fact.count, "count"),
        ),
    )


def _is_next_to_nothing(first: float | None, used: float | None) -> bool:
    """True for the first rate of a warm-up: a step with it would change nothing that can be seen."""
    return first is not None and first <= _NOTHING * (used or 0.0)


def _fix(run: Run, fact: ScheduleFact, step: StepFact | None, name: str, optimizer: str) -> str:
    """Both lines in order, or where the schedule goes, if the optimizer steps in a loop or function of its own."""
    if step is not None and reading.loop_without(run, step.place, fact.place):
        return f"{name}.step()  # move this line {_behind(run, step, fact.place, optimizer)}"
    if step is not None and step.place.scope != fact.place.scope:
        call, outer = reading.function_at(run, step.place), _outer_line(fact, step)
        if outer is not None:
            return _moved_out(run, fact, step, outer, optimizer)
        if call:
            line = _calling(run, fact, call) or f"{name}.step()"
            return f"{line}  # move this line behind the calls of {call}(), which makes the steps"
    here = (fact.optimizer_name if fact.place.function else "") or optimizer
    scaled = _step_text(run, step)
    if scaled:
        return f"{scaled}\n{scaled.partition('.step(')[0]}.update()\n{name}.step()  # after the optimizer's steps"
    return f"{here}.step()\n{name}.step()  # after the optimizer, once its steps with this rate are made"


def _of_each(run: Run, fact: ScheduleFact) -> str:
    """The words on where a loop has the schedule from: `s` says little."""
    tree, line = syntax.parse(run.source_of(fact.place.cell)), fact.place.line or 0
    loops = [one for one in syntax.walk(tree) if isinstance(one, (ast.For, ast.comprehension))] if tree else []
    own = [one for one in loops if ast.unparse(one.target) == fact.name]
    near = [one for one in own if isinstance(one, ast.comprehension) or syntax.spans(one, line)]
    return f", of each `{fact.name}` in `{ast.unparse(near[0].iter)}`," if len(near) == 1 else ""


def _calling(run: Run, fact: ScheduleFact, call: str) -> str:
    """The line that calls the function which steps the schedule, in the code that calls the one with the steps."""
    caller, here = next(iter(fact.callers), None), reading.function_at(run, fact.place).rpartition(".")[2]
    tree = syntax.parse(run.source_of(caller.cell)) if caller is not None else None
    if caller is None or tree is None or not here:
        return ""
    nodes = [one for one in syntax.walk(syntax.scope_at(tree, caller.line or 0)) if isinstance(one, ast.Call)]
    steps = any(syntax.last_part(one.func) == call.rpartition(".")[2] for one in nodes)
    own = [one for one in nodes if one.lineno == caller.line and syntax.last_part(one.func) == here]
    return ast.unparse(own[0]) if steps and len(own) == 1 else ""


def _step_text(run: Run, step: StepFact | None) -> str:
    """`scaler.step(optimizer)`, if the optimizer steps that way; else empty."""
    tree = syntax.parse(run.source_of(step.place.cell)) if step is not None else None
    if step is None or tree is None or not run.trace.count("scaler.step"):
        return ""
    calls = (one for one in syntax.walk(tree) if isinstance(one, ast.Call) and one.lineno == step.place.line)
    found = [ast.unparse(one) for one in calls if called(one) == "step" and len(one.args) == 1]
    return found[0] if len(found) == 1 else ""


def _moved_out(run: Run, fact: ScheduleFact, step: StepFact, outer: Place, optimizer: str) -> str:
    """The schedule is stepped by what the function that makes the steps calls: a callback, say, at an epoch's start."""
    here, there, name = reading.function_at(run, fact.place), reading.function_at(run, outer), fact.name or fact.kind
    known = not name.startswith("self.") or reading.seen_from(run, name, fact.place, outer)
    to = f"{there}()," if there else "the cell,"
    to = to if known else f"what {there}() calls" if there else "what the cell calls"
    return f"{name}.step()  # move this line from {here}() to {to} {_behind(run, step, outer, optimizer)}"


def _outer_line(fact: ScheduleFact, step: StepFact) -> Place | None:
    """The line of the very function that makes the steps, if it is this that called what steps the schedule."""
    there = step.place.scope
    return next((one for one in fact.callers if one.scope == there), None)


def _behind(run: Run, step: StepFact, line: Place, optimizer: str) -> str:
    """Where the schedule goes, from a line of the function that makes the steps."""
    where = f" of line {step.place.line}" if step.place.line is not None else ""
    if not reading.loop_without(run, step.place, line):
        return f"behind {optimizer}.step(){where}"
    around, function = reading.loop_around(run, line), reading.function_at(run, line)
    turn = f"each turn of {around}" if around else f"{function}()" if function else ""
    end = f"at the end of {turn}" if turn else "not in it"
    return f"behind the loop with {optimizer}.step(){where}, {end}"


def _effect(first: float | None, used: float | None) -> str:
    if first is None or used is None or first == used:
        return "every change of the learning rate comes one call early"
    if first == 0:
        return f"every change of the learning rate comes one call early, and training began with {used:g} in place of 0"
    return f"the first learning rate, {first:g}, was never used, and training began with {used:g}"
