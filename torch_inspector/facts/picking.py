"""Whether an `nll_loss` only picks probabilities: `-torch.log(-F.nll_loss(p, y))`, and `1 + F.nll_loss(p, y)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.loss_names import says_loss
from torch_inspector.facts.receiver import receiver
from torch_inspector.facts.replaced import in_statement

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import PatternFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_LAYERS = ("criteri", "crit", "objective")
_TURNED = ("turned", "unsigned")
# What keeps a logarithm or a division from 0 is less.
_LEAST = 0.01


def picks_only(run: Run, pattern: PatternFact, place: Place) -> bool:
    """True if something else is computed of such a loss, there or where the variable is used."""
    called = any(one.made_at == place for one in run.trace.backwards)
    if set(_TURNED) & set(pattern.nodes):
        return not called or not _trains(run, pattern, place)
    if _is_picked(run, pattern):
        return True
    others = (one for one, *_ in run.losses_with(pattern.name) if one.nodes[:-1] == pattern.nodes)
    return not called and any(one.shapes == pattern.shapes and _is_used(run, one) for one in others)


def is_turned(pattern: PatternFact) -> bool:
    """True for a loss of which only the sign is changed."""
    return "turned" in pattern.nodes


def _is_picked(run: Run, pattern: PatternFact) -> bool:
    return "picked" in pattern.nodes or ("lifted" in pattern.nodes and _adds_number(run))


def _is_used(run: Run, pattern: PatternFact) -> bool:
    """True also where it is only turned: then that line is told, if any."""
    return _is_picked(run, pattern) or bool(set(_TURNED) & set(pattern.nodes))


def _trains(run: Run, pattern: PatternFact, place: Place) -> bool:
    """True if the loss trains parameters, and all that it reaches where its sign is changed.

    A generator or a patch may be taught to make the probability small that a model gives; that model is not trained.
    """
    keys = [b.witness.leaf_keys for b in run.trace.backwards if b.made_at == place and b.witness is not None]
    stepped = frozenset[int]().union(*(step.parameter_keys for step in run.trace.steps))
    return any(one <= stepped if is_turned(pattern) else one & stepped for one in keys if one)


def _adds_number(run: Run) -> bool:
    """True if a number of some size is added to a loss, or to a variable that one was given to."""
    given = {name for past in (*run.earlier, run) for name in _given_losses(past.cell.source)}
    return any(_is_sum(node, given) for node in nodes_of_cells(run))


def nodes_of_cells(run: Run) -> Iterator[ast.AST]:
    """Those of the cell, and of the functions of earlier ones."""
    for source in dict.fromkeys(past.cell.source for past in (*run.earlier, run)):
        tree = syntax.parse(source)
        for statement in tree.body if tree is not None else ():
            if source == run.cell.source or isinstance(statement, (*syntax.FUNCTIONS, ast.ClassDef)):
                yield from syntax.walk(statement)


def _is_sum(node: ast.AST, given: set[str]) -> bool:
    return any(number >= _LEAST and _names(loss, given) for number, loss in _sums(node))


def _sums(node: ast.AST) -> Iterator[tuple[float, ast.expr]]:
    """Numbers that are added, each with what it is added to: `1 + loss`, `loss += 1`, `loss.add(1)`, `loss - (-1)`."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    sign = -1 if isinstance(getattr(node, "op", None), ast.Sub) else 1
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        pairs = [(node.right, node.left), (node.left, node.right)][: 2 if sign > 0 else 1]
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        pairs = [(node.value, node.target)]
    elif isinstance(node, ast.Call) and syntax.last_part(node.func) in ("add", "add_") and node.args:
        pairs = [(node.args[-1], node.args[0] if len(node.args) > 1 else node.func)]
    yield from ((sign * number, loss) for one, loss in pairs if (number := _number(one)) is not None)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    return node.value if isinstance(node, ast.Constant) and type(node.value) in (int, float) else None  # type: ignore[return-value]


def _names(node: ast.expr, given: set[str]) -> bool:
    words = [getattr(one, "id", "") or getattr(one, "attr", "") for one in syntax.walk(node)]
    return any(word in given or says_loss(word) or word.lower().startswith(_LAYERS) for word in words)


def _given_losses(source: str) -> set[str]:
    tree = syntax.parse(source)
    nodes = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign)] if tree is not None else []
    named = [one for one in nodes if _names(one.value, set())]
    return {to.id for one in named for to in one.targets if isinstance(to, ast.Name)}


def unturned(run: Run, place: Place) -> str:
    """The line with `F.nll_loss(p.log(), y)` in the place of `-F.nll_loss(p, y)`; empty if it has no such call."""
    tree = syntax.parse(run.source_of(place.cell))
    found = [one for one in syntax.walk(tree) if _is_turned_call(one, place)] if tree is not None else []
    text = ast.unparse(found[0]) if len(found) == 1 else ""
    call = syntax.expression(text.removeprefix("-"))
    if not isinstance(call, ast.Call):
        return ""
    given = ast.unparse(call.args[0])
    head, rest = ast.unparse(call.func), ast.unparse(call).removeprefix(f"{ast.unparse(call.func)}({given}")
    return in_statement(run, place, text, f"{head}({receiver(given)}.clamp_min(1e-9).log(){rest}")


def _is_turned_call(node: ast.AST, place: Place) -> bool:
    call = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None
    return isinstance(call, ast.Call) and call.lineno == place.line and len(call.args) == len(("input", "target"))
