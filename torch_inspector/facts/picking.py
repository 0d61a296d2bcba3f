"""Whether an `nll_loss` only picks probabilities: `-F.nll_loss(p, y)`, and `1 + F.nll_loss(p, y)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.sole import written

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import PatternFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_LAYERS = ("criteri", "crit", "objective")


def picks_only(run: Run, pattern: PatternFact, place: Place) -> bool:
    """True if the sign of such a loss is changed, or a number added, there or where the variable is used."""
    if _is_picked(run, pattern):
        return True
    called = any(one.made_at == place for one in run.trace.backwards)
    others = (one for one, *_ in run.losses_with(pattern.name) if one.nodes[:-1] == pattern.nodes)
    return not called and any(one.shapes == pattern.shapes and _is_picked(run, one) for one in others)


def _is_picked(run: Run, pattern: PatternFact) -> bool:
    return "picked" in pattern.nodes or ("lifted" in pattern.nodes and _adds_number(run))


def _adds_number(run: Run) -> bool:
    """True if a number that is not 0 stands beside a loss, or beside a variable that one was given to."""
    given = {name for past in (*run.earlier, run) for name in _given_losses(past.cell.source)}
    return bool(written(run, lambda node: _is_sum(node, given)))


def _is_sum(node: ast.AST, given: set[str]) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    sides = ((node.left, node.right), (node.right, node.left))
    return any(_is_number(one) and _names(other, given) for one, other in sides)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and bool(node.value)


def _names(node: ast.expr, given: set[str]) -> bool:
    words = [getattr(one, "id", "") or getattr(one, "attr", "") for one in syntax.walk(node)]
    return any(word in given or says_loss(word) or word.lower().startswith(_LAYERS) for word in words)


def _given_losses(source: str) -> set[str]:
    tree = syntax.parse(source)
    nodes = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign)] if tree is not None else []
    named = [one for one in nodes if _names(one.value, set())]
    return {to.id for one in named for to in one.targets if isinstance(to, ast.Name)}
