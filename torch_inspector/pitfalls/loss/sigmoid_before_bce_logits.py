"""A sigmoid below a loss that contains the sigmoid."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import PatternFact, Place, Run, Written, called, instead, operand, sole
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.spelled import handed_on
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_BINARY = "binary_cross_entropy_with_logits"
_LONGEST = 60
_STAYS = "{} stays, for more is computed of its probabilities"
_LAYERS = {"SigmoidBackward0": "Sigmoid", "SoftmaxBackward0": "Softmax"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses of raw scores whose input has been through a sigmoid already."""
    found = [one for one in run.losses_with("sigmoid-before-logits") if len(one[0].nodes) > 1]
    layered = next((one for one in found if _layer(run, one[0])), None)
    same = [one for one in found if layered is not None and one[0].nodes[:2] == layered[0].nodes[:2]]
    for pattern, root, place in found:
        others = [one for one in same if one[2] != place]
        if layered is None or place == layered[2]:
            yield _finding(run, pattern, root, place, _also(others) if layered is not None else "")
        elif (pattern, root, place) not in same:
            yield _finding(run, pattern, root, place)


def _also(others: list[tuple[PatternFact, str, Place]]) -> str:
    """Other losses of what the same layer gives."""
    names = [f"`{root}`" if root else f"the loss in line {place.line}" for _, root, place in others]
    return f" So {'do' if len(names) > 1 else 'does'} {' and '.join(names)}." if names else ""


def _layer(run: Run, pattern: PatternFact) -> str:
    """The one layer that made the input, if nothing else could have."""
    layers = run.squashing_layers(_LAYERS.get(pattern.nodes[1], "")) if pattern.rivals == 1 else ()
    return layers[0] if len(layers) == 1 else ""


def _finding(run: Run, pattern: PatternFact, root: str, place: Place, also: str = "") -> Finding:
    loss, kind = pattern.nodes[:2]
    layer = _layer(run, pattern)
    name = layer or run.operand_of(pattern)
    squashed = _LAYERS.get(kind, "").lower()
    inside = None if name else handed_on(run, squashed, loss)
    first = None if name or inside or pattern.rivals != 1 else _only(run, squashed)
    given = f" (`{name}`)" if name else f" (`{inside[0]}`, {inside[1].said_in(run.cell.number)})" if inside else ""
    given = f" (`{first.text}`, {first.place.said_in(run.cell.number)})" if first is not None else given
    evidence = [Evidence("loss function", loss), Evidence("input made by", squashed)]
    if loss != "soft_margin_loss":
        # log(1 + 1/e) for a positive whose probability is 1, log(2) for a negative whose probability is 0.
        evidence += [Evidence("lowest loss of a positive", 0.313), Evidence("lowest loss of a negative", 0.693)]
    return Finding(
        message=(
            f"{f'`{root}`' if root else 'The loss'} applies sigmoid twice: `{loss}` does so itself, "
            f"and its input{given} has been through {squashed} already, "
            f"so no prediction can come out as sure.{also}"
        ),
        subject=name or root,
        fix=_fix(run, layer, squashed, first)
        if not _stays(pattern)
        else _other_loss(run, _STAYS.format(layer or "the sigmoid")),
        line=place.line,
        cell=place.cell,
        evidence=tuple(evidence),
    )


def _stays(pattern: PatternFact) -> bool:
    """True if something else, as a dice loss, is made of the probabilities, which another fix would take from it."""
    return len(pattern.nodes) > 2 and pattern.nodes[:2] == (_BINARY, "SigmoidBackward0")  # noqa: PLR2004


def _other_loss(run: Run, remark: str) -> str:
    """The same call of the loss for probabilities; one that weighs positives has no such form."""
    written = sole(run, lambda node: called(node) in (_BINARY, "BCEWithLogitsLoss"))
    if written is None or f"{_BINARY}(" not in written.text or "pos_weight" in written.text:
        return f"nn.BCELoss()  # in place of the loss with logits: {remark}"
    new = written.text.replace(f"{_BINARY}(", "binary_cross_entropy(")
    return instead(run, written.place, written.text, new, remark)


def _only(run: Run, squashed: str) -> Written | None:
    """The only call of that kind in the texts, where a function has it: `torch.sigmoid(x)` of a `forward`."""
    if run.squashing_layers(squashed.capitalize()):
        return None
    written = sole(run, lambda node: called(node) in (squashed, squashed.capitalize()))
    fits = written is not None and written.inside and f"{squashed}(" in written.text and len(written.text) <= _LONGEST
    return written if fits else None


def _fix(run: Run, layer: str, squashed: str, first: Written | None) -> str:
    if layer:
        return f"{layer} = nn.Identity()  # the loss wants raw scores; or keep the layer and use nn.BCELoss"
    scores = operand(first.text) if first is not None else ""
    if first is None or not scores:
        return f"# give the loss raw scores, without {squashed}; apply sigmoid only to show probabilities"
    new = in_statement(run, first.place, first.text, scores)
    return f"{new}  # {first.place.said_in(run.cell.number)}, in place of {first.text}: the loss wants raw scores"
