"""Between the model and the loss the history was lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, CheckpointFact, CutFact, ErrorFact, ForwardFact, Place, Run, StepFact
from torch_inspector.facts.chains import chain
from torch_inspector.facts.old_checkpoints import cut_whole, in_new_variant, said
from torch_inspector.facts.part_names import called_path
from torch_inspector.facts.severed import (
    added,
    constants,
    cut_models,
    cut_parts,
    ends_at_fresh,
    is_cut_off,
    may_rest,
    part_path,
)
from torch_inspector.facts.straight import straightened
from torch_inspector.facts.taught import taught, taught_path
from torch_inspector.facts.uncut import DETACHED_LEAF, also_off, given_to, handed_on, how, telling, term_kept, uncut
from torch_inspector.facts.wanting import outside, wanting
from torch_inspector.findings import Evidence, Finding, all_of
from torch_inspector.pitfall import pitfall

_WITHOUT_HISTORY = "element 0 of tensors does not require grad"
# Ways to cut a part off that `accidental-detach` tells.
_SAID_ELSEWHERE = ("detach", "data", "no_grad")
# How a gradient gets past what cannot be left out, a choice of the nearest code as a rule.
_PASSED = dict.fromkeys(("argmax", "whole", "compare"), "let the slope past it: soft + (hard - soft).detach()")
# Hooks hand a gradient past such a function, and who writes gradients needs none.
_OWN_SLOPE = re.compile(r"\bregister_\w*hook\(|\.grad(\.data)?\s*=(?!=)|\.grad(\.data)?\.(copy_|add_|set_)\(")
_MAKES_A_LEAF = re.compile(r"requires_grad\s*=\s*True|requires_grad_\(\s*(True)?\s*\)|\bVariable\(")


@pitfall(severity="error", yields_to=("grad-disabled-globally", "tensor-copy-constructed"))
def check(run: Run) -> Iterator[Finding]:
    """Finds losses without history although a model was called for them, and parts that no gradient reaches."""
    if run.error is not None:
        if run.error.message.startswith(_WITHOUT_HISTORY):
            error = run.error
            yield from _of_gradient(error) or _failed(run, error.root or "loss", error.cuts, error.place)
        return
    made = run.trace.from_leaf
    if made is not None and is_cut_off(run, made):
        yield _finding(run, made.root or "loss", run.trace.cuts, _called(run), made.place)
    elif made is None:
        yield from _ends_at_copies(run) or _ends_anew(run) or _cut_parts(run)
        yield from _flat(run)
        yield from _constant(run)
        yield from _added(run)


def _called(run: Run) -> list[ForwardFact]:
    return [call for call in run.trace.forwards if call.parameter_keys]


def _of_gradient(error: ErrorFact) -> list[Finding]:
    """A derivative of a derivative, of which the first was taken as plain numbers."""
    if not error.constants:
        return []
    cut, refused = error.constants[0], error.root or (error.refusal.root if error.refusal is not None else "")
    message = (
        f"{f'`{refused}` has no history' if refused else 'there is no history to go back through'}: the gradient that "
        f"`torch.autograd.grad` gave ({cut.place.said_in(error.place.cell)}) was taken without `create_graph=True`."
    )
    return [
        Finding(
            message=message,
            subject=refused or "gradient",
            fix=f"{cut.text}  # keeps the history of the gradient",
            line=cut.place.line,
            cell=cut.place.cell,
            evidence=(Evidence("create_graph", "False"), Evidence("differentiated at line", error.place.line or 0)),
        )
    ]


def _failed(run: Run, root: str, cuts: tuple[CutFact, ...], place: Place) -> Iterator[Finding]:
    calls, blocks = _called(run), cut_whole(run)
    if blocks:
        yield _of_blocks(run, root, blocks, place)
    elif cuts or any(call.output_requires_grad for call in calls) or any(not call.grad_enabled for call in calls):
        yield _finding(run, root, cuts, calls, place)


def _of_blocks(run: Run, root: str, blocks: list[CheckpointFact], place: Place) -> Finding:
    at, model = blocks[0].place, taught_path(run, _called(run), ())
    return Finding(
        message=(
            f"`{root}` has no history, so `backward()` reaches no parameter of `{model}`: the "
            f"old variant of checkpoint() ({at.said_in(place.cell)}) was given no tensor that wants a gradient, and "
            f"then what {said(run, blocks)} gave has no history."
        ),
        subject=root,
        fix=in_new_variant(run, at),
        line=at.line,
        cell=at.cell,
        evidence=(Evidence("backward at line", place.line or 0), Evidence("blocks", len(blocks), "count")),
    )


def _finding(run: Run, root: str, cuts: tuple[CutFact, ...], calls: list[ForwardFact], place: Place) -> Finding:
    both = chain(cuts)
    cut = both.number if both is not None else telling(cuts)
    learners = taught(run, calls, cuts)
    few = wanting(run, learners)
    model = f"`{called_path(run, learners)}`{few.said()}"
    where = cut.place if cut is not None and cut.place.cell == place.cell else place
    source = run.source_of(cuts[0].place.cell) if cuts else ""
    cause = both.said(source, place.cell) if both is not None else _how(run, cut, calls, place.cell, root)
    fix = both.mended(source) if both is not None else uncut(run, cut, place.cell, root, cuts)
    fix = outside(run, cut, few.labels) or fix
    own = [] if both or any(call.grad_enabled for call in learners) else [call.name for call in learners]
    off, fix = also_off(run, cut, tuple(one for one in cuts if {*own} & {*one.sources}), place.cell, fix)
    return Finding(
        message=f"`{root}` has no history, so `backward()` reaches no parameter of {model}: {cause}{off}.",
        subject=root,
        fix=fix,
        line=where.line,
        cell=where.cell,
        evidence=(
            Evidence("backward at line", place.line or 0),
            *(Evidence("history lost", one.text) for one in cuts[:2]),
            Evidence("calls of the model", sum(call.count for call in calls), "count"),
        ),
    )


def _how(run: Run, cut: CutFact | None, calls: list[ForwardFact], cell: int | None, root: str) -> str:
    if cut is not None:
        return how(cut) + (f" ({given_to(run, cut, root)}{cut.place.said_in(cell)})" if cut.place.line else "")
    without = next((call for call in calls if not call.grad_enabled), None)
    if without is not None:
        return f"the model was called in {without.place.said_in(cell)} with gradients switched off"
    return "what the model returned had a history, and it was lost on the way"


def _ends_at_copies(run: Run) -> list[Finding]:
    """Losses whose history ends at a tensor made of the numbers of a model, which the optimizer steps for nothing."""
    for cut, step in cut_models(run):
        call = next((one for one in run.trace.backwards if one.witness is not None and one.order < step.order), None)
        if call is not None:
            return [_of_whole(run, call, step, cut)]
    return []


def _ends_anew(run: Run) -> list[Finding]:
    """Losses whose history begins at a tensor that is made anew for each step, by a function as a rule."""
    for key, steps in run.steps_by_optimizer().items():
        if not ends_at_fresh(run, steps):
            continue
        name, step = run.optimizer_path(key) or "optimizer", steps[-1]
        held = frozenset[int]().union(*(one.parameter_keys for one in run.after.optimizers))
        fresh = [one for one in run.after.tensors if one.is_leaf and one.requires_grad and one.key not in held]
        leaves = [one.path for one in fresh if one.key in step.leaf_keys]
        tensor = leaves[0] if len(leaves) == 1 else ""
        root = next((one.root for one in run.trace.backwards if one.root and not one.is_grad_call), "")
        found = _only_line(run, _MAKES_A_LEAF) or _only_line(run, DETACHED_LEAF)
        line, cell = found or (step.place.line, step.place.cell)
        message = (
            f"{_named(root)} reaches nothing that `{name}` holds: its history begins at "
            f"{f'`{tensor}`, ' if tensor else ''}a tensor that each step makes anew from values, with `requires_grad`."
        )
        fix = handed_on(run, line, cell) if found else "hand on the tensors themselves, without requires_grad"
        evidence = (Evidence("steps that found nothing", len(steps), "count"),)
        return [
            Finding(message=message, subject=tensor or root or "loss", fix=fix, line=line, cell=cell, evidence=evidence)
        ]
    return []


def _of_whole(run: Run, call: BackwardFact, step: StepFact, cut: CutFact) -> Finding:
    name, model, root = run.optimizer_path(step.optimizer) or "optimizer", part_path(run, cut), call.root
    both = chain((cut, *(one for one in run.trace.cuts if one != cut)))
    first, source = both.number if both is not None else cut, run.source_of(cut.place.cell)
    cause = both.said(source, cut.place.cell) if both is not None else how(cut)
    return Finding(
        message=(
            f"`backward()` on {_named(root)} reaches no parameter of `{model}`: {cause}. "
            f"`{name}.step()` found nothing to follow."
        ),
        subject=root or "loss",
        fix=both.mended(source) if both is not None else uncut(run, cut, call.place.cell, cuts=run.trace.cuts),
        line=first.place.line,
        cell=first.place.cell,
        evidence=(
            Evidence("history lost", cut.text),
            Evidence("backward at line", call.place.line or 0),
            Evidence("parameters in the optimizer", step.parameter_count, "count"),
        ),
    )


def _flat(run: Run) -> Iterator[Finding]:
    """Parameters that an optimizer steps, and that only `round` or its kin lead to: they get zeros."""
    losses = list(run.losses_with("flat-function"))
    if not losses or any(_OWN_SLOPE.search(past.cell.source) for past in (run, *run.earlier)):
        return
    elsewhere = _reached_without(run, "flat-function")
    for pattern, root, place in losses:
        keys = pattern.keys - elsewhere
        step = next((one for one in run.trace.steps if one.parameter_keys & keys), None)
        if step is None:
            continue
        functions, lost = " and ".join(f"`{one}`" for one in pattern.nodes), keys & step.parameter_keys
        line, cell = _only_line(run, re.compile(rf"\b({'|'.join(pattern.nodes)})_?\(")) or (place.line, place.cell)
        verbs = "gets zeros as gradients and never moves" if len(lost) == 1 else "get zeros as gradients and never move"
        owner, name = run.owner_path(lost), run.optimizer_path(step.optimizer) or "optimizer"
        yield Finding(
            message=(
                f"the slope of {functions} is 0 everywhere: {_part(len(lost), step.parameter_count)} of `{name}`"
                f"{f', those of `{owner}`,' if owner else ''} {verbs}."
            ),
            subject=root or owner,
            fix=straightened(run.source_of(cell), line, pattern.nodes[0]),
            line=line,
            cell=cell,
            evidence=(
                Evidence("parameters without slope", len(lost), "count"),
                Evidence("parameters in the optimizer", step.parameter_count, "count"),
            ),
        )


def _part(lost: int, count: int) -> str:
    return all_of(count, "parameter") if lost == count else f"{lost} of the {count} parameters"


def _reached_without(run: Run, name: str) -> frozenset[int]:
    """Parameters that a loss reaches in whose graph there is no such pattern, or no word of them."""
    found = set[int]()
    for witness in (one.witness for one in run.trace.backwards if one.witness is not None):
        found |= witness.leaf_keys.difference(*(one.keys for one in witness.patterns if one.name == name))
    return frozenset(found)


def _only_line(run: Run, wanted: re.Pattern[str]) -> tuple[int, int | None] | None:
    """Line and cell of the only line of this cell that has such text, or else of those before."""
    own, *earlier = [
        [(line, cell.number) for line, text in enumerate(cell.source.splitlines(), 1) if wanted.search(text)]
        for cell in (run.cell, *{past.cell.source: past.cell for past in run.earlier}.values())
    ]
    found = own or [one for lines in earlier for one in lines]
    return found[0] if len(found) == 1 else None


def _named(root: str) -> str:
    """A loss as a sentence names it."""
    return f"`{root}`" if root else "the loss"


def _constant(run: Run) -> Iterator[Finding]:
    """Gradients of inputs that a loss adds up as plain numbers, of a model that is being trained."""
    for cut, reached in constants(run):
        model = run.owner_path(reached) or "the model"
        root = next((one.root for one in run.trace.backwards if one.root and not one.is_grad_call), "")
        yield Finding(
            message=(
                "the gradient that `torch.autograd.grad` gives here has no history: it is a plain number in "
                f"{_named(root)}, and what is made of it teaches `{model}` nothing."
            ),
            subject=root or "loss",
            fix=f"{cut.text}  # keeps the history of the gradient",
            line=cut.place.line,
            cell=cut.place.cell,
            evidence=(Evidence("create_graph", "False"), Evidence("parameters behind it", len(reached), "count")),
        )


def _added(run: Run) -> Iterator[Finding]:
    """Terms that a loss adds up as plain numbers, of a model that it trains."""
    for cut, model in added(run):
        call = run.trace.backwards_at(cut.backwards[0])
        root = next((one.root for one in call if one.root), "")
        yield Finding(
            message=(
                f"`{cut.term}` is a term of {_named(root)} without history: {how(cut)}. "
                f"It changes the value of {_named(root)} and teaches `{model}` nothing."
            ),
            subject=root or "loss",
            fix=term_kept(run, cut),
            line=cut.place.line,
            cell=cut.place.cell,
            severity="hint" if cut.bare else "warning",
            evidence=(Evidence("term", cut.term), Evidence("history lost", cut.text)),
        )


def _cut_parts(run: Run) -> Iterator[Finding]:
    """Parts that are called and stepped, and that the text cuts off by more than a word such as `detach`."""
    for cut, steps in cut_parts(run):
        if cut.kind not in _SAID_ELSEWHERE:
            yield _of_part(run, steps, cut)
            return


def _of_part(run: Run, steps: list[StepFact], cut: CutFact) -> Finding:
    name, place = run.optimizer_path(steps[0].optimizer) or "optimizer", cut.place
    part = part_path(run, cut)
    return Finding(
        message=(
            f"no gradient reaches `{part}`: {how(cut)}. "
            f"`{name}` holds its parameters, and none of the {len(steps)} steps looked at has moved them."
        ),
        subject=part,
        fix=(
            f"{_PASSED.get(cut.kind) or uncut(run, cut, run.cell.number)}; "
            f"if `{part}` is not to learn: {part}.requires_grad_(False)"
        ),
        line=place.line,
        cell=place.cell,
        severity="hint" if may_rest(cut, steps) else "warning",
        evidence=(
            Evidence("history lost", cut.text),
            Evidence("steps looked at", len(steps), "count"),
            Evidence("parameters in the optimizer", steps[0].parameter_count, "count"),
        ),
    )
