"""A sigmoid below a loss that contains the sigmoid."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import (
    ExpressionFact,
    PatternFact,
    Place,
    Run,
    Written,
    called,
    instead,
    operand,
    reading,
    sole,
    syntax,
)
from torch_inspector.facts.loss_called import loss_called
from torch_inspector.facts.measured import called_loss, measured, where_made, with_scores
from torch_inspector.facts.replaced import OUT, in_statement
from torch_inspector.facts.returned import returned
from torch_inspector.facts.spelled import handed_on
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import of_measured, pitfall

_BINARY = "binary_cross_entropy_with_logits"
_CLASSES = ("BCEWithLogitsLoss", "SoftMarginLoss", "MultiLabelSoftMarginLoss")
_LONGEST = 60
_STAYS = "{} stays, for more is computed of its probabilities"
_Loss = tuple[PatternFact, str, Place]
_LAYERS = {"SigmoidBackward0": "Sigmoid", "SoftmaxBackward0": "Softmax"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses of raw scores whose input has been through a sigmoid already."""
    found = _sources(run, [one for one in run.losses_with("sigmoid-before-logits") if len(one[0].nodes) > 1])
    layered = next((one for one in found if _layer(run, one[0])), None)
    same = [one for one in found if layered is not None and one[0].nodes[:2] == layered[0].nodes[:2]]
    for pattern, root, place in found:
        others = [one for one in same if one[2] != place]
        if layered is None or place == layered[2]:
            yield _finding(run, pattern, root, place, _also(others) if layered is not None else "")
        elif (pattern, root, place) not in same:
            yield _finding(run, pattern, root, place)
    for fact in () if found else measured(run, _BINARY):
        yield _of_text(run, fact)


def _of_text(run: Run, fact: ExpressionFact) -> Finding:
    """A loss that is only measured, without a graph."""
    message = (
        f"{called_loss(fact)} applies sigmoid twice: the loss does so itself, and its input has been "
        f"through a sigmoid already ({where_made(fact)}), so it cannot get near zero."
    )
    return of_measured(fact, message, with_scores(run, fact))


def _sources(run: Run, found: list[_Loss]) -> list[_Loss]:
    """The losses without those whose line is computed from another one of them: `loss = l.mean()`."""
    return [one for one in found if not any(_is_made_of(run, one, other) for other in found if other is not one)]


def _is_made_of(run: Run, one: _Loss, other: _Loss) -> bool:
    (_, _, place), (_, root, source) = one, other
    lines = run.source_of(place.cell).splitlines()
    text = lines[place.line - 1] if place.line is not None and 0 < place.line <= len(lines) else ""
    after = place.scope == source.scope and (source.line or 0) < (place.line or 0)
    value = text.partition("=")[2]
    plain = root.isidentifier() and re.search(rf"\b{root}\b", value) is not None
    return after and plain and one[0].nodes == other[0].nodes and "logits" not in value.lower()


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
    called = loss_called(run, *_CLASSES) or f"`{loss}`"
    root = root or reading.differentiated(run, place)
    layer = _layer(run, pattern)
    name = layer or run.operand_of(pattern)
    squashed = _LAYERS.get(kind, "").lower()
    inside = None if name else handed_on(run, squashed, loss)
    first = None if name or inside else _first(run, squashed, pattern)
    layered = f", nn.{_LAYERS[kind]}" if layer else ""
    given = (
        f" (`{name}`{layered})" if name else f" (`{inside[0]}`, {inside[1].said_in(run.cell.number)})" if inside else ""
    )
    given = f" (`{first.text}`, {first.place.said_in(run.cell.number)})" if first is not None else given
    evidence = [Evidence("loss function", loss), Evidence("input made by", squashed)]
    if loss != "soft_margin_loss":
        # log(1 + 1/e) for a positive whose probability is 1, log(2) for a negative whose probability is 0.
        evidence += [Evidence("lowest loss of a positive", 0.313), Evidence("lowest loss of a negative", 0.693)]
    return Finding(
        message=(
            f"{f'`{root}`' if root else 'The loss'} applies sigmoid twice: {called} does so itself, "
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


def _first(run: Run, squashed: str, pattern: PatternFact) -> Written | None:
    """The call that the input has been through, as the text has it, or the text that makes the layer."""
    only = _only(run, squashed) if pattern.rivals == 1 else None
    return only or returned(run, squashed) or _made(run, squashed)


def _made(run: Run, squashed: str) -> Written | None:
    """`nn.Sigmoid()` in a class, where the texts make no other, and all that there are stand under that attribute."""
    kind = squashed.capitalize()
    made = sole(run, lambda node: called(node) in (squashed, kind))
    if made is None or not made.inside or not made.text.endswith(f"{kind}()"):
        return None
    tree, line = syntax.parse(run.source_of(made.place.cell)), made.place.line or 0
    stored = [one for one in (syntax.walk(tree) if tree is not None else ()) if isinstance(one, ast.Assign)]
    targets = [one.targets[0] for one in stored if one.lineno <= line <= (one.end_lineno or one.lineno)]
    attribute = targets[0].attr if len(targets) == 1 and isinstance(targets[0], ast.Attribute) else ""
    paths = [path for one in run.after.modules for path, own, _ in one.squashing_layers if own == kind]
    under = re.compile(rf"\.{attribute}(\[[^\]]*\])*$")
    known = paths and all(under.search(path) for path in paths)
    return made if attribute and known else None


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
    layered = first is not None and first.text.endswith(f"{squashed.capitalize()}()")
    scores = "nn.Identity()" if layered else operand(first.text) if first is not None else ""
    if first is None or not scores:
        return f"# give the loss raw scores, without {squashed}; apply sigmoid only to show probabilities"
    new = in_statement(run, first.place, first.text, scores)
    if new.startswith(OUT):
        return f"{new}  # {first.place.said_in(run.cell.number)}, the loss wants raw scores"
    return f"{new}  # {first.place.said_in(run.cell.number)}, in place of {first.text}: the loss wants raw scores"
