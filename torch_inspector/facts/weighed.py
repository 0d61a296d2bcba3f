"""Whether what `nll_loss` picks is weighed sample by sample: `F.nll_loss(pi, a, reduction="none") * reward`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.picking import nodes_of_cells

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_BY_METHOD = frozenset(["mul", "div", "dot", "multiply", "divide"])
_OPERATORS = (ast.Mult, ast.Div, ast.MatMult)
# A mask says which samples count, not how much; a number of samples is one for all.
_MASKS = re.compile(r"mask|pad|valid|\blen\(|numel|\bsize\b|shape|batch_size", re.IGNORECASE)
_PAIR = 2


def is_weighed(run: Run) -> bool:
    """True if a text multiplies or divides such numbers, one for each sample, by a tensor that is no mask."""
    nodes = list(nodes_of_cells(run))
    trees = (syntax.parse(past.cell.source) for past in (*run.earlier, run))
    texts = [one for tree in trees if tree is not None for one in syntax.walk(tree)]
    layers = {name for one in texts if _is_unreduced(one, "NLLLoss") for name in _given(one, texts)}
    calls = [one for one in nodes if _is_unreduced(one, "nll_loss") or _called(one) in layers]
    names = {name for one in calls for name in _given(one, nodes)}
    own = _made_of(names, nodes)
    return any(
        _is_picked(one, calls, names) and _is_weight(other) and not syntax.names_in(other) & own
        for node in nodes
        for one, other in _products(node)
    )


def _called(node: ast.AST) -> str:
    return syntax.last_part(node.func) if isinstance(node, ast.Call) else ""


def _is_unreduced(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or _called(node) != name:
        return False
    return any(isinstance(one.value, ast.Constant) and one.value.value == "none" for one in node.keywords)


def _given(node: ast.AST, nodes: list[ast.AST]) -> list[str]:
    """Last words of the names that are given just that."""
    stores = (one for one in nodes if isinstance(one, ast.Assign) and one.value is node)
    return [syntax.last_part(target) for one in stores for target in one.targets]


def _products(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Both ways to look at a product."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _BY_METHOD:
        sides = node.args if len(node.args) == _PAIR else [node.func.value, *node.args]
    return [(sides[0], sides[1]), (sides[1], sides[0])] if len(sides) == _PAIR else []


def _is_picked(node: ast.expr, calls: list[ast.AST], names: set[str]) -> bool:
    """True also for a product of it, and with another sign."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return any(_is_picked(side, calls, names) for side in (node.left, node.right))
    return any(node is one for one in calls) or (isinstance(node, ast.Name) and node.id in names)


def _is_weight(node: ast.expr) -> bool:
    bare = node.operand if isinstance(node, ast.UnaryOp) else node
    return not isinstance(bare, ast.Constant) and not _MASKS.search(ast.unparse(node))


def _made_of(names: set[str], nodes: list[ast.AST]) -> set[str]:
    """These names and all that is computed of them: a focal loss weighs each loss by itself."""
    stores = [one for one in nodes if isinstance(one, ast.Assign)]
    known, before = names, set[str]()
    while known != before:
        before = known
        made = (one for one in stores if syntax.names_in(one.value) & before)
        known = before | {syntax.last_part(target) for one in made for target in one.targets}
    return known
