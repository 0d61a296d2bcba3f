"""Sums over the parameters of a model that wait for their loss."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.outliving import outlives, terms_in
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import GraphFact
    from torch_inspector.facts.run import Run

_PARAMETERS = ("parameters", "named_parameters")


def is_penalty(run: Run, graph: GraphFact) -> bool:
    """True for a sum over the parameters of a model, made once: a loss to come is to train what it is made of."""
    place = graph.grown_at
    tree = syntax.parse(run.source_of(place.cell)) if place is not None else None
    if graph.grown_by != "sum" or graph.differentiated or place is None or place.line is None or tree is None:
        return False
    scope = syntax.scope_at(tree, place.line)
    loops = [one for one in syntax.own_statements(scope) if isinstance(one, (ast.For, ast.While))]
    around = [one for one in loops if one.lineno <= place.line <= (one.end_lineno or one.lineno)]
    loop = around[0] if len(around) == 1 and isinstance(around[0], ast.For) else None
    over = loop.iter if loop is not None else None
    if loop is None or not isinstance(over, ast.Call) or called(over) not in _PARAMETERS:
        return False
    once = terms_in(loop, place.line) * graph.leaf_count + 1
    return not outlives(scope, loop, place.line) or graph.sum_length <= once
