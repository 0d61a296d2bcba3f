"""Gradients cleared between `backward()` and `step()`, or before all micro-batches were added up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import Place, Run, StepFact, called, reading, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# A gradient may be thrown away once (a bad batch); twice within a step, or in two steps, is how the loop is built.
_OFTEN = 2
# Somebody reads gradients, by a hook too, or writes some of his own: then what was cleared may have been used before.
_HOOKS = re.compile(r"\bregister_\w*hook\(")
_READS = re.compile(r"\.grad\b(?!\s*=\s*None\b|\s+is\b|(\.data|\.detach\(\))?\.(zero_|detach_)\(|\()")
_Lines = set[int]


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds steps whose gradients were cleared before anything used them."""
    said = set[tuple[Place | None, Place]]()
    for key in run.steps_by_optimizer():
        lost = [step for step in run.odd_steps(key) if step.cleared_at is not None or step.discarded_count]
        empty = [step for step in lost if step.cleared_at is not None and _is_before_use(step)]
        thrown = [s for s in lost if s.discarded_count and _gone(s) == s.backward_count - 1 and not s.has_closure]
        if not lost or run.trace.steps_come_first(key):
            continue  # `step-before-backward` says it
        if empty and (empty[0].cleared_at, empty[0].place) in said:
            continue  # a loop over optimizers: the first speaks for all
        if empty and _is_built_so(run, key, empty):
            said.add((empty[0].cleared_at, empty[0].place))
            yield _cleared_before_step(run, key, empty)
        elif not empty and _is_each_time(run, key, thrown) and not _reads_gradients(run, thrown):
            yield _micro_batches(run, key, thrown)


def _gone(step: StepFact) -> int:
    """Backward calls before a step whose gradients are thrown away: one clearing may take those of several."""
    return step.discarded_calls or step.discarded_count


def _is_each_time(run: Run, key: int, thrown: list[StepFact]) -> bool:
    """True if gradients are thrown away again and again; those of several calls at once, before every step.

    A bad batch may make a loop start to add up anew.
    """
    if all(_gone(step) == step.discarded_count for step in thrown):
        return sum(step.discarded_count for step in thrown) >= _OFTEN
    return _OFTEN <= len(thrown) == sum(step.backward_count > 1 for step in run.steps_by_optimizer()[key])


def _is_before_use(step: StepFact) -> bool:
    """True unless a step is given a closure and they were cleared elsewhere, as by a hook that runs after it."""
    at, place = step.backward_at, step.cleared_at
    return not step.has_closure or (at is not None and place is not None and at.scope == place.scope)


def _is_built_so(run: Run, key: int, empty: list[StepFact]) -> bool:
    """True if steps find nothing because of how the loop is built; under a test, a bad batch may be left out."""
    step, place = empty[0], empty[0].cleared_at
    others = (one for one in run.steps_by_optimizer()[key] if one.place == step.place)
    alike = [one for one in others if one.has_closure == step.has_closure]
    apart = place is not None and place.function != step.place.function and not step.has_closure
    if apart or _is_tested(run, empty[0]):
        return len(alike) == len(empty) >= _OFTEN
    return len(alike) == len(empty) or len(empty) >= _OFTEN


def _is_tested(run: Run, step: StepFact) -> bool:
    """True if gradients are cleared under a test that the backward call and the step are not under."""
    place = step.cleared_at
    tree = syntax.parse(run.source_of(place.cell)) if place is not None else None
    if place is None or place.line is None or tree is None:
        return False
    others = {one.line for one in (step.place, step.backward_at) if one is not None and one.cell == place.cell}
    return any(place.line in lines and not lines & others for lines in _tested_lines(tree)) or _is_in_line(tree, place)


def _tested_lines(tree: ast.Module) -> Iterator[_Lines]:
    """Lines of each block that runs under a test, or after an exception."""
    for node in syntax.walk(tree):
        if isinstance(node, ast.If):
            yield from (
                _lines_of(block) for block in (node.body, node.orelse) if block and block[0].lineno > node.lineno
            )
        elif isinstance(node, ast.ExceptHandler):
            yield _lines_of(node.body)


def _is_in_line(tree: ast.Module, place: Place) -> bool:
    """True if the line itself is a test with its block, or `bad and opt.zero_grad()`."""
    tests = (ast.If, ast.IfExp, ast.BoolOp)
    inside = (one for one in syntax.walk(tree) if isinstance(one, tests) and one.lineno == place.line)
    return any(
        isinstance(call, ast.Call) and called(call) == "zero_grad" for one in inside for call in syntax.walk(one)
    )


def _reads_gradients(run: Run, steps: list[StepFact]) -> bool:
    """True if a hook, or a line that may run between a backward call and its clearing, reads gradients."""
    for one in (run, *run.earlier):
        lines = [line.split("#")[0] for line in one.cell.source.splitlines()]
        known = _at_step(one, steps)
        if any(map(_HOOKS.search, lines)):
            return True
        if any(_READS.search(line) for number, line in enumerate(lines, 1) if number not in known):
            return True
    return False


def _at_step(run: Run, steps: list[StepFact]) -> _Lines:
    """Lines under a test that guards the step and not the backward call: there nothing has been cleared yet."""
    tree = syntax.parse(run.cell.source)
    if tree is None:
        return set()
    stepped, others = _Lines(), _Lines()
    for step in steps:
        for found, place in ((stepped, step.place), (others, step.backward_at), (others, step.discarded_at)):
            if place is not None and place.line is not None and place.cell == run.cell.number:
                found.add(place.line)
    bodies = (_lines_of(node.body) for node in syntax.walk(tree) if isinstance(node, ast.If))
    return _Lines().union(*(body for body in bodies if body & stepped and not body & others))


def _lines_of(body: list[ast.stmt]) -> _Lines:
    return set(range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1))


def _cleared_before_step(run: Run, key: int, steps: list[StepFact]) -> Finding:
    name, step = run.optimizer_path(key) or "optimizer", steps[0]
    place = step.cleared_at or step.place
    here = run.optimizer_name_at(key, place) or name
    which = f"step {step.index}" if len(steps) == 1 else f"at least {len(steps)} steps, from step {step.index} on,"
    if len(run.steps_by_optimizer()[key]) == len(steps) > 1:
        which = "every step that was looked at, from the first on,"
    used, fix = f"`{name}.step()`", f"{here}.step()\n{here}.zero_grad()  # after the step, or before backward()"
    if step.has_closure:
        used, fix = _in_closure(run, step, here)
    return Finding(
        message=(
            f"the gradients of `{name}` were cleared after backward() and before {used}: "
            f"{which} found nothing to follow in {step.parameter_count} parameter{'s' * (step.parameter_count != 1)}."
        ),
        subject=name,
        fix=fix,
        line=place.line,
        cell=place.cell,
        evidence=(
            *_lines(step, place),
            Evidence("steps like this, of those looked at", len(steps), "count"),
            Evidence("steps in this cell", run.trace.count("step", step.place), "count"),
        ),
    )


def _in_closure(run: Run, step: StepFact, optimizer: str) -> tuple[str, str]:
    """What uses the gradients that a closure computes, and where they are cleared instead."""
    function = step.backward_at.function.rpartition(".")[2] if step.backward_at is not None else ""
    where = "the closure" if not function or function.startswith("<") else f"{function}()"
    loss = reading.differentiated(run, step.backward_at) if step.backward_at is not None else ""
    return (
        "the step could use them, for it does so once its closure has come back",
        f"{optimizer}.zero_grad()  # in {where}, before {loss or 'loss'}.backward()",
    )


def _micro_batches(run: Run, key: int, steps: list[StepFact]) -> Finding:
    name, step = run.optimizer_path(key) or "optimizer", steps[0]
    place = step.discarded_at or step.place
    here = run.optimizer_name_at(key, place) or name
    return Finding(
        message=(
            f"`{name}.step()` is called after {step.backward_count} backward calls, but the gradients are cleared "
            f"between them: those of {_gone(step)} are thrown away."
        ),
        subject=name,
        fix=f"{here}.step()\n{here}.zero_grad()  # only after a step",
        line=place.line,
        cell=place.cell,
        evidence=(
            *_lines(step, place),
            Evidence("backward calls per step", step.backward_count, "count"),
            Evidence("of these thrown away", _gone(step), "count"),
            Evidence("steps like this, of those looked at", len(steps), "count"),
        ),
    )


def _lines(step: StepFact, cleared_at: Place) -> tuple[Evidence, ...]:
    where = (("backward at line", step.backward_at), ("cleared at line", cleared_at), ("step at line", step.place))
    return tuple(Evidence(label, at.line) for label, at in where if at is not None and at.line is not None)
