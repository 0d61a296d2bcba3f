"""A sigmoid below a loss that contains the sigmoid."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact, Place, Run
from torch_inspector.facts.spelled import handed_on
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_BINARY = "binary_cross_entropy_with_logits"
_STAYS = "in place of the loss with logits: {} stays, for more is computed of its probabilities"
_LAYERS = {"SigmoidBackward0": "Sigmoid", "SoftmaxBackward0": "Softmax"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses of raw scores whose input has been through a sigmoid already."""
    for pattern, root, place in run.losses_with("sigmoid-before-logits"):
        if len(pattern.nodes) > 1:
            yield _finding(run, pattern, root, place)


def _finding(run: Run, pattern: PatternFact, root: str, place: Place) -> Finding:
    loss, kind = pattern.nodes[:2]
    layers = run.squashing_layers(_LAYERS.get(kind, "")) if pattern.rivals == 1 else ()
    layer = layers[0] if len(layers) == 1 else ""
    name = layer or run.operand_of(pattern)
    squashed = _LAYERS.get(kind, "").lower()
    inside = None if name else handed_on(run, squashed, loss)
    given = f" (`{name}`)" if name else f" (`{inside[0]}`, {inside[1].said_in(run.cell.number)})" if inside else ""
    evidence = [Evidence("loss function", loss), Evidence("input made by", squashed)]
    if loss != "soft_margin_loss":
        # log(1 + 1/e) for a positive whose probability is 1, log(2) for a negative whose probability is 0.
        evidence += [Evidence("lowest loss of a positive", 0.313), Evidence("lowest loss of a negative", 0.693)]
    return Finding(
        message=(
            f"{f'`{root}`' if root else 'The loss'} applies sigmoid twice: `{loss}` does so itself, "
            f"and its input{given} has been through {squashed} already, "
            "so no prediction can come out as sure."
        ),
        subject=name or root,
        fix=_fix(layer, squashed)
        if not _stays(pattern)
        else f"nn.BCELoss()  # {_STAYS.format(layer or 'the sigmoid')}",
        line=place.line,
        cell=place.cell,
        evidence=tuple(evidence),
    )


def _stays(pattern: PatternFact) -> bool:
    """True if something else, as a dice loss, is made of the probabilities, which another fix would take from it."""
    return len(pattern.nodes) > 2 and pattern.nodes[:2] == (_BINARY, "SigmoidBackward0")  # noqa: PLR2004


def _fix(layer: str, squashed: str) -> str:
    if layer:
        return f"{layer} = nn.Identity()  # the loss wants raw scores; or keep the layer and use nn.BCELoss"
    return f"# give the loss raw scores, without {squashed}; apply sigmoid only to show probabilities"
