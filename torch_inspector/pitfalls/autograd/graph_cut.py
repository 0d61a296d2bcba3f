"""Between the model and the loss the history was lost."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, CutFact, ForwardFact, Place, Run, StepFact
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_WITHOUT_HISTORY = "element 0 of tensors does not require grad"
# A part that no gradient reaches in three steps of its own optimizer is cut off in each.
_STEPS = 3
_HOW = {
    "detach": "`{}` gives the values without their history",
    "data": "`{}` gives the values without their history",
    "item": "`{}` gives a plain number",
    "numpy": "`{}` leaves PyTorch, and NumPy keeps no history",
    "tensor": "`{}` makes a new tensor from the values",
    "argmax": "`{}` gives positions, which have no gradient",
    "whole": "`{}` gives whole numbers, which have no gradient",
    "compare": "`{}` gives true or false, which has no gradient",
    "no_grad": "`{}` is around it",
}
_FIXES = {
    "argmax": "compute the loss from the scores or from softmax; keep argmax for measuring",
    "compare": "compute the loss from the scores or from sigmoid; keep the threshold for measuring",
    "whole": "compute the loss from the scores; round only for measuring",
    "no_grad": "compute the training pass outside it",
    "numpy": "use the function of torch of that name",
    "tensor": "use the tensor itself, or torch.stack for several",
}


@pitfall(severity="error", yields_to=("grad-disabled-globally", "tensor-copy-constructed"))
def check(run: Run) -> Iterator[Finding]:
    """Finds losses without history although a model was called for them, and parts that no gradient reaches."""
    if run.error is not None:
        if run.error.message.startswith(_WITHOUT_HISTORY):
            yield from _failed(run, run.error.root or "loss", run.error.cuts, run.error.place)
        return
    made = next((one for one in run.trace.backwards if one.from_leaf), None)
    if made is not None and _is_cut_off(run, made):
        yield _finding(made.root or "loss", run.trace.cuts, _called(run), made.place)
    elif made is None:
        yield from _cut_parts(run)


def _called(run: Run) -> list[ForwardFact]:
    return [call for call in run.trace.forwards if call.parameter_keys]


def _failed(run: Run, root: str, cuts: tuple[CutFact, ...], place: Place) -> Iterator[Finding]:
    calls = _called(run)
    if cuts or any(call.output_requires_grad for call in calls) or any(not call.grad_enabled for call in calls):
        yield _finding(root, cuts, calls, place)


def _is_cut_off(run: Run, made: BackwardFact) -> bool:
    """True if a model was called with gradients, and none of it was ever reached."""
    reached = _reached(run)
    calls = [call for call in _called(run) if call.trainable_count and not call.parameter_keys & reached]
    idle = any(step.idle for step in run.trace.steps if step.order > made.order)
    return bool(calls) and (idle or bool(run.trace.cuts))


def _reached(run: Run) -> frozenset[int]:
    seen = (one.witness.leaf_keys for one in run.trace.backwards if one.witness is not None)
    return frozenset[int]().union(*seen)


def _finding(root: str, cuts: tuple[CutFact, ...], calls: list[ForwardFact], place: Place) -> Finding:
    cut = cuts[0] if cuts else None
    model = next((call.name or call.kind for call in calls), "the model")
    where = cut.place if cut is not None and cut.place.cell == place.cell else place
    return Finding(
        message=f"`{root}` has no history, so `backward()` reaches no parameter of `{model}`: {_how(cut, calls)}.",
        subject=root,
        fix=_FIXES.get(cut.kind if cut is not None else "", "leave the values as they are between model and loss"),
        line=where.line,
        cell=where.cell,
        evidence=(
            Evidence("backward at line", place.line or 0),
            *(Evidence("history lost", one.text) for one in cuts[:2]),
            Evidence("calls of the model", sum(call.count for call in calls), "count"),
        ),
    )


def _how(cut: CutFact | None, calls: list[ForwardFact]) -> str:
    if cut is not None:
        return _HOW.get(cut.kind, "`{}`").format(cut.text) + (f" (line {cut.place.line})" if cut.place.line else "")
    without = next((call for call in calls if not call.grad_enabled), None)
    if without is not None:
        return f"the model was called in line {without.place.line} with gradients switched off"
    return "what the model returned had a history, and it was lost on the way"


def _cut_parts(run: Run) -> Iterator[Finding]:
    """Parts that are called and stepped, that no backward call reaches, and that the text cuts off."""
    if not all(one.witness is None or one.witness.complete for one in run.trace.backwards):
        return
    reached = _reached(run)
    for key, steps in run.steps_by_optimizer().items():
        own = steps[0].parameter_keys
        if len(steps) < _STEPS or not own & reached or any(step.has_closure or step.idle for step in steps):
            continue
        for cut in run.trace.cuts:
            part = _part_of(run, cut, own - reached)
            if part:
                yield _of_part(run, key, steps, cut, part)
                return


def _part_of(run: Run, cut: CutFact, missing: frozenset[int]) -> str:
    """What was cut off: a module all of whose parameters are missing, or a layer of one."""
    for call in _called(run):
        owner = run.after.module(call.module)
        names = [one for one in owner.parameter_names if one[0] not in owner.frozen_keys] if owner is not None else []
        for source in cut.sources:
            layer = source.removeprefix("self.")
            inside = [key for key, name in names if name.startswith(f"{layer}.")] if source != layer else []
            if inside and missing.issuperset(inside):
                return f"{run.module_path(call.module)}.{layer}"
            if source == call.name and call.trainable_count and call.parameter_keys <= missing:
                return source
    return ""


def _of_part(run: Run, key: int, steps: list[StepFact], cut: CutFact, part: str) -> Finding:
    name, place = run.optimizer_path(key) or "optimizer", cut.place
    return Finding(
        message=(
            f"no gradient reaches `{part}`: {_HOW.get(cut.kind, '`{}`').format(cut.text)}. "
            f"`{name}` holds its parameters, and none of the {len(steps)} steps looked at has moved them."
        ),
        subject=part,
        fix=f"leave it out; if `{part}` is not to learn: {part}.requires_grad_(False)",
        line=place.line,
        cell=place.cell,
        severity="warning",
        evidence=(
            Evidence("history lost", cut.text),
            Evidence("steps looked at", len(steps), "count"),
            Evidence("parameters in the optimizer", steps[0].parameter_count, "count"),
        ),
    )
