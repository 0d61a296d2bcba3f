"""Probabilities, or raw scores, handed to a loss that wants their logarithms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, PatternFact, Place, Run, Written, called, instead, operand, sole
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.measured import called_loss, measured, where_made, with_logarithms
from torch_inspector.facts.picking import is_turned, picks_only, unturned
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.returned import returned
from torch_inspector.facts.weighed import is_weighed
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import of_measured, pitfall

_MADE_BY = {"SoftmaxBackward0": "softmax", "SigmoidBackward0": "sigmoid", "ExpBackward0": "exp of log-softmax"}
# What is known by its numbers.
_BY_VALUE = "probabilities"
_DIVERGENCE = re.compile(r"\bkl_div\b|\bKLDivLoss\b")
_WHY = {
    "ctc_loss": "it adds up what it takes for the probabilities of all alignments, so the loss falls below zero",
    "kl_div": "without the logarithm it is least where all weight is on the likeliest class, not where both agree",
}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds NLL losses whose graph has no logarithm where one must be."""
    found = [
        (pattern, root, place)
        for pattern, root, place in run.losses_with("probabilities-in-nll")
        if len(pattern.nodes) > 1
        and _is_mistake(run, pattern, place)
        and not _may_be_a_share(run, pattern, root, place)
    ]
    told: set[tuple[object, ...]] = set()
    # A sum of losses comes after the loss that is part of it.
    for pattern, root, place in sorted(found, key=lambda one: one[2].line or 0):
        cause = (pattern.nodes, pattern.shapes, run.operand_of(pattern), place.cell, place.function)
        if not run.operand_of(pattern) or cause not in told:
            told.add(cause)
            yield _finding(run, pattern, root, place)
    for fact in () if told else measured(run, "nll_loss"):
        yield _of_text(run, fact)


def _of_text(run: Run, fact: ExpressionFact) -> Finding:
    """A loss that is only measured, without a graph."""
    message = (
        f"{called_loss(fact)} was given probabilities ({where_made(fact)}), but `nll_loss` wants their "
        "logarithms: it only picks one number per sample, so the loss is minus their mean, between -1 and 0."
    )
    return of_measured(fact, message, with_logarithms(run, fact))


def _is_mistake(run: Run, pattern: PatternFact, place: Place) -> bool:
    if pattern.nodes[0] == "kl_div":  # known by what it calculates, and by its name
        return any(_DIVERGENCE.search(one.cell.source) for one in (run, *run.earlier))
    if picks_only(run, pattern, place):
        return False
    return pattern.nodes[1] in (*_MADE_BY, _BY_VALUE) or _trains(run, place)


def _may_be_a_share(run: Run, pattern: PatternFact, root: str, place: Place) -> bool:
    """True if nothing was differentiated, and the name does not say loss: minus that is the mean probability."""
    called = any(one.made_at == place for one in run.trace.backwards)
    return pattern.nodes[0] == "nll_loss" and not called and bool(root) and not says_loss(root)


def _trains(run: Run, place: Place) -> bool:
    """True if the loss trains parameters: an attack may push a raw score on purpose."""
    keys = [b.witness.leaf_keys for b in run.trace.backwards if b.made_at == place and b.witness is not None]
    return any(step.parameter_keys & leaves for step in run.trace.steps for leaves in keys)


def _finding(run: Run, pattern: PatternFact, root: str, place: Place) -> Finding:
    loss, kind = pattern.nodes[:2]
    layer = _layer(run, pattern)
    name = run.operand_of(pattern)
    first = _first(run, pattern) if not layer else None
    where = f" (`{first.text}`, {first.place.said_in(run.cell.number)})" if first is not None else ""
    where = f" (`{layer}`)" if layer else where
    made = _MADE_BY.get(kind)
    by_raw = not made and kind != _BY_VALUE
    by_value = "raw scores" if by_raw else "probabilities (each row sums to 1)"
    said = f"probabilities from {made}{where}" if made else by_value
    evidence = [Evidence("loss function", loss), Evidence("input made by", made or kind.removesuffix("Backward0"))]
    if pattern.shapes and pattern.shapes[0]:
        evidence.append(Evidence("shape of the input", str(pattern.shapes[0])))
    return Finding(
        message=(
            f"{_called(run, root, loss)} was given {said}{f' in `{name}`' if name else ''}, but wants "
            f"log-probabilities: {_WHY.get(loss, _picks(pattern))}."
        ),
        subject=layer or name or root,
        fix=_of_turned(run, place) if is_turned(pattern) else _logged(run, first) or _fix(run, layer, name, pattern),
        line=place.line,
        cell=place.cell,
        evidence=tuple(evidence),
        # Who wants a model to forget, or knows only which class is wrong, writes it alike; and a mean of rewards, each
        # weighed by the probability of what was done, is an estimate of what a policy earns.
        severity="hint" if is_turned(pattern) or is_weighed(run) or (by_raw and _is_half(run, place)) else "error",
    )


def _is_half(run: Run, place: Place) -> bool:
    """True if another call of `backward()` reaches as much before the same step: it may hold against raw scores."""
    calls = [(one, one.witness.leaf_keys) for one in run.trace.backwards if one.witness is not None]
    ours = [(one, keys) for one, keys in calls if one.made_at == place and keys]
    others = [(one, keys) for one, keys in calls if one.made_at != place]
    pairs = [(*sorted((one.order, other.order)), more >= keys) for one, keys in ours for other, more in others]
    steps = [step.order for step in run.trace.steps]
    return any(whole and not any(first < step < last for step in steps) for first, last, whole in pairs)


def _picks(pattern: PatternFact) -> str:
    per = "position" if pattern.shapes and len(pattern.shapes[0]) > len(("samples", "classes")) else "sample"
    if {"turned", "unsigned"} & set(pattern.nodes):
        return f"it only picks one number per {per}, and as its sign is changed, training makes that number small"
    return f"it only picks one number per {per}, so the loss falls below zero"


def _of_turned(run: Run, place: Place) -> str:
    said = "log-probabilities, and no minus sign"
    line = unturned(run, place)
    return f"{line}  # {said}" if line else f"# F.nll_loss of F.log_softmax(…) of the scores: {said}"


def _called(run: Run, root: str, loss: str) -> str:
    """The loss by the name of its layer, if the texts have that only."""
    texts = "\n".join(one.cell.source for one in (run, *run.earlier))
    loss = "NLLLoss" if loss == "nll_loss" and "NLLLoss(" in texts and "nll_loss(" not in texts else loss
    return f"`{loss}` of `{root}`" if root else f"`{loss}`"


def _layer(run: Run, pattern: PatternFact) -> str:
    """The one layer that made the probabilities, if nothing else could have."""
    kind = {"SoftmaxBackward0": "Softmax", "SigmoidBackward0": "Sigmoid"}.get(pattern.nodes[1], "")
    layers = run.squashing_layers(kind) if kind and pattern.rivals == 1 else ()
    return layers[0] if len(layers) == 1 else ""


def _first(run: Run, pattern: PatternFact) -> Written | None:
    """The softmax that `forward` gives back, where that is what the loss was given."""
    plain = pattern.nodes[1] == "SoftmaxBackward0" and "mixed" not in pattern.nodes
    return returned(run, "softmax") if plain and pattern.nodes[0] == "nll_loss" else None


def _logged(run: Run, first: Written | None) -> str:
    """The statement with a log-softmax in the place of the softmax."""
    if first is None or "log_softmax" in first.text:
        return ""
    new = in_statement(run, first.place, first.text, first.text.replace("softmax(", "log_softmax(", 1))
    return f"{new}  # {first.place.said_in(run.cell.number)}; or hand on the raw scores, to nn.CrossEntropyLoss"


def _fix(run: Run, layer: str, name: str, pattern: PatternFact) -> str:
    loss, kind = pattern.nodes[:2]
    axis = pattern.shapes[1][0] if len(pattern.shapes) > 1 else 1
    if "mixed" in pattern.nodes:
        return _fix_of_mixture(run, name)
    if loss == "kl_div":
        return "# F.log_softmax(scores, dim=1) as the input of kl_div; its target stays a softmax"
    if layer and kind == "SoftmaxBackward0":
        also = "" if loss == "ctc_loss" else "  # or: raw scores and nn.CrossEntropyLoss"
        return f"{layer} = nn.LogSoftmax(dim={axis}){also}"
    if loss == "ctc_loss":
        return _fix_of_ctc(run, name, pattern)
    if name and kind not in _MADE_BY:
        return f"F.cross_entropy({name}, …)  # takes raw scores; nll_loss wants F.log_softmax of them"
    return _of_written(run, axis) if kind == "SoftmaxBackward0" else _of_any(axis)


def _of_written(run: Run, axis: int) -> str:
    """The softmax of the texts as a log-softmax: the only one, or the only one that is written inside of the loss."""
    inside = sole(run, lambda node: called(node) == "nll_loss" and called(_first_argument(node)) == "softmax")
    text = ast.unparse(_first_argument(ast.parse(inside.text, mode="eval").body)) if inside is not None else ""
    only = sole(run, lambda node: called(node) == "softmax") if inside is None else inside._replace(text=text)
    if only is None:
        return _of_any(axis)
    new = only.text.replace("softmax(", "log_softmax(", 1)
    return f"{in_statement(run, only.place, only.text, new)}  # or the raw scores, to cross_entropy"


def _first_argument(node: ast.AST) -> ast.AST:
    return node.args[0] if isinstance(node, ast.Call) and node.args else ast.Pass()


def _of_any(axis: int) -> str:
    return f"# F.log_softmax(…, dim={axis}) of the scores for nll_loss, or the raw scores for cross_entropy"


def _fix_of_mixture(run: Run, name: str) -> str:
    """The logarithm of a mixture comes last: a mixture of logarithms is another number."""
    call = sole(run, lambda node: called(node) == "nll_loss" and bool(getattr(node, "args", ())))
    given = name or (operand(call.text) if call is not None else "")
    if given:
        return f"{given}.clamp_min(1e-9).log()  # in place of {given} in nll_loss"
    return "# probabilities.clamp_min(1e-9).log() for nll_loss, after they are mixed"


def _fix_of_ctc(run: Run, name: str, pattern: PatternFact) -> str:
    """The classes are the last axis of what this loss is given, whatever axis a softmax before had."""
    kind, shape = pattern.nodes[1], pattern.shapes[0]
    classes = max(len(shape) - 1, 1)
    softmax = sole(run, lambda node: called(node) == "softmax") if kind == "SoftmaxBackward0" else None
    if softmax is not None:
        return instead(run, softmax.place, softmax.text, softmax.text.replace("softmax(", "log_softmax(", 1))
    call = sole(run, lambda node: called(node) == "ctc_loss" and bool(getattr(node, "args", ())))
    given = name or (operand(call.text) if call is not None else "")
    if given and kind not in _MADE_BY:
        return f"{given}.log_softmax(dim={classes})  # in place of {given} in ctc_loss"
    return f"# scores.log_softmax(dim={classes}) for ctc_loss: along the classes"
