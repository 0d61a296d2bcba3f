"""Probabilities handed to cross-entropy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import ExpressionFact, PatternFact, Place, Run, Written, called, instead, operand, sole
from torch_inspector.facts.drawn_from import drawn_from
from torch_inspector.facts.loss_called import loss_called
from torch_inspector.facts.measured import called_loss, measured, where_made, with_scores
from torch_inspector.facts.replaced import OUT, in_statement
from torch_inspector.facts.returned import returned
from torch_inspector.facts.spelled import handed_on
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import of_measured, pitfall

_LONGEST = 60
_GIVEN = re.compile(r"((?:\w+\.)*)cross_entropy\((\w+), (\w+)\)")
# Products of the probabilities with a fixed matrix: scores in their place would be sums of scores.
_VOTES = frozenset(["MmBackward0", "BmmBackward0"])


class _Loss(NamedTuple):
    """What the code calls a loss, and the line that made it."""

    root: str
    made_at: Place


@pitfall(severity="error", early=True)
def check(run: Run) -> Iterator[Finding]:
    """Finds losses whose graph has a log-softmax directly on a softmax."""
    seen: set[Place] = set()
    for backward in run.trace.patterned:
        patterns = backward.witness.patterns if backward.witness else ()
        pattern = next((p for p in patterns if p.name == "softmax-before-log-softmax"), None)
        twice = next((p for p in patterns if p.name == "log-softmax-twice"), None)
        if backward.made_at in seen or (pattern is None and twice is None):
            continue
        seen.add(backward.made_at)
        loss = _Loss(backward.root, backward.made_at)
        yield _finding(run, loss, pattern) if pattern is not None else _log_twice(run, loss)
    for pattern, root, place in () if seen else run.losses_with("softmax-before-log-softmax"):
        seen.add(place)
        yield _finding(run, _Loss(root, place), pattern)
    for fact in () if seen else measured(run, "cross_entropy"):
        yield _of_text(run, fact)


def _of_text(run: Run, fact: ExpressionFact) -> Finding:
    """A loss that is only measured, without a graph."""
    message = (
        f"{called_loss(fact)} applies softmax twice: its input has been through a softmax already "
        f"({where_made(fact)}), so it cannot get near zero, and does not compare with a loss of raw scores."
    )
    return of_measured(fact, message, with_scores(run, fact))


def _log_twice(run: Run, backward: _Loss) -> Finding:
    """Harmless, as long as nobody puts a softmax in the place of the log-softmax."""
    loss = f"`{backward.root}`" if backward.root else "the loss"
    first = sole(run, lambda node: called(node) in ("log_softmax", "LogSoftmax"))
    where = (
        f" (`{first.text}`, {first.place.said_in(run.cell.number)})" if first and len(first.text) <= _LONGEST else ""
    )
    layers = run.squashing_layers("LogSoftmax")
    where = f" (`{layers[0]}`, nn.LogSoftmax)" if len(layers) == 1 and not where else where
    return Finding(
        message=(
            f"{loss} applies `log_softmax` twice{where}: cross-entropy does it itself, and the second changes nothing."
        ),
        subject=backward.root,
        fix="nn.NLLLoss() for outputs of a log-softmax, or the raw scores for cross-entropy",
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        severity="hint",
        evidence=(Evidence("graph", "LogSoftmax <- LogSoftmax"),),
    )


def _finding(run: Run, backward: _Loss, pattern: PatternFact) -> Finding:
    layers = _softmax_layers(run) if pattern.rivals == 1 else ()
    layers = layers if len(layers) == 1 else ()
    inside = None if layers else handed_on(run, "softmax", "cross_entropy")
    votes = not _VOTES.isdisjoint(pattern.nodes)
    written = None if layers or (backward.root and not votes) else _only_loss(run)
    place = written.place if written is not None else backward.made_at
    where = f" (`{layers[0]}`)" if layers else f" (in `{written.text}`)" if written is not None else ""
    first = _first_softmax(run, pattern) if not layers and not inside else None
    where = f" (`{first.text}`, {first.place.said_in(run.cell.number)})" if first is not None else where
    where = f" (`{inside[0]}`, {inside[1].said_in(run.cell.number)})" if inside else where
    classes = pattern.shapes[0][0] if pattern.shapes and pattern.shapes[0] else 0
    loss = f"`{backward.root}`" if backward.root else "the loss"
    own = loss_called(run, "CrossEntropyLoss")
    again = f"and {own} does it again, " if own else ""
    evidence = [
        Evidence("graph", " <- ".join(name.removesuffix("0").removesuffix("Backward") for name in pattern.nodes))
    ]
    if classes > 1:
        # All mass on the right class: log(sum(exp(p))) - p = log(1 + (C - 1) / e).
        evidence.append(Evidence("classes", classes, "count"))
        evidence.append(Evidence("lowest loss that can be reached", round(math.log(1 + (classes - 1) / math.e), 3)))
    evidence.extend(Evidence("softmax layer", layer) for layer in layers)
    return Finding(
        message=(
            f"{loss} applies softmax twice: its input has been through a softmax already{where}, "
            f"{again}so gradients are small and the loss cannot get near zero."
        ),
        subject=layers[0] if layers else backward.root or _first_of(written),
        fix=_fix_of_votes(run) if votes else _fix(run, layers, first),
        line=place.line,
        cell=place.cell,
        evidence=tuple(evidence),
    )


def _fix_of_votes(run: Run) -> str:
    """What the product made are probabilities of the classes, and there are no scores of them."""
    written = sole(run, lambda node: called(node) in ("cross_entropy", "CrossEntropyLoss"))
    given = _GIVEN.fullmatch(written.text) if written is not None else None
    if written is None or given is None:
        return "# nn.NLLLoss() on the logarithm of the probabilities, in place of cross-entropy"
    new = f"{given[1]}nll_loss(({given[2]} + 1e-06).log(), {given[3]})"
    return instead(run, written.place, written.text, new, "these are probabilities already")


def _only_loss(run: Run) -> Written | None:
    """The only cross-entropy in the texts, where a function computes it."""
    written = sole(run, lambda node: called(node) in ("cross_entropy", "CrossEntropyLoss"))
    return written if written is not None and written.inside and "cross_entropy(" in written.text else None


def _first_softmax(run: Run, pattern: PatternFact) -> Written | None:
    """The softmax that the input has been through, as the text has it: the only one, or what `forward` gives back."""
    return (_only_softmax(run) if pattern.rivals == 1 else None) or returned(run, "softmax")


def _only_softmax(run: Run) -> Written | None:
    """The only softmax in the texts, where a function has it: `F.softmax(out, dim=1)` of a `forward`."""
    if _softmax_layers(run):
        return None
    written = sole(run, lambda node: called(node) in ("softmax", "Softmax"))
    fits = written is not None and written.inside and "softmax(" in written.text and len(written.text) <= _LONGEST
    return written if fits else None


def _first_of(written: Written | None) -> str:
    """The variable that the loss is given: `y_hat` of `F.cross_entropy(y_hat, soft)`."""
    given = re.search(r"cross_entropy\((\w+)\b(?=[,)])", written.text) if written is not None else None
    return given[1] if given is not None else ""


def _softmax_layers(run: Run) -> tuple[str, ...]:
    """Softmax layers of the modules that were called in this cell, each once."""
    called = {call.module for call in run.trace.forwards}
    paths = (path for module in run.after.modules if module.key in called for path in module.softmax_layers)
    return tuple(dict.fromkeys(paths))


def _fix(run: Run, layers: tuple[str, ...], first: Written | None) -> str:
    scores = operand(first.text) if first is not None else ""
    if first is not None and scores:
        new = in_statement(run, first.place, first.text, scores)
        there = "" if new == scores else f"{first.place.said_in(run.cell.number)}, "
        if new.startswith(OUT):
            return f"{new}  # {there}the loss wants raw scores"
        mended = f"{new}  # {there}in place of {first.text}: the loss wants raw scores"
        return "\n".join([mended, *drawn_from(run, first.place)])
    if not layers:
        return "# give the loss the raw scores; apply softmax only to show probabilities"
    path = layers[0]
    remark = "the loss wants raw scores" if path.endswith("]") else "or leave the softmax out of forward()"
    return "\n".join([f"{path} = nn.Identity()  # {remark}", *drawn_from(run, None)])
