"""Targets of a kind, a shape or with values that a loss refuses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from math import prod

from torch_inspector.facts import ErrorFact, OperandFact, Place, Run, Shape, assigned_at
from torch_inspector.facts.made_target import CAST, COMPUTED, MOVED, ROWS, MadeTarget, made_target
from torch_inspector.facts.refused_targets import REFUSALS, Refusal
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.wide_targets import OUTSIDE, extent_at, into_unit, target_at
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_WHOLE = frozenset(["int64", "int32", "int16", "int8", "uint8", "bool"])


# Refusals that name the size of the target, and the size that it should have.
_SIZED = (
    re.compile(
        r"target size \(torch\.Size\(\[(?P<own>[\d, ]*)\]\)\).* input size \(torch\.Size\(\[(?P<wanted>[\d, ]*)\]\)\)",
        re.IGNORECASE,
    ),
    re.compile(r"Expected target size \[(?P<wanted>[\d, ]*)\], got \[(?P<own>[\d, ]*)\]"),
    re.compile(r"Expected input batch_size \((?P<wanted>\d+)\) to match target batch_size \((?P<own>\d+)\)"),
)
_VALUE = re.compile(r"Target (-?\d+) is out of bounds")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds cells that a loss ended because of its target, and binary losses of targets that are no probabilities."""
    for pattern, root, place in run.losses_with(OUTSIDE):
        if pattern.extent is not None and pattern.shapes:
            yield _taken(run, pattern.shapes[0], pattern.extent, root, place)
    error = run.error
    refusal = next((one for one in REFUSALS if error is not None and one.text.search(error.message)), None)
    if error is not None and refusal is None:
        yield from _of_another_size(run, error)
    if error is None or refusal is None:
        return
    made, fitting = made_target(error), [one for one in error.operands if _fits(one, refusal)]
    if made is not None and (_is_spoiled(made, refusal) or made.operand not in fitting):
        yield from _of_made(run, error, refusal, made)
    elif fitting:
        yield _finding(run, error, refusal, fitting[-1] if made is None or made.operand is None else made.operand)


def _is_spoiled(made: MadeTarget, refusal: Refusal) -> bool:
    """True if a tensor that the target is made of does not show what the loss was given."""
    shown = {CAST, ROWS, MOVED} if not refusal.fix.endswith("()") else {ROWS, MOVED}
    shown = {CAST, ROWS} if refusal.axes else shown
    return made.operand is None or COMPUTED in made.steps or not made.steps <= shown


def _of_made(run: Run, error: ErrorFact, refusal: Refusal, made: MadeTarget) -> Iterator[Finding]:
    """A target that the very call computes: what it is like is only known as far as torch has said it."""
    if refusal.axes:
        return
    own = made.operand if made.operand is not None else OperandFact(made.text, "tensor", (), None, "")
    yield _finding(run, error, refusal, own, made)


def _taken(run: Run, shape: Shape, extent: tuple[float, float], root: str, place: Place) -> Finding:
    """A binary loss that took its targets, and should not have."""
    low, high = whole = extent_at(run, place, extent)
    name = target_at(run, place)
    return Finding(
        message=(
            f"{f'`{root}`' if root else 'The loss'} compares with targets from {low:g} to {high:g}"
            f"{f' in `{name}`' if name else ''}: binary cross-entropy wants numbers from 0 to 1, and with others it "
            "has no lowest value."
        ),
        subject=name or root,
        fix=into_unit(run, place, name, whole),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("targets", str(shape)),
            Evidence("smallest target", low),
            Evidence("largest target", high),
        ),
    )


def _of_another_size(run: Run, error: ErrorFact) -> Iterator[Finding]:
    """A target with more or fewer numbers than the loss has use for."""
    told = next((found for one in _SIZED if (found := one.search(error.message)) is not None), None)
    if told is None:
        return
    own, wanted = (tuple(int(n) for n in told[name].split(",") if n.strip()) for name in ("own", "wanted"))
    batch = told.re is _SIZED[2]
    tensors = [one for one in error.operands if one.kind == "tensor" and one.shape and not one.nested]
    targets = [one for one in tensors if one.shape == own or (batch and one.shape and one.shape[0] == own[0])]
    if targets:
        target = targets[-1]
        scores = next((one for one in tensors if one.path != target.path), None) or _of_module(run, error)
        yield _sized(run, error, target, scores, wanted)


def _sized(run: Run, error: ErrorFact, target: OperandFact, scores: OperandFact | None, wanted: Shape) -> Finding:
    of_classes = _SIZED[1].search(error.message) is not None
    name, other = target.path, scores.path if scores is not None else ""
    if len(wanted) == 1 and len(target.shape or ()) >= 1 and not of_classes and error.message.startswith("Expected"):
        said = f"the scores are {wanted[0]:,} samples"
        fix = f"{_shape_of(other)}: has a view merged the batch with something?"
    elif of_classes:
        shape = (scores.shape if scores is not None else None) or ()
        if (*shape[:-1],) == target.shape:
            said = f"with scores {shape} the classes must be on axis 1, and not the last"
            move = ".transpose(1, 2)" if len(shape) == 3 else ".movedim(-1, 1)"  # noqa: PLR2004
            fix = assigned_at(run, error.place, other, f"{{}}{move}", "(batch, classes, …) for the loss")
        else:
            said = f"for these scores it must be {wanted}"
            fix = f"{_shape_of(other)} must be (batch, classes, …), as the loss reads it"
    else:
        said, fix = (
            f"the prediction is {wanted}, and each of its numbers needs a target",
            _as(run, error, target, wanted),
        )
    return Finding(
        message=f"The loss refused `{name}` {target.shape} {target.dtype}: {said}.",
        subject=name,
        fix=fix,
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(name, f"{target.shape} {target.dtype}"), Evidence("wanted", str(wanted))),
    )


def _shape_of(other: str) -> str:
    return f"{other}.shape  # this" if other else "# the shape of the scores"


def _of_module(run: Run, error: ErrorFact) -> OperandFact | None:
    """What a module gave in the very call: `net(x)` of `criterion(net(x), y)`."""
    try:
        call = ast.parse(error.expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    name = ast.unparse(given.func) if isinstance(given, ast.Call) else ""
    made = [one for one in run.trace.forwards if name and one.name == name and one.place == error.place]
    shape = made[-1].output_shape if made else None
    return OperandFact(ast.unparse(given), "tensor", (), shape, "") if given is not None and shape else None


def _as(run: Run, error: ErrorFact, target: OperandFact, wanted: Shape) -> str:
    """What brings a target to the shape of a prediction."""
    shape, name = target.shape or (), target.path
    if wanted == (*shape, 1):
        return assigned_at(run, error.place, name, "{}.unsqueeze(-1)")
    if shape == (*wanted, 1):
        return assigned_at(run, error.place, name, "{}.squeeze(-1)")
    if len(wanted) == len(shape) + 1 and wanted[: len(shape)] == shape:
        made = f"torch.nn.functional.one_hot({{}}.long(), {wanted[-1]}).float()"
        return assigned_at(run, error.place, name, made, "or CrossEntropyLoss")
    same = prod(wanted) == prod(shape)
    return (
        assigned_at(run, error.place, name, f"{{}}.view{wanted}")
        if same
        else f"{name}.shape  # one target for each prediction"
    )


def _fits(operand: OperandFact, refusal: Refusal) -> bool:
    if operand.kind != "tensor" or operand.shape is None or operand.nested:
        return False
    whole = refusal.whole is None or (operand.dtype in _WHOLE) == refusal.whole
    return whole and len(operand.shape) >= refusal.axes


def _finding(
    run: Run, error: ErrorFact, refusal: Refusal, target: OperandFact, made: MadeTarget | None = None
) -> Finding:
    scores = _scores(error, target) or (_scores_of_module(run, error) if refusal.fix.startswith("{name}") else None)
    value = _VALUE.search(error.message)
    classes = _class_count(scores, target)
    words = {
        "name": made.text if made is not None else target.path,
        "value": value.group(1) if value else "a number",
        "last": str(classes - 1) if classes else "the number of classes less 1",
        "name_less": assigned_at(run, error.place, target.path, "{} - 1"),
    }
    evidence = [Evidence(target.path, f"{target.shape} {target.dtype}")] if target.shape is not None else []
    if scores is not None:
        evidence.append(Evidence("scores", str(scores)))
    put = partial(assigned_at, run, error.place)
    return Finding(
        message=f"The loss refused {_called(target, made)}: {_said(refusal, target, made, words)}.",
        subject=target.path,
        fix=_fix(put, refusal, target, scores, words)
        if made is None
        else _fix_of_made(run, error, refusal, made, words),
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(evidence),
    )


def _called(target: OperandFact, made: MadeTarget | None) -> str:
    own = f"`{target.path}` {target.shape} {target.dtype}"
    if made is None:
        return own
    return f"`{made.text}`{f', made of {own}' if made.operand is not None else ''}"


def _fix_of_made(run: Run, error: ErrorFact, refusal: Refusal, made: MadeTarget, words: dict[str, str]) -> str:
    if "{}" in refusal.fix:
        return in_statement(run, error.place, made.text, refusal.fix.format(made.text))
    also = _from_one(words) if COMPUTED not in made.steps and made.operand is not None else ""
    return refusal.fix.format(**words) + also


def _class_count(scores: Shape | None, target: OperandFact) -> int:
    """How many scores there are for each target, on the second axis or on the last; 0 if that is neither."""
    targets = prod(target.shape or ())
    if not scores or not targets or prod(scores) % targets:
        return 0
    count = prod(scores) // targets
    return count if len(scores) > 1 and count in (scores[1], scores[-1]) else 0


def _said(refusal: Refusal, target: OperandFact, made: MadeTarget | None, words: dict[str, str]) -> str:
    """What is wrong with the target; class numbers of another kind of number are class numbers all the same."""
    if refusal.fix == "{}.long()" and target.dtype in _WHOLE and made is None:
        return "class numbers must be int64"
    return f"it {refusal.said.format(**words)}"


def _scores(error: ErrorFact, target: OperandFact) -> Shape | None:
    """Shape of what the target was compared with, if the line names it."""
    tensors = [one for one in error.operands if one.kind == "tensor" and not one.nested and one.path != target.path]
    return next((one.shape for one in tensors if one.dtype not in _WHOLE), None)


def _scores_of_module(run: Run, error: ErrorFact) -> Shape | None:
    given = _of_module(run, error)
    return given.shape if given is not None else None


def _fix(
    put: Callable[..., str], refusal: Refusal, target: OperandFact, scores: Shape | None, words: dict[str, str]
) -> str:
    one_hot = target.shape is not None and target.shape == scores
    column = target.shape is not None and len(target.shape) > 1 and target.shape[1] == 1
    if refusal.axes and (one_hot or (target.dtype in _WHOLE and not column)) and "squeeze" in refusal.fix:
        return put(target.path, "{}.argmax(1)")
    if "{}" in refusal.fix:
        return put(target.path, refusal.fix, refusal.remark)
    return refusal.fix.format(**words) + _from_one(words)


def _from_one(words: dict[str, str]) -> str:
    """What to do where the largest number is that of the classes: they may be counted from 1."""
    from_one = words["value"] == str(int(words["last"]) + 1) if words["last"].isdigit() else False
    return f"\n# or, if they go from 1 to {words['value']}: {words['name_less']}" if from_one else ""
