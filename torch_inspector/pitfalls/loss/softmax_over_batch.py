"""A softmax along the axis of the samples."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, PatternFact, Place, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_LAYERS = {"SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "LogSoftmax"}
_SAID = {"SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "Log-softmax"}
_ATTENDS = ", so the weights of one sample depend on all others, and those of a query do not"
_READS = {"gather": "`gather` then picks from", "indexing": "the index then picks from"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses over classes below which a softmax was taken along the batch."""
    for pattern, root, place in run.losses_with("softmax-over-batch"):
        if len(pattern.nodes) > 1 and pattern.shapes and len(pattern.shapes[0]) > 1:
            yield _finding(run, pattern, root, place)
    yield from map(_predicted, run.expressions("over-batch"))


def _predicted(fact: ExpressionFact) -> Finding:
    """A prediction is read along the classes, of what was made to sum to 1 along the samples."""
    name, shape = (*fact.names, "the input")[0], (*fact.shapes, (0, 0))[0]
    return Finding(
        message=(
            f"Softmax in `{name}` runs along dim 0, the {shape[0]} samples; "
            f"`{fact.text}` then reads classes along dim 1, whose probabilities do not sum to 1."
        ),
        subject=name,
        fix=_fix("", "Softmax"),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("shape", str(shape)), Evidence("axis of the softmax", 0)),
        severity="warning",
    )


def _finding(run: Run, pattern: PatternFact, root: str, place: Place) -> Finding:
    reader, kind = pattern.nodes[:2]
    samples, classes = pattern.shapes[0][:2]
    layers = run.squashing_layers(_LAYERS.get(kind, "")) if pattern.rivals == 1 else ()
    layer = layers[0] if len(layers) == 1 else ""
    name = run.operand_of(pattern)
    names = [f"`{one}`" for one in (name, layer) if one]
    attends = reader == "attention"
    reads = (
        f"; {_READS.get(reader, f'`{reader}` then reads')} {classes} classes along dim 1, whose probabilities do not"
    )
    where = " from ".join(names) or ("an attention" if attends else "the input of the loss")
    return Finding(
        message=(
            f"{_SAID.get(kind, 'softmax')} in {where} runs along dim 0, the {samples} samples"
            f"{_ATTENDS if attends else reads} sum to 1."
        ),
        subject=layer or name or root,
        fix=_fix(layer, _LAYERS.get(kind, "Softmax"), -1 if attends else 1),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("shape", str(pattern.shapes[0])),
            Evidence("axis of the softmax", 0),
            Evidence("read by", reader),
        ),
    )


def _fix(layer: str, kind: str, axis: int = 1) -> str:
    if layer:
        return f"{layer}.dim = {axis}  # or where it is made: nn.{kind}(dim={axis})"
    if axis < 0:
        return "# softmax(…, dim=-1): along the keys, so that the weights of each query sum to 1"
    return "# softmax(…, dim=1): along the classes, so that each sample's probabilities sum to 1"
