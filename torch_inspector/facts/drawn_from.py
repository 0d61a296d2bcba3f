"""Places that draw from the probabilities of a model, and want them made of scores once its softmax is gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.place import Place
from torch_inspector.facts.sole import called

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_DRAWS = frozenset(["Categorical", "OneHotCategorical", "multinomial"])
_PATTERN = "softmax-before-log-softmax"


def drawn_from(run: Run, softmax: Place | None) -> list[str]:
    """The calls that draw from what the model gives, for raw scores: `Categorical(logits=self(state))`.

    Args:
        run: The cell.
        softmax: The line in the `forward` of the model that is to give scores; None for a layer.
    """
    models, lines = _models(run), []
    for past in {one.cell.source: one for one in (*run.earlier, run)}.values():
        tree = syntax.parse(past.cell.source)
        own = softmax.line if softmax is not None and past.cell.number == softmax.cell else None
        for node in _draws(tree) if tree is not None else ():
            if tree is not None and _is_of_model(tree, node, models, own or 0):
                place = Place(past.cell.number, node.lineno).said_in(run.cell.number)
                lines.append(f"{_from_scores(node)}  # {place}, in place of {ast.unparse(node)}")
    return lines


def _models(run: Run) -> set[str]:
    """Names of the models that losses which apply softmax twice go through; what another one gives stays as it is."""
    calls = [call for call in run.trace.forwards if call.name and call.parameter_keys]
    graphs = [one.witness for one in run.trace.patterned if one.witness is not None]
    twice = [one for one in graphs if any(pattern.name == _PATTERN for pattern in one.patterns)]
    leaves = frozenset[int]().union(*(one.leaf_keys for one in twice))
    reached = [call for call in calls if call.parameter_keys & leaves]
    alone = len({call.module for call in calls}) == 1
    return {call.name.rpartition(".")[2] for call in reached or (calls if alone else [])}


def _draws(tree: ast.Module) -> Iterator[ast.Call]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Call) and called(node) in _DRAWS and _given(node) is not None:
            yield node


def _given(node: ast.Call) -> ast.expr | None:
    """The probabilities, if they are given as such."""
    named = next((one.value for one in node.keywords if one.arg in ("probs", "input")), None)
    return named or next(iter(node.args), None)


def _is_of_model(tree: ast.Module, node: ast.Call, models: set[str], line: int) -> bool:
    """True if a model, or the object of the class around a line, is called for what is drawn from."""
    given = _given(node)
    if isinstance(given, ast.Name):
        scope = syntax.scope_at(tree, node.lineno)
        stored = (one for one in syntax.own_statements(scope) if isinstance(one, ast.Assign))
        values = [one.value for one in stored if given.id in map(ast.unparse, one.targets)]
        given = values[-1] if len(values) == 1 else None
    function = ast.unparse(given.func) if isinstance(given, ast.Call) else ""
    if function == "self":
        kinds = (one for one in syntax.walk(tree) if isinstance(one, ast.ClassDef) and syntax.spans(one, line))
        return any(syntax.spans(one, node.lineno) for one in kinds)
    return function.rpartition(".")[2] in models


def _from_scores(node: ast.Call) -> str:
    """The call with what it is given for raw scores, and all its other arguments."""
    given = _given(node)
    if given is None:
        return ""
    if called(node) != "multinomial":
        others = [one for one in node.keywords if one.value is not given]
        first = [one for one in node.args if one is not given]
        return ast.unparse(ast.Call(node.func, first, [ast.keyword("logits", given), *others]))
    soft = ast.Call(ast.Attribute(given, "softmax", ast.Load()), [ast.Constant(-1)], [])
    named = [ast.keyword(one.arg, soft if one.value is given else one.value) for one in node.keywords]
    return ast.unparse(ast.Call(node.func, [soft if one is given else one for one in node.args], named))
