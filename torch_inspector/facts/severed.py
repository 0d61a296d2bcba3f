"""Parts of a run that a cut in the graph keeps from learning: with the steps of the optimizer that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_inspector.facts.goes_into import goes_into

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_inspector.facts.graphs import BackwardFact, CutFact
    from torch_inspector.facts.optimizers import StepFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# A part that no gradient reaches in this many steps of its own optimizer is cut off in each.
_CUT_STEPS = 3
# Values that become the weights of another model.
PUT_IN = ("parameter", "written")
# Ways to leave the history behind that are meant as a rule: a judge is trained by what is cut off so.
_MEANT = ("detach", "data", "no_grad")


def cut_parts(run: Run) -> Iterator[tuple[CutFact, list[StepFact]]]:
    """Parts that are called, that an optimizer holds and steps, and that a cut keeps from every gradient.

    With each the steps of that optimizer. Only where every graph was seen whole, and the optimizer moves others, or
    has never found a gradient though a cut stands before its step.
    """
    known = (*run.trace.cuts, *run.after.severed)
    if not known:
        return
    witnesses = [one.witness for one in run.trace.backwards if one.witness is not None]
    if not all(witness.complete for witness in witnesses):
        return
    reached = run.trace.reached
    for steps in run.steps_by_optimizer().values():
        own, moves = steps[0].parameter_keys, not any(step.idle for step in steps)
        if len(steps) < _CUT_STEPS or any(step.has_closure for step in steps) or moves != bool(own & reached):
            continue
        if not moves:
            yield from ((cut, steps) for cut in _cut_before(run, steps))
            continue
        # What a branch cuts off may be let through later, and then other cuts of it are meant as well.
        switched = frozenset[int]().union(*(cut.keys for cut in known if cut.optional))
        cuts = [cut for cut in known if cut.keys and cut.keys <= own - reached - switched]
        yield from ((cut, steps) for cut in cuts[:1])


def _cut_before(run: Run, steps: list[StepFact]) -> list[CutFact]:
    """The last cut before the step of an optimizer that never found a gradient, if it is of all that it holds."""
    place, own, order = steps[0].place, steps[0].parameter_keys, steps[0].order
    if not all(step.idle and step.frozen_count == 0 for step in steps) or not has_fellow(run, steps):
        return []
    calls = [one.place for one in run.trace.backwards if one.order < order and not one.is_grad_call]
    cuts = [one for one in run.trace.cuts if calls and calls[-1] in one.backwards] or run.trace.cuts
    before = [one for one in cuts if one.place.cell == place.cell and _is_above(one.place, place)]
    last = max(before, key=lambda one: one.place.line or 0, default=None) or _in_function(run, own, calls)
    return [last] if last is not None and last.keys == own and not last.optional else []


def _in_function(run: Run, own: frozenset[int], calls: list[Place]) -> CutFact | None:
    """The cut in a function or method of another cell, if it is the only one behind the last loss."""
    behind = [
        [one for one in known if calls and calls[-1] in one.backwards and one.keys == own]
        for known in (run.trace.cuts, run.after.severed)
    ]
    cuts = behind[0] or behind[1]
    return cuts[0] if len(cuts) == 1 else None


def has_fellow(run: Run, steps: list[StepFact]) -> bool:
    """False if losses reach what neither this optimizer nor another one of the cell steps: it may be the wrong one.

    In the first turn it may step before the others, which nobody has seen yet. Leaves that each turn makes anew count
    for nothing.
    """
    looked = [step.leaf_keys for step in steps if step.leaf_keys]
    if not any(step.unreached for step in steps) or not looked:
        return True
    lasting, key = looked[0].intersection(*looked), steps[0].optimizer
    others = (one.parameter_keys for one in run.trace.steps if one.optimizer != key)
    return bool(lasting) and lasting <= frozenset[int]().union(*others)


def may_rest(cut: CutFact, steps: list[StepFact]) -> bool:
    """True if a part may be meant to rest: of an optimizer that does nothing at all, nothing is.

    Of an object whose methods are called, others of them may train what this one leaves alone. What is put into the
    weights of a model may be a beginning.
    """
    return bool(cut.path or cut.elsewhere or cut.kind in PUT_IN) and not all(step.idle for step in steps)


def cut_models(run: Run) -> Iterator[tuple[CutFact, StepFact]]:
    """Models that were called, and that a cut keeps from a loss of which nothing reaches their optimizer.

    With each the first such step. Where the loss reaches other modules, the optimizer may be the wrong one, unless one
    of these takes what was cut: a judge that is given the tokens drawn.
    """
    cuts, inside = ([cut for cut in of if cut.keys and not cut.optional] for of in (run.trace.cuts, run.after.severed))
    if not cuts and not inside:
        return
    owned = frozenset[int]().union(*(module.parameter_keys for module in run.after.modules))
    for steps in run.steps_by_optimizer().values():
        step = next((one for one in steps if one.unreached), None)
        own = [one for one in cuts if step is not None and one.keys <= step.parameter_keys]
        if step is not None and step.leaf_keys & owned:
            within = [one for one in inside if one.keys <= step.parameter_keys]
            own = [one for one in (*own, *within) if _reaches_judge(run, one, step)]
        if step is not None and own:
            yield own[0], step


def _reaches_judge(run: Run, cut: CutFact, step: StepFact) -> bool:
    """True if what was cut is given to a model that the loss before a step reaches, or is put into its weights."""
    if cut.kind in PUT_IN:
        return True
    if cut.kind in _MEANT:
        return False
    judges = {one.name for one in run.trace.forwards if one.name and one.parameter_keys & step.leaf_keys}
    return goes_into(run.source_of(cut.place.cell), cut.place.line, cut.text, judges, run.cell.source)


def ends_at_fresh(run: Run, steps: list[StepFact]) -> bool:
    """True if each step found a loss that reaches tensors made anew, and nothing that the optimizer holds."""
    if not run.odd_steps(steps[0].optimizer):
        return False
    looked = [step for step in steps if step.leaf_keys]
    reached = {step.leaf_keys for step in looked}
    if len(reached) < 2 or not all(step.unreached for step in looked):  # noqa: PLR2004
        return False
    owned = frozenset[int]().union(*(module.parameter_keys for module in run.after.modules))
    held = frozenset[int]().union(*(one.parameter_keys for one in run.after.optimizers))
    return not frozenset[int]().union(*reached) & (owned | held)


def constants(run: Run) -> Iterator[tuple[CutFact, frozenset[int]]]:
    """Gradients of inputs that a loss adds up as numbers, with the parameters that are stepped and shaped them."""
    steps = run.trace.steps if run.trace.constants else ()
    stepped = frozenset[int]().union(*(step.parameter_keys for step in steps))
    for cut in run.trace.constants:
        here = (cut.place.cell, cut.place.line)
        calls = [one for one in run.trace.backwards if one.plain_inputs and (one.place.cell, one.place.line) == here]
        reached = frozenset[int]().union(*(one.witness.leaf_keys for one in calls if one.witness is not None))
        if reached & stepped:
            yield cut, reached & stepped


def added(run: Run) -> Iterator[tuple[CutFact, str]]:
    """Terms that a loss adds up as numbers, each with the model that they come from and that this loss trains."""
    for cut in run.trace.added:
        stepped = frozenset[int]().union(*(_stepped_after(run, place) for place in cut.backwards))
        calls = [one for one in run.trace.forwards if one.name in cut.sources and one.parameter_keys & stepped]
        if calls:
            yield cut, calls[0].name


def _stepped_after(run: Run, place: Place) -> frozenset[int]:
    """Parameters that backward calls of a line reached and that were stepped before the next of another line."""
    found = frozenset[int]()
    calls = [one for one in run.trace.backwards if not one.is_grad_call]
    for index, call in enumerate(calls):
        if call.place == place and call.witness is not None:
            last = calls[index + 1].order if index + 1 < len(calls) else float("inf")
            steps = (one.parameter_keys for one in run.trace.steps if call.order < one.order < last)
            found |= frozenset[int]().union(*steps) & call.witness.leaf_keys
    return found


def part_path(run: Run, cut: CutFact) -> str:
    """What the user can type to get the part that a cut keeps from learning: `net.blocks[0]`."""
    if cut.path:
        return cut.path
    steps = (f"[{one}]" if one.isdigit() else f".{one}" for one in cut.part.split(".") if one)
    return (run.module_path(cut.module) or "model") + "".join(steps)


def _is_above(one: Place, other: Place) -> bool:
    return one.line is not None and other.line is not None and one.line <= other.line


def is_cut_off(run: Run, made: BackwardFact) -> bool:
    """True if a model was called with gradients, and none of it was ever reached."""
    able = (call for call in run.trace.forwards if call.parameter_keys and call.trainable_count)
    calls = [call for call in able if not call.parameter_keys & run.trace.reached]
    idle = any(step.idle for step in run.trace.steps if step.order > made.order)
    return idle or bool(run.trace.cuts) if calls else _is_asked_only(run, made)


def _is_asked_only(run: Run, made: BackwardFact) -> bool:
    """True if only `autograd.grad` reached what a step then found without a gradient, and the text cuts the loss."""
    backwards = (one for one in run.trace.backwards if one.witness is not None and not one.is_grad_call)
    trained = frozenset[int]().union(*(one.witness.leaf_keys for one in backwards if one.witness is not None))
    idle = (step.parameter_keys for step in run.trace.steps if step.idle and step.order > made.order)
    empty = frozenset[int]().union(*idle) - trained
    return bool(run.trace.cuts) and any(
        call.trainable_count and call.parameter_keys & empty for call in run.trace.forwards
    )
