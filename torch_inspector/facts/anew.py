"""A second loss on one output, where weights may have moved between the two: its forward pass is repeated."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.replaced import in_line

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, RefusalFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run


def anew(run: Run, error: ErrorFact, refusal: RefusalFact, before: Place) -> str:
    """The line of the second loss with the output computed again in it; empty if nothing is stepped between the two.

    A sum of both losses would be differentiated at other weights, and into other gradients, than the text asks for.

    Args:
        run: The cell.
        error: What torch has refused.
        refusal: The old part of the graph.
        before: The line of the first call.
    """
    tree, last = syntax.parse(run.source_of(error.place.cell)), error.place.line or 0
    step = _step_between(tree, before, error.place) if tree is not None else ""
    old = refusal.olds[0] if refusal.olds else None
    if tree is None or not step or old is None:
        return ""
    made = _value(tree, old.path, last)
    line = refusal.made_at.line if refusal.named and refusal.made_at is not None else last
    again = in_line(run, error.place._replace(line=line), old.path, made) if made else ""
    if again:
        return f"{again}  # another pass, after {step}"
    return f"{old.path} = ...  # computed again after {step}: it changes what {old.path} was computed with"


def _step_between(tree: ast.Module, before: Place, after: Place) -> str:
    """`opt.first_step()` in a line between two of one function; empty if there is none."""
    first, last = before.line or 0, after.line or 0
    if before.scope != after.scope:
        return ""
    for node in syntax.own_expressions(syntax.scope_at(tree, last)):
        called = node.func if isinstance(node, ast.Call) and first < node.lineno < last else None
        if isinstance(called, ast.Attribute) and ("step" in called.attr or called.attr == "zero_grad"):
            return f"{ast.unparse(called)}()"
    return ""


def _value(tree: ast.Module, name: str, last: int) -> str:
    """`model(images)`: the only thing that a scope gives a name."""
    scope = syntax.scope_at(tree, last)
    stored = [one for one in syntax.own_statements(scope) if isinstance(one, (ast.Assign, ast.AugAssign, ast.For))]
    values = [one for one in stored if any(name in syntax.names_in(part) for part in syntax.targets_of(one))]
    own = values[0] if len(values) == 1 else None
    plain = isinstance(own, ast.Assign) and isinstance(own.targets[0], ast.Name) and own.lineno < last
    return ast.unparse(own.value) if plain and isinstance(own, ast.Assign) else ""
