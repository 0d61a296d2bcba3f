"""Losses that are only measured: no gradients are asked for, so that no graph tells what they were given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.text import ExpressionFact

_LONGEST = 70
_SWITCHED_OFF = re.compile(r"\b(no_grad|inference_mode)\b")


def measured(run: Run, loss: str) -> Iterator[ExpressionFact]:
    """Losses of one kind that the text gives probabilities, and that a cell that ran whole did not differentiate."""
    for fact in run.expressions("squashed-loss") if run.error is None else ():
        if fact.detail == loss and _ungraded(run, fact.place):
            yield fact


def called_loss(fact: ExpressionFact) -> str:
    """The call of such a loss as written, or what takes its value where that is long."""
    return f"`{fact.text}`" if len(fact.text) <= _LONGEST else f"`{fact.target}`" if fact.target else "the loss"


def where_made(fact: ExpressionFact) -> str:
    """How the text makes what the loss was given: `p` is `F.softmax(scores, dim=1)`."""
    given, made = fact.names[:2]
    return f"`{made}`" if given == made else f"`{given}` is `{made}`"


def with_scores(run: Run, fact: ExpressionFact) -> str:
    """The statement of such a loss with the raw scores; a remark where their name has another value by then."""
    if not fact.names[2]:
        return f"# give the loss the raw scores that {fact.names[1]} was made of: their name has another value here"
    return f"{_given_instead(run, fact, fact.names[2])}  # the raw scores"


def with_logarithms(run: Run, fact: ExpressionFact) -> str:
    """The statement of such a loss with the logarithms of the probabilities."""
    given, made, scores = fact.names[:3]
    if not scores:
        return _replaced(run, fact, f"{given}.log()")
    logs = made.replace("softmax(", "log_softmax(") if re.search(r"[\w)\]]\.softmax\(", made) else ""
    return _given_instead(run, fact, logs or f"torch.log_softmax({scores}, dim=1)")


def _given_instead(run: Run, fact: ExpressionFact, new: str) -> str:
    name, made = fact.names[:2]
    if name != made and re.search(rf"\b{name}\b", made):  # `out = softmax(out)`: the scores are gone
        return f"# leave out {name} = {made}" if new == name else f"{name} = {new}  # in place of {name} = {made}"
    return _replaced(run, fact, new)


def _replaced(run: Run, fact: ExpressionFact, new: str) -> str:
    given = rf"(?<=[(=]){re.escape(fact.names[0])}(?=[,)])"
    return in_statement(run, fact.place, fact.text, re.sub(given, lambda _: new, fact.text, count=1))


def _ungraded(run: Run, place: Place) -> bool:
    """True if nothing was differentiated in the cell, the text switches gradients off, or all passes there had none."""
    if not run.trace.backwards or _is_switched_off(run, place):
        return True
    there = [one.grad_enabled for one in run.trace.forwards if place.function and one.place.scope == place.scope]
    return bool(there) and not any(there)


def _is_switched_off(run: Run, place: Place) -> bool:
    tree, line = syntax.parse(run.source_of(place.cell)), place.line or 0
    around = (
        node
        for node in (syntax.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.With, ast.FunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    )
    for node in around:
        heads = [item.context_expr for item in node.items] if isinstance(node, ast.With) else node.decorator_list
        if any(_SWITCHED_OFF.search(ast.unparse(head)) for head in heads):
            return True
    return False
