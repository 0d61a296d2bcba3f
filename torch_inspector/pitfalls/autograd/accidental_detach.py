"""A part of the model is cut off from the loss, and its optimizer steps all the same."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import CutFact, Run, StepFact
from torch_inspector.facts.halves import kept_apart
from torch_inspector.facts.into_layers import feeds_result, stands_in_method
from torch_inspector.facts.made_fresh import is_made_fresh
from torch_inspector.facts.severed import cut_parts, part_path
from torch_inspector.facts.stairs import stair_in
from torch_inspector.facts.straight import Straight, straight_at
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_HOW = {
    "detach": "`{}` in {} gives the values without their history",
    "data": "`{}` in {} gives the values without their history",
    "no_grad": "`{}` in {} switches gradients off around it",
}


@pitfall(severity="warning", yields_to=("grad-disabled-globally", "tensor-copy-constructed", "graph-cut"))
def check(run: Run) -> Iterator[Finding]:
    """Finds parts that an optimizer holds and steps, and that `detach()`, `.data` or `no_grad` keeps from learning."""
    if run.error is not None:
        return
    for cut, steps in cut_parts(run):
        if cut.kind in _HOW:
            yield _finding(run, cut, steps)


def _finding(run: Run, cut: CutFact, steps: list[StepFact]) -> Finding:
    part, name = part_path(run, cut), run.optimizer_path(steps[0].optimizer) or "optimizer"
    return Finding(
        message=(
            f"no gradient reaches `{part}`: {_HOW[cut.kind].format(cut.text, cut.place.said_in(run.cell.number))}"
            f"{_passes(run, cut)}. "
            f"`{name}` holds {_held(len(cut.keys))}, and none of the {len(steps)} steps looked at had a gradient for "
            f"{'it' if len(cut.keys) == 1 else 'them'}."
        ),
        subject=part,
        fix=_fix(run, cut, part),
        line=cut.place.line,
        cell=cut.place.cell,
        severity="hint" if _is_doubtful(run, cut, steps[0]) else "",
        evidence=(
            Evidence("history lost", cut.text),
            Evidence("steps looked at", len(steps), "count"),
            Evidence("parameters without a gradient", len(cut.keys), "count"),
        ),
    )


def _is_doubtful(run: Run, cut: CutFact, step: StepFact) -> bool:
    """True if the part may be meant to rest: another loss trains it, or did, or will.

    Around a frozen part `no_grad` is a habit: what is left to say is that the optimizer holds it in vain. Of an object
    whose methods are called, others of them may train what this one leaves alone.
    """
    if cut.path or cut.elsewhere:
        return True
    if cut.kind == "no_grad":
        return not _is_meant(run, cut, step)
    source = run.source_of(cut.place.cell)
    return stands_in_method(source, cut.place.line) and (
        _has_learned(run, cut) or not feeds_result(source, cut.place.line, cut.text) or not is_made_fresh(run, cut)
    )


def _has_learned(run: Run, cut: CutFact) -> bool:
    """True if a backward call of an earlier cell reached the part, or it was trained or loaded there."""
    if any(cut.keys & past.trace.reached for past in run.earlier):
        return True
    modules = (one for past in run.earlier for one in past.after.modules if one.trained)
    return any(one.parameter_keys and one.parameter_keys <= cut.keys for one in modules)


def _is_meant(run: Run, cut: CutFact, step: StepFact) -> bool:
    """True if the part is to learn: it has a group of the optimizer, with its own learning rate, for itself."""
    fact = run.after.optimizer(step.optimizer)
    return fact is not None and any(group and group <= cut.keys for group in fact.groups)


_FIXES = {
    "detach": "take `detach()` out of this line",
    "data": "take `.data` out of this line",
    "no_grad": "call it outside `{}`",
}


def _fix(run: Run, cut: CutFact, part: str) -> str:
    apart = kept_apart(run.source_of(cut.place.cell), cut.place.line)
    return apart or f"{_mended(run, cut)}; if `{part}` is not to learn: {part}.requires_grad_(False)"


def _mended(run: Run, cut: CutFact) -> str:
    if cut.text.startswith("@"):
        return f"take {cut.text} away from the function"
    straight = _straight(run, cut)
    if straight is not None:
        return _trained(run, cut, straight)
    stair = stair_in(cut.text, run.source_of(cut.place.cell), cut.place.line) if cut.kind != "no_grad" else None
    if stair is not None:
        return f"{stair.passed}  # in place of {cut.text}"
    return _FIXES[cut.kind].format(cut.text)


def _straight(run: Run, cut: CutFact) -> Straight | None:
    return (
        straight_at(cut.text, run.source_of(cut.place.cell), cut.place.line) if cut.kind in ("detach", "data") else None
    )


def _passes(run: Run, cut: CutFact) -> str:
    straight = _straight(run, cut)
    return f", and the sum hands the gradient on to `{straight.slope}` alone" if straight is not None else ""


def _trained(run: Run, cut: CutFact, straight: Straight) -> str:
    """A loss of the value itself, as of a codebook: its gradient goes past it, and is to."""
    loss = f"nn.functional.mse_loss({straight.value}, {straight.slope}.detach())"
    root = next((one.root for one in run.trace.backwards if one.root.isidentifier() and not one.is_grad_call), "loss")
    if any(one.place.cell == cut.place.cell and one.place.function == straight.function for one in run.trace.backwards):
        return f"{root} = {root} + {loss}  # before backward()"
    return f"codebook_loss = {loss}  # return it too, and add it to {root}"


def _held(count: int) -> str:
    return "it" if count == 1 else f"its {count} parameters"
