"""A softmax along the axis of the samples, or another wrong one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import ExpressionFact, PatternFact, Place, Run, Shape, Written, called, instead
from torch_inspector.facts.implied_axes import implied_axis
from torch_inspector.facts.one_output import Scored, softmaxes_of_one
from torch_inspector.facts.sole import written as written_in
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_LAYERS = {"SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "LogSoftmax"}
_CALLS = {
    "SoftmaxBackward0": ("softmax", "Softmax"),
    "LogSoftmaxBackward0": ("log_softmax", "LogSoftmax"),
}
# Where the first argument of a softmax is its input.
_FUNCTIONAL = frozenset(["F", "torch", "functional", "nn.functional", "torch.nn.functional"])
_SAID = {"SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "Log-softmax"}
_ATTENDS = ", so the weights of one sample depend on all others, and its own do not"
_OF_HEADS = ", so the weights of one head depend on the others, and those of a query do not"
_ALONE = {
    "binary_cross_entropy": "# torch.sigmoid(…) in place of softmax: one output, one probability",
    "mse_loss": "# torch.sigmoid(…) in place of softmax: one output, one probability",
    "attention": "# softmax(…, dim=1): along the steps, so that the weights of each sample sum to 1",
    "scores": "# softmax along the axis of what is weighed, as the steps, in a shape that has it; or torch.sigmoid",
}
_SCORES = "scores"
_CLASSES = "along the classes, so that each sample's probabilities sum to 1"
_AVERAGED = "mean of sums"
_MIXES = {
    "logsumexp": "`logsumexp` then adds up",
    "sum of parts": "a sum then adds up",
    _AVERAGED: "a sum of which the mean is taken adds up",
}
_PARTS = "along the parts, so that the weights of each sample sum to 1"
_READS = {"gather": "`gather` then picks from", "indexing": "the index then picks from"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses over classes below which a softmax was taken along the batch."""
    for pattern, root, place in run.losses_with("softmax-over-batch"):
        if len(pattern.nodes) > 1 and pattern.shapes and len(pattern.shapes[0]) > 1:
            yield _finding(run, pattern, root, place)
    for pattern, root, place in run.losses_with("softmax-of-one"):
        scored = pattern.nodes[:1] == (_SCORES,) and bool(pattern.shapes)
        known = softmaxes_of_one(run, pattern.shapes[0], pattern.keys) if scored else []
        # A number of experts that is a setting may be 1 for once.
        if pattern.nodes and pattern.nodes[0] in _ALONE and (known or pattern.nodes[0] != _SCORES):
            yield _of_one(run, pattern, root, place, known)
    read = list(run.expressions("over-batch"))
    yield from (_predicted(run, fact) for fact in read)
    yield from (_of_scores(run, fact) for fact in ([] if read else run.expressions("over-samples")))


def _of_one(run: Run, pattern: PatternFact, root: str, place: Place, known: list[Scored]) -> Finding:
    """Each softmax has one number only."""
    reader, shape = pattern.nodes[0], (*pattern.shapes, (0, 1))[0]
    one = known[0] if len(known) == 1 else None
    name = run.operand_of(pattern) or (one.target if one is not None else "") if reader == _SCORES else ""
    subject = name or root or reader
    place = one.written.place if one is not None else place
    axis, made_by = "the last axis" if shape[-1] == 1 else "dim 1", "layer" if reader == _SCORES else "model"
    return Finding(
        message=(
            f"Softmax {'in' if name else 'behind'} `{subject}` runs along {axis} of {shape}, "
            f"which is 1 long: every result is 1 whatever the {made_by} gives."
        ),
        subject=subject,
        fix=_ALONE[reader],
        line=place.line,
        cell=place.cell,
        evidence=(Evidence("shape", str(shape)), Evidence("read by", reader)),
        severity="error" if reader != _SCORES else "warning",
    )


def _predicted(run: Run, fact: ExpressionFact) -> Finding:
    """A prediction is read along the classes, of what was made to sum to 1 along the samples."""
    name, shape = (*fact.names, "the input")[0], (*fact.shapes, (0, 0))[0]
    return Finding(
        message=(
            f"Softmax in `{name}` runs along dim 0, the {shape[0]} samples; "
            f"`{fact.text}` then reads classes along dim 1, whose probabilities do not sum to 1."
        ),
        subject=name,
        fix=_fix_read(run),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("shape", str(shape)), Evidence("axis of the softmax", 0)),
        # An ask for the best sample of each class is written alike; neither labels nor training tell which was meant.
        severity="hint",
    )


def _of_scores(run: Run, fact: ExpressionFact) -> Finding:
    """A softmax of scores whose classes a cross-entropy reads along the other axis."""
    name, shape = (*fact.names, fact.text)[0], (*fact.shapes, (0, 0))[0]
    return Finding(
        message=(
            f"Softmax in `{name}` runs along dim 0, the {shape[0]} samples; a cross-entropy reads the same model's "
            f"scores as {shape[1]} classes along dim 1, whose probabilities do not sum to 1."
        ),
        subject=name,
        fix=_fix_of(run, Written(fact.text, fact.place, inside=False), -1, _CLASSES),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("shape", str(shape)), Evidence("axis of the softmax", 0)),
        # A ranking of the samples for each class is written alike.
        severity="hint",
    )


def _fix_read(run: Run) -> str:
    """The softmax of the text along the classes."""
    for node in _LAYERS:
        written = _written(run, node, 0, 2)
        if written is not None:
            return _fix_of(run, written, -1, _CLASSES)
    return _fix("", "Softmax", -1, _CLASSES)


class _Seen(NamedTuple):
    """A pattern by its parts."""

    reader: str
    kind: str
    shape: Shape
    axis: int
    class_axis: int
    is_flat: bool
    is_of_heads: bool

    @property
    def attends(self) -> bool:
        """True if what reads the weights is an attention, and no loss over classes."""
        return self.reader == "attention"


def _seen(pattern: PatternFact) -> _Seen:
    reader, kind = pattern.nodes[:2]
    axis, class_axis = (*pattern.shapes[1:], (0, 1))[0]
    marks = "rows" in pattern.nodes, "heads" in pattern.nodes
    return _Seen(reader, kind, pattern.shapes[0], axis, class_axis, *marks)


def _finding(run: Run, pattern: PatternFact, root: str, place: Place) -> Finding:
    seen, name = _seen(pattern), run.operand_of(pattern)
    layers = run.squashing_layers(_LAYERS.get(seen.kind, "")) if pattern.rivals == 1 else ()
    layer = layers[0] if len(layers) == 1 else ""
    written = None if layer else _written(run, seen.kind, seen.axis, len(seen.shape), seen.shape)
    at = _place(run, seen, layer, written, place)
    return Finding(
        message=_message(seen, [f"`{one}`" for one in (name, layer) if one]),
        subject=layer or name or root,
        fix=_fix_for(run, seen, layer, written),
        line=at.line,
        cell=at.cell,
        evidence=(
            Evidence("shape", str(seen.shape)),
            Evidence("axis of the softmax", seen.axis),
            Evidence("read by", seen.reader),
        ),
        # Heads that compete for each key are a design, if a rare one, and so are samples.
        severity="hint" if seen.is_of_heads or seen.reader == _AVERAGED else "error",
    )


def _place(run: Run, seen: _Seen, layer: str, written: Written | None, place: Place) -> Place:
    """The line to show: of a softmax without an axis, or inside of a function, its own; else that of the loss."""
    if layer:
        return _made_unnamed(run, seen.kind, layer, place)
    return written.place if written is not None and (written.inside or _is_unnamed(written.text)) else place


def _message(seen: _Seen, names: list[str]) -> str:
    where = " from ".join(names) or _unnamed_place(seen)
    so = _OF_HEADS if seen.is_of_heads else _ATTENDS if seen.attends else _classes_read(seen)
    meant = f", which is right if {_what(seen)} are to share each weight, as assets do" * (seen.reader == _AVERAGED)
    return (
        f"{_SAID.get(seen.kind, 'softmax')} in {where} runs along dim {seen.axis}, {_what(seen)}{so} sum to 1{meant}."
    )


def _unnamed_place(seen: _Seen) -> str:
    if seen.reader in _MIXES:
        return "the weights of a sum"
    return "an attention or a gate" if seen.attends else "the input of the loss"


def _classes_read(seen: _Seen) -> str:
    if seen.reader in _MIXES:
        parts = f"{seen.shape[seen.class_axis]} parts along dim {seen.class_axis}"
        return f"; {_MIXES[seen.reader]} {parts}, whose weights do not"
    reads = _READS.get(seen.reader, f"`{seen.reader}` then reads")
    classes = f"{seen.shape[seen.class_axis]} classes along dim {seen.class_axis}"
    return f"; {reads} {classes}, whose probabilities do not"


def _what(seen: _Seen) -> str:
    if seen.is_of_heads:
        return f"the {seen.shape[1]} heads"
    if seen.is_flat:
        return f"the {seen.shape[0]} rows of all samples"
    return f"{seen.shape[seen.axis]} long" if seen.class_axis > 1 or seen.axis > 0 else f"the {seen.shape[0]} samples"


def _fix_for(run: Run, seen: _Seen, layer: str, written: Written | None) -> str:
    """The softmax along the axis that is meant: that of the classes, or of what is attended to."""
    rank = len(seen.shape)
    attended = 1 if seen.shape[-1] == 1 or (rank == 2 and not seen.is_flat) else -1  # noqa: PLR2004
    wanted = attended if seen.attends else seen.class_axis
    axis, along = _said(wanted, rank), _along(wanted) if seen.attends else _PARTS if seen.reader in _MIXES else _CLASSES
    if written is not None:
        return _fix_of(run, written, axis, along)
    return _fix(layer, _LAYERS.get(seen.kind, "Softmax"), axis, along)


def _written(run: Run, kind: str, axis: int, rank: int, shape: Shape | None = None) -> Written | None:
    """The softmax along that axis, if the texts have one only, or one only of that shape; layers count too."""
    names = _CALLS.get(kind, ())
    found = written_in(run, lambda node: called(node) in names and _axis_of(node, rank) in (axis, axis - rank))
    left = _of_shape(run, found, shape) if len(found) > 1 else found
    return left[0] if len(left) == 1 else None


def _of_shape(run: Run, found: list[Written], shape: Shape | None) -> list[Written]:
    """Those without an axis that were given such a shape; if no other one is told an axis, those of unknown shape."""
    facts = {(one.place.cell, one.place.line): one.shapes for one in run.expressions("unnamed-axis")}
    given = [(one, facts.get((one.place.cell, one.place.line))) for one in found]
    unknown = [one for one, shapes in given if shapes == () and all(_is_unnamed(other.text) for other in found)]
    return [one for one, shapes in given if shapes == (shape,)] or unknown


def _made_unnamed(run: Run, kind: str, layer: str, place: Place) -> Place:
    """Where this cell makes a layer without an axis; else the line of the loss."""
    function = _CALLS.get(kind, ("",))[0]
    for fact in run.expressions("unnamed-axis"):
        same = fact.target and fact.target.rpartition(".")[2] == layer.rpartition(".")[2]
        inside = fact.target and layer.startswith((f"{fact.target}.", f"{fact.target}["))
        if not fact.names and fact.detail == function and (same or inside):
            return fact.place
    return place


def _axis_of(node: ast.AST, rank: int) -> int | None:
    """The axis that a softmax is told as a number, or that torch takes where it is told none."""
    if isinstance(node, ast.Call) and not _given(node) and not node.keywords:
        return implied_axis(rank)
    try:
        return next((ast.literal_eval(one) for one in _given(node)), None)
    except (ValueError, TypeError):
        return None


def _given(node: ast.AST) -> list[ast.expr]:
    """The expression that says the axis: `dim=`, or the last of what is given, if that is not the input."""
    if not isinstance(node, ast.Call):
        return []
    named = [one.value for one in node.keywords if one.arg == "dim"]
    inputs = 1 if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in _FUNCTIONAL else 0
    return named or node.args[inputs:][-1:]


def _is_unnamed(text: str) -> bool:
    return not _given(ast.parse(text, mode="eval").body)


def _said(axis: int, rank: int) -> int:
    """The last axis from the end, so that the line does for one sample, without the axis of a batch, as well."""
    return -1 if axis == rank - 1 else axis


def _fix(layer: str, kind: str, axis: int, along: str) -> str:
    if layer:
        return f"{layer}.dim = {axis}  # or where it is made: nn.{kind}(dim={axis})"
    call = "log_softmax" if kind == "LogSoftmax" else "softmax"
    return f"# {call}(…, dim={axis}): {along}"


def _along(axis: int) -> str:
    """Where the weights of an attention are to sum to 1."""
    if axis < 0:
        return "along the keys, so that the weights of each query sum to 1"
    return "along the steps or experts, so that the weights of each sample sum to 1"


def _fix_of(run: Run, written: Written, axis: int, along: str) -> str:
    """The very call of the text along another axis."""
    return instead(run, written.place, written.text, _turned(written.text, axis), along)


def _turned(text: str, axis: int) -> str:
    """The same call along another axis."""
    if _is_unnamed(text):
        return f"{text[:-1]}{'' if text.endswith('()') else ', '}dim={axis})"
    head, _, tail = text.rpartition(ast.unparse(_given(ast.parse(text, mode="eval").body)[0]))
    return f"{head}{axis}{tail}"
