"""The cell whose text gave the loss its value that a failed `backward()` was called on."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_NUMBERS = re.compile(r"torch\.(tensor|as_tensor|zeros|ones|full|rand|randn|Tensor)\(")


def bound_in(run: Run) -> Run:
    """The run, if its text gives the loss a value, else the latest before it that does; the run if none does.

    A loss of a function is none of the notebook's variables.
    """
    name = run.error.root if run.error is not None and not run.error.place.function else ""
    if not name.isidentifier():
        return run
    return next((one for one in (run, *reversed(run.earlier)) if _binds(one, name)), run)


def lacked_gradients(one: Run) -> bool:
    """True if gradients were off when a cell began or ended, or when it called a model that can learn."""
    calls = (call for call in one.trace.forwards if call.trainable_count)
    return not (one.before.grad_enabled and one.after.grad_enabled and all(call.grad_enabled for call in calls))


def is_a_number(run: Run) -> bool:
    """True if all that the cells give the loss, or add to it, are numbers that no model has computed."""
    name = run.error.root if run.error is not None else ""
    trees = (syntax.parse(one.cell.code) for one in (run, *run.earlier))
    nodes = [node for tree in trees if tree is not None for node in syntax.own_expressions(tree)]
    made = [(node.targets, node.value) for node in nodes if isinstance(node, ast.Assign)]
    made += [([node.target], node.value) for node in nodes if isinstance(node, ast.AugAssign)]
    given = [value for targets, value in made if any(isinstance(one, ast.Name) and one.id == name for one in targets)]
    return bool(given) and all(isinstance(one, ast.Constant) or _NUMBERS.match(ast.unparse(one)) for one in given)


def _binds(one: Run, name: str) -> bool:
    tree = syntax.parse(one.cell.code)
    nodes = syntax.own_expressions(tree) if tree is not None else ()
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in nodes)
