"""Gradients of earlier steps are still in `.grad` at the next step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, StepFact, reading
from torch_inspector.facts.steps_by_hand import HandSteps, changes_gradients, steps_by_hand
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# One step on top of an old gradient can be meant (a warm start); two in a row are a loop without clearing.
_IN_A_ROW = 2
# Steps whose losses are asked which parameters they reach.
_COMPARED = 32
# `optimizer.zero_grad` alone on its line.
_NAMED = re.compile(r"\s*[\w.\[\]]+\.zero_grad\s*;?\s*(#.*)?")


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers which step twice in a row on gradients that were never cleared."""
    cleared = _cleared(run)
    for key, steps in run.steps_by_optimizer().items():
        if not any(step.kept_gradients for step in run.odd_steps(key)):
            yield from _in_part(run, key, steps, cleared)
            continue
        done = _done(run, steps)
        earlier = [s for past in run.earlier for s in _done(past, past.steps_by_optimizer().get(key, []))]
        row = _last_row(earlier, done)
        if len(row) >= _IN_A_ROW:
            yield _finding(run, key, row, done)
    yield from _by_hand(run)


def _done(run: Run, steps: list[StepFact]) -> list[StepFact]:
    """The steps without a last one that failed: it was looked at as it began, and not counted."""
    place = steps[-1].place if steps else None
    looked = [step for step in run.trace.steps if step.place == place]
    counts = [one.count for one in run.trace.counts if one.kind == "step" and one.place == place]
    failed = bool(counts) and len(looked) > sum(counts) and looked[-1] is steps[-1]
    return steps[:-1] if failed else steps


def _cleared(run: Run) -> frozenset[int]:
    """Parameters of all that `zero_grad()` was called on; none if one of these is not known."""
    if not run.trace.clears:
        return frozenset()
    owners = {one.key: one.parameter_keys for one in run.after.modules}
    owners.update((one.key, one.parameter_keys) for one in run.after.optimizers)
    cleared = [owners.get(clear.owner) for clear in run.trace.clears]
    return frozenset[int]() if None in cleared else frozenset[int]().union(*(keys for keys in cleared if keys))


def _in_part(run: Run, key: int, steps: list[StepFact], cleared: frozenset[int]) -> Iterator[Finding]:
    """Loops that clear a module, and not the others that the optimizer steps: the gradients of those pile up."""
    if len(steps) <= _IN_A_ROW or not cleared & steps[0].parameter_keys:
        return
    some = steps[:_COMPARED]
    fed = [step.leaf_keys & step.parameter_keys for step in some if step.leaf_keys and not step.has_closure]
    left = frozenset.intersection(*fed) - cleared if len(fed) >= _IN_A_ROW else frozenset[int]()
    if left and not any(map(changes_gradients, (run, *run.earlier))):
        yield _of_a_part(run, key, steps[0], left)


def _of_a_part(run: Run, key: int, step: StepFact, left: frozenset[int]) -> Finding:
    name, clear = run.optimizer_path(key) or "optimizer", run.trace.clears[0]
    owner = run.owner_path(left)
    whose = f" of `{owner}`" if owner else ""
    return Finding(
        message=(
            f"`zero_grad()` clears a part of what `{name}` steps: {len(left)} of its {step.parameter_count} parameters"
            f"{whose} are left out, and their gradients pile up from step to step."
        ),
        subject=name,
        fix=f"{run.optimizer_name_at(key, clear.place) or name}.zero_grad()  # clears all that it steps",
        line=clear.place.line,
        cell=clear.place.cell,
        evidence=(
            Evidence("steps in this cell", run.trace.count("step", step.place), "count"),
            Evidence("parameters", step.parameter_count, "count"),
            Evidence("of these never cleared", len(left), "count"),
        ),
    )


def _by_hand(run: Run) -> Iterator[Finding]:
    """Loops that step without an optimizer, and leave the gradients where they are."""
    calls = run.trace.carried
    counts = Counter(one.place for one in calls)
    place = next((one for one, count in counts.items() if count >= _IN_A_ROW), None)
    found = steps_by_hand(run) if place is not None else None
    if found is not None:
        yield _of_a_loop(run, [one for one in calls if one.place == place], found)


def _of_a_loop(run: Run, calls: list[BackwardFact], steps: HandSteps) -> Finding:
    cell, line, text, (owner, *others) = steps
    also = f" (and so with {', '.join(f'`{one}`' for one in others)})" if others else ""
    count = run.trace.count("backward", calls[0].place)
    return Finding(
        message=(
            f"`{text}` steps along `{owner}.grad`, and nothing clears it{also}: each of {count} backward calls adds to "
            "the gradients of all before."
        ),
        subject=owner,
        fix=steps.cleared(run),
        line=line,
        cell=cell,
        evidence=(
            Evidence("backward calls from the line", count, "count"),
            Evidence("backward calls that found an old gradient, of those looked at", len(calls), "count"),
            *((Evidence("backward at line", calls[0].place.line),) if calls[0].place.line is not None else ()),
        ),
    )


def _last_row(earlier: list[StepFact], steps: list[StepFact]) -> list[StepFact]:
    """The longest stretch of steps on kept gradients that ends in this cell."""
    best: list[StepFact] = []
    row: list[StepFact] = []
    for step in earlier:
        row = [*row, step] if step.kept_gradients else []
    for step in steps:
        row = [*row, step] if step.kept_gradients else []
        best = row if len(row) >= len(best) and row else best
    return best


def _is_cleared_at_times(run: Run, key: int, step: StepFact) -> bool:
    """True if the cell clears these gradients somewhere, once in an epoch as a rule."""
    owners = {module.key for module in run.after.modules if module.parameter_keys & step.parameter_keys} | {key}
    return any(clear.owner in owners for clear in run.trace.clears)


def _uncalled(run: Run) -> str:
    """A word on `optimizer.zero_grad` as a statement of its own, without a call."""
    found = next((n for n, line in enumerate(run.cell.source.splitlines(), 1) if _NAMED.fullmatch(line)), None)
    return f" Line {found} names `zero_grad` without calling it: add `()`." if found is not None else ""


def _clearing(run: Run, key: int, step: StepFact, name: str) -> str:
    """The call that is missing, and where: a step that is given a closure differentiates several times in it."""
    made = [one.place for one in run.trace.backwards if not one.is_grad_call and one.order < step.order]
    if not step.has_closure or not made:
        return f"{run.optimizer_name_at(key, step.place) or name}.zero_grad()  # once per step, before backward()"
    function = reading.function_at(run, made[-1])
    where = f"in {function.rpartition('.')[2]}()" if function else "in the closure"
    line = f", line {made[-1].line}" if made[-1].line is not None else ""
    own = step.name if reading.seen_from(run, step.name, step.place, made[-1]) else run.optimizer_path(key)
    return f"{own or name}.zero_grad()  # {where}, before its backward(){line}"


def _finding(run: Run, key: int, row: list[StepFact], steps: list[StepFact]) -> Finding:
    name = run.optimizer_path(key) or "optimizer"
    place = row[-1].place
    total = run.trace.count("step", place)
    every = all(step.kept_gradients for step in steps[1:]) and len(steps) > 1
    cleared = _is_cleared_at_times(run, key, row[-1])
    at_least = "at least " if total > len(steps) else ""
    how_often = f"all {total} steps" if every and not cleared else f"{at_least}{len(row)} steps in a row"
    since = "since they were last cleared" if cleared else "so far"
    return Finding(
        message=(
            f"`{name}.step()` ran without the gradients being cleared in between ({how_often}): "
            f"each step followed the sum of all gradients {since}.{_uncalled(run)}"
        ),
        subject=name,
        fix=_clearing(run, key, row[-1], name),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("optimizer", f"{name} ({row[-1].optimizer_kind})"),
            Evidence("steps in this cell", total, "count"),
            Evidence("steps on kept gradients, of those looked at", len(row), "count"),
            Evidence("parameters", row[-1].parameter_count, "count"),
        ),
    )
