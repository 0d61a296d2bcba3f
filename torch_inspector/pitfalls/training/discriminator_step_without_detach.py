"""The step of one network goes back through another, whose gradients are then thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from torch_inspector.facts import BackwardFact, ForwardFact, Run, StepFact
from torch_inspector.facts.part_names import called_path
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds backward calls for one optimizer that also fill the gradients of a network called before its own."""
    firsts = {key: steps[0] for key, steps in run.steps_by_optimizer().items()}
    together = _reached_together(run, firsts) if len(firsts) > 1 else frozenset()
    for one, another in sorted(together):
        for step, other in ((firsts[one], firsts[another]), (firsts[another], firsts[one])):
            if step.order < other.order and not step.parameter_keys & other.parameter_keys:
                call = _wasted(run, step, other)
                if call is not None:
                    yield _finding(run, step, other, call)


def _reached_together(run: Run, firsts: dict[int, StepFact]) -> frozenset[tuple[int, int]]:
    """Pairs of optimizers of which one backward call reaches parameters of both."""
    owners: dict[int, list[int]] = {}
    for key, step in firsts.items():
        for parameter in step.parameter_keys:
            owners.setdefault(parameter, []).append(key)
    reached = ({key for leaf in leaves for key in owners.get(leaf, ())} for leaves in run.trace.leaf_sets)
    return frozenset(pair for keys in reached for pair in combinations(sorted(keys), 2))


def _wasted(run: Run, step: StepFact, other: StepFact) -> BackwardFact | None:
    """The backward call before a step that reaches the other optimizer's parameters for nothing, if there is one."""
    reaching = [call for call in run.trace.backwards if _reaches(call, other) and call.order < other.order]
    early = [call for call in reaching if call.order < step.order and _reaches(call, step)]
    late = [call for call in reaching if call.order > step.order]
    if len(early) != 1 or not late or not _is_dropped(run, other, early[0], late):
        return None
    return early[0] if _comes_first(run, other, step, early[0].order) else None


def _is_dropped(run: Run, other: StepFact, early: BackwardFact, late: list[BackwardFact]) -> bool:
    """True if the gradients are cleared before the next call, or before the one of another line: critics step often."""
    if _is_cleared(run, other, early.order, late[0].order):
        return True
    own = next((call for call in late if call.place != early.place), None)
    same = [call.order for call in late if own is not None and call.place == early.place and call.order < own.order]
    return own is not None and bool(same) and _is_cleared(run, other, same[-1], own.order)


def _reaches(call: BackwardFact, step: StepFact) -> bool:
    return call.witness is not None and not call.is_grad_call and bool(call.witness.leaf_keys & step.parameter_keys)


def _is_cleared(run: Run, step: StepFact, after: int, before: int) -> bool:
    """True if the optimizer's gradients are cleared between two moments."""
    owners = {step.optimizer, *(call.module for call in _calls(run, step))}
    return any(clear.owner in owners and after < clear.order < before for clear in run.trace.clears)


def _comes_first(run: Run, maker: StepFact, judge: StepFact, before: int) -> bool:
    """True if the one network runs before the other: then its result can be detached. The other way round it cannot."""
    made = [call.order for call in _calls(run, maker) if call.order < before]
    judged = [call.order for call in _calls(run, judge) if call.order < before]
    return bool(made) and bool(judged) and min(made) < max(judged)


def _calls(run: Run, step: StepFact) -> list[ForwardFact]:
    """Calls of modules of which this optimizer holds every parameter that learns."""
    calls = (call for call in run.trace.forwards if call.parameter_keys)
    return [call for call in calls if call.parameter_keys <= step.parameter_keys]


def _finding(run: Run, step: StepFact, other: StepFact, call: BackwardFact) -> Finding:
    name, theirs = run.optimizer_path(step.optimizer) or "optimizer", run.optimizer_path(other.optimizer) or "optimizer"
    calls = _calls(run, other)
    maker = called_path(run, calls) if calls else "the other network"
    leaves = call.leaf_keys
    wasted = len(leaves & other.parameter_keys)
    return Finding(
        message=(
            f"the backward call for `{name}.step()` also goes back through `{maker}`: {wasted} of the "
            f"{len(leaves)} gradients that it fills belong to `{theirs}` and are cleared unused."
        ),
        subject=maker,
        fix=f"detach() the result of {maker} where it is used for {name}",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("gradients filled", len(leaves), "count"),
            Evidence("of these thrown away", wasted, "count"),
            Evidence("backward calls from this line", run.trace.count("backward", call.place), "count"),
        ),
    )
