"""Steps were taken, and the weights are what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import (
    BackwardFact,
    ClearFact,
    MentionFact,
    OptimizerFact,
    Run,
    StepFact,
    reading,
    rounding,
)
from torch_inspector.facts.clipped_away import clipped_away
from torch_inspector.facts.one_output import softmaxes_of_one
from torch_inspector.facts.zero_rates import schedule_of, set_to_zero, zeroing
from torch_inspector.facts.zeroed_by_hand import zeroed_by_hand
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# A schedule may begin at 0, and a batch may give no gradient; three in a row, and all of the cell, are no accident.
_STEPS = 3
# Relative to weights of about 0.01 a smaller rate is below the precision of float32, unless gradients are huge.
_TINY = 1e-9
# Somebody may use the gradients, measure how long they take, or step by other means.
_READS = re.compile(r"\bregister_\w*hook\(|\.grad\b(?!\s*=\s*None\b|\.zero_\()")
_MEASURES = re.compile(r"\btime\b|timeit|perf_counter|profile|synchronize|max_memory|benchmark", re.IGNORECASE)
_STEPS_HERE = re.compile(r"\b(?!\w*(?:sched|env|warm))\w+\.step\w*\(|_step\(", re.IGNORECASE)
_ZERO = re.compile(r"\blr\s*=\s*0(\.0*)?\s*[,)]")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers of which no step that was looked at has moved anything, with the reason."""
    for key, steps in run.steps_by_optimizer().items():
        if not (steps[-1].idle or steps[-1].rate_is_zero or steps[-1].unmoved or steps[-1].has_closure):
            continue
        steps = [step for step in steps if step.idle or not step.has_closure]  # noqa: PLW2901
        why = _why(run, key, steps) if len(steps) >= _STEPS else ""
        if why:
            yield _finding(run, key, steps, why)
    if run.trace.count("backward") >= _STEPS and run.error is None:
        yield from _never_stepped(run)


def _never_stepped(run: Run) -> Iterator[Finding]:
    """Losses that were differentiated again and again for an optimizer that has not stepped at all."""
    if mention := _uncalled(run):
        one, place_cell = mention
        yield _without_steps(
            run, one.name.rpartition(".")[0], one.line, place_cell, f"`{one.name}` without parentheses calls nothing"
        )
        return
    for clear in run.trace.clears:
        last = _loss_for(run, clear)
        if (
            last is not None
            and run.trace.count("zero_grad", clear.place) >= _STEPS
            and not _is_for_something_else(run, last)
        ):
            name = run.optimizer_path(clear.owner)
            yield _without_steps(run, name, last.place.line, last.place.cell, f"`{name}.step()` was never called")


def _why(run: Run, key: int, steps: list[StepFact]) -> str:
    optimizer = run.after.optimizer(key)
    rate = optimizer.learning_rate if optimizer is not None else None
    if all(step.idle for step in steps):
        return "backward" if _forgets_backward(run, steps) else ""
    if all(step.rate_is_zero for step in steps) or _is_set_back(run, key, steps):
        return "rate" if rate in (0, None) and not _is_written(run) else ""
    if not all(step.unmoved for step in steps) or run.underflowed() or _is_explained(run, steps):
        return ""
    if all(step.gradients_are_zero for step in steps) and _one_class(run):
        return "one class"
    if all(step.gradients_are_zero for step in steps):
        return "" if _is_learned(run, steps[0]) else "zeros"
    tiny = rate is not None and 0 < rate <= _TINY
    return "coarse" if rate and rounding.is_sure(run, key, steps) else "tiny" if tiny else ""


def _is_set_back(run: Run, key: int, steps: list[StepFact]) -> bool:
    """True if a rate that was set by hand held for one step, and the schedule made it 0 again."""
    first, *others = steps
    zeros = len(others) >= _STEPS and not first.rate_is_zero and all(step.rate_is_zero for step in others)
    return zeros and zeroing(run, key) is not None


def _is_explained(run: Run, steps: list[StepFact]) -> bool:
    """True if another pitfall tells why every gradient is 0, or they were made 0 between backward() and the step."""
    if all(step.cleared_at is not None for step in steps):
        return True
    if _is_at_zero(run) and (run.expressions("namesake") or _is_in_half(run, steps)):
        return True  # a model that is compared with itself; float16, in which small losses are 0
    told = [
        one
        for one, _, _ in run.losses_with("softmax-of-one")
        if "scores" not in one.nodes or (one.shapes and softmaxes_of_one(run, one.shapes[0]))
    ]
    return bool(run.losses_with("flat-function") or told) and not _one_class(run)


def _is_in_half(run: Run, steps: list[StepFact]) -> bool:
    """True if a loss in float16 that nobody scales trains what is stepped, as `half-without-scaler` says."""
    trained = (b for b in run.trace.halves if b.witness is not None and b.leaf_keys & steps[0].parameter_keys)
    return not run.trace.scales() and any(b.witness.float16_count for b in trained if b.witness is not None)


def _one_class(run: Run) -> str:
    """Shape of what a cross-entropy was given that has one class only; empty if there is none."""
    given = [pattern for pattern, _, _ in run.losses_with("softmax-of-one") if "cross_entropy" in pattern.nodes]
    return str(given[0].shapes[0]) if given and given[0].shapes else ""


def _is_at_zero(run: Run) -> bool:
    """True if every loss that was looked at is 0 itself, as that of a margin that is kept: then it may be meant."""
    return bool(run.trace.losses) and all(loss.value == 0 for loss in run.trace.losses)


def _is_learned(run: Run, step: StepFact) -> bool:
    """True if an earlier cell has moved these weights, by whatever optimizer, and every loss is 0 by now."""
    past = (one for earlier in run.earlier for steps in earlier.steps_by_optimizer().values() for one in steps)
    moved = (one for one in past if not (one.idle or one.rate_is_zero or one.unmoved))
    return _is_at_zero(run) and any(one.parameter_keys & step.parameter_keys for one in moved)


def _is_written(run: Run) -> bool:
    """True if a cell says in so many words that the rate is 0: nobody writes that by accident."""
    return any(_ZERO.search(source) for source in (run.cell.source, *(past.cell.source for past in run.earlier)))


def _forgets_backward(run: Run, steps: list[StepFact]) -> bool:
    """True if the model was called again and again, and nothing was differentiated: no mere drawing of a schedule."""
    if run.trace.count("backward") or run.trace.count("grad"):
        return False
    calls = [call for call in run.trace.forwards if call.parameter_keys & steps[0].parameter_keys]
    return sum(call.count for call in calls if call.output_requires_grad and call.grad_enabled) >= _STEPS


def _finding(run: Run, key: int, steps: list[StepFact], why: str) -> Finding:
    name, step = run.optimizer_path(key) or "optimizer", steps[0]
    total = run.trace.count("step", step.place)
    moved = 0 if all(one.idle or one.rate_is_zero or one.unmoved for one in steps) else 1
    by_hand = zeroed_by_hand(run, step) if why == "zeros" else None
    reason, fix = _words(run, key, name, why)
    clipped = clipped_away(run, step) if why == "zeros" else None
    if clipped is not None:
        reason, fix = clipped
    elif by_hand is not None:
        reason = f"`{by_hand.text}` (line {by_hand.line}) sets the gradients to 0 before they are followed"
        # Before the first `backward()` there is no gradient yet.
        fix = f"{by_hand.whole or f'{name}.zero_grad()'}  # after {name}.step(), in place of line {by_hand.line}"
    if step.has_closure:
        reason, fix = _of_closure(run, step)
    counted = f"{total - moved} {'further ' * moved}steps of `{name}`"
    if why == "coarse" and len(steps) < total:  # of the others it is not sure
        counted = f"the {len(steps)} steps of `{name}` that were looked at, of {total},"
    return Finding(
        message=f"{counted} have changed no weight: {reason}.",
        subject=name,
        fix=fix,
        line=step.place.line,
        cell=step.place.cell,
        severity="error" if why == "backward" else "hint" if why == "zeros" and _is_at_zero(run) else "",
        evidence=(
            Evidence("steps in this cell", total, "count"),
            Evidence("steps that changed nothing, of those looked at", len(steps) - moved, "count"),
            Evidence("parameters", step.parameter_count, "count"),
        ),
    )


def _of_closure(run: Run, step: StepFact) -> tuple[str, str]:
    closure, loss = reading.returned_by_closure(run, step.place)
    which = f"`{closure}()`" if closure else "the closure"
    return (
        f"{which} never calls `backward()`, so there is no gradient",
        f"{loss or 'loss'}.backward()  # in {which.strip('`')}, before it returns",
    )


def _uncalled(run: Run) -> tuple[MentionFact, int | None] | None:
    """`optimizer.step` as a statement, at the top of the cell or in the function that differentiates; its cell."""
    for past in (run, *run.earlier):
        for one in past.trace.mentions:
            owner, _, method = one.name.rpartition(".")
            at = [b.place for b in run.trace.backwards if b.place.cell == past.cell.number]
            here = any(place.function.rpartition(".")[2] == one.function for place in at)
            if method == "step" and here and not one.shown and _is_idle(run, owner, inside=bool(one.function)):
                return one, past.cell.number
    return None


def _is_idle(run: Run, name: str, *, inside: bool) -> bool:
    """True for an optimizer of this name that made no step; inside a function, if no optimizer made one."""
    key = next((one.key for one in run.after.optimizers if one.path == name), None)
    if key is None:
        return inside and "opt" in name.lower() and not run.trace.count("step")
    return key not in run.steps_by_optimizer()


def _loss_for(run: Run, clear: ClearFact) -> BackwardFact | None:
    """The last backward call that reaches parameters of an optimizer which has never stepped."""
    optimizer = run.after.optimizer(clear.owner)
    if optimizer is None or not optimizer.path or any(clear.owner in one.steps_by_optimizer() for one in run.earlier):
        return None
    if clear.owner in run.steps_by_optimizer():
        return None
    if any(step.parameter_keys & optimizer.parameter_keys for step in run.trace.steps):
        return None
    reached = (b for b in run.trace.backwards if b.witness and b.witness.leaf_keys & optimizer.parameter_keys)
    return next((one for one in reached if not one.is_grad_call), None)


def _is_for_something_else(run: Run, last: BackwardFact) -> bool:
    """True if gradients are read or measured, or the text has steps that did not happen this time."""
    sources = (run.cell.source, *(past.cell.source for past in run.earlier))
    lines = [line.split("#")[0] for source in sources for line in source.splitlines()]
    there = "\n".join(line.split("#")[0] for line in run.source_of(last.place.cell).splitlines())
    measures = any(_MEASURES.search(source) for source in (run.cell.source, there))
    return any(map(_READS.search, lines)) or measures or _STEPS_HERE.search(there + run.cell.code) is not None


def _without_steps(run: Run, name: str, line: int | None, cell: int | None, why: str) -> Finding:
    total = run.trace.count("backward")
    return Finding(
        message=f"{total} calls of `backward()` have changed no weight: {why}.",
        subject=name,
        fix=f"{name}.step()  # after backward()",
        line=line,
        cell=cell,
        severity="error",
        evidence=(
            Evidence("backward calls in this cell", total, "count"),
            Evidence("steps of the optimizer", 0, "count"),
        ),
    )


def _words(run: Run, key: int, name: str, why: str) -> tuple[str, str]:
    optimizer = run.after.optimizer(key)
    rate = optimizer.learning_rate if optimizer is not None and optimizer.learning_rate is not None else 0.0
    return {
        "backward": (
            "`backward()` was never called, so there is no gradient",
            f"loss.backward()  # before {name}.step()",
        ),
        "rate": set_to_zero(run, key) or _of_rate(run, name, optimizer),
        "zeros": _of_zeros(run),
        "one class": (
            f"CrossEntropyLoss of scores of shape {_one_class(run)} has one class, and is 0 whatever the model gives",
            "# as many outputs as classes; or, for one output, nn.BCEWithLogitsLoss() and float targets",
        ),
        "coarse": rounding.words(run, key, rate),
        "tiny": (
            f"its learning rate of {rate:g} is below what float32 can add",
            f"{name}.param_groups[0]['lr'] = 1e-3",
        ),
    }[why]


def _of_zeros(run: Run) -> tuple[str, str]:
    if _is_at_zero(run):
        return (
            "the loss is 0 each time it was read, and so is every gradient",
            "look for a factor 0 in the loss, or for one thing in it that is compared with itself; else it is learned",
        )
    return (
        "every gradient is exactly 0",
        "look for a factor 0 in the loss, saturated activations, or units that are never active",
    )


def _of_rate(run: Run, name: str, optimizer: OptimizerFact | None) -> tuple[str, str]:
    """Of a rate of 0: a schedule that begins there and was never stepped, or what the rate was before."""
    begun = optimizer.initial_rate if optimizer is not None else None
    stepped = any(one.trace.count("scheduler") for one in (run, *run.earlier))
    schedule = schedule_of(run, name) if begun and not stepped else ""
    if schedule:
        begins = f"its learning rate `lr` is 0, where the schedule `{schedule}` begins"
        return (
            f"{begins}, and `{schedule}.step()` was never called",
            f"{schedule}.step()  # after each {name}.step(), or once per epoch, as it is counted",
        )
    return (
        "its learning rate `lr` is 0",
        f"{name}.param_groups[0]['lr'] = {begun or 1e-3:g}  # and look at what sets it to 0",
    )
